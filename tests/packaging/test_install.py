"""Every way of installing makes C{twistd} list C{pi-telegram} and brings the data files."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

ROOT = Path(__file__).resolve().parents[2]

PARTS = ("pitelegram", "twisted", "tests", "docs", "tools", "benchmarks", "newsfragments")

FILES = ("setup.cfg", "pyproject.toml", "MANIFEST.in", "README.md", "CHANGELOG.md", "Makefile")

LEFT_OUT = shutil.ignore_patterns("*.egg-info", "__pycache__", "dropin.cache")


def run(words, cwd):
    """Run a program; returns its output, which is shown when it fails."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        raise AssertionError(f"{words[:4]} failed:\n{done.stdout}")
    return done.stdout


class Environment:
    """A fresh virtual environment that also sees the packages of this one."""

    def __init__(self, path):
        self.path = path
        run([sys.executable, "-m", "venv", "--without-pip", path], "/")
        self.python = path / "bin" / "python"
        scheme = {"base": str(path), "platbase": str(path)}
        self.site = Path(sysconfig.get_path("purelib", "posix_prefix", scheme))
        # A plain path: this environment's own .pth files (an editable install) are not read.
        (self.site / "base.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def install(self, *what):
        """Install without the network."""
        pip = [self.python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        offline = ["--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed"]
        run([*pip, *offline, *what], "/")

    def twistd_help(self):
        """What C{twistd --help} prints, from the root of the file system."""
        code = "import sys; sys.argv = ['twistd', '--help'];"
        return run(
            [self.python, "-c", f"{code} from twisted.scripts.twistd import run; run()"], "/"
        )

    def module_file(self, name):
        """Where a module of ours comes from."""
        code = f"import {name}; print({name}.__file__)"
        return Path(run([self.python, "-c", code], "/").strip())


class InstallTests(SynchronousTestCase):
    """The four ways."""

    def setUp(self):
        """Copy the source, so that no build touches the checkout."""
        self.work = Path(self.mktemp()).absolute()
        self.source = self.work / "source"
        for part in PARTS:
            shutil.copytree(ROOT / part, self.source / part, ignore=LEFT_OUT)
        for file in FILES:
            shutil.copy(ROOT / file, self.source)
        self.environment = Environment(self.work / "venv")

    def check(self, within):
        """Assert that the installation is complete and comes from C{within}."""
        self.assertIn("pi-telegram", self.environment.twistd_help())
        self.assertTrue(self.environment.module_file("pitelegram").is_relative_to(within))
        version = run([self.environment.path / "bin" / "pi-telegram", "--version"], "/")
        self.assertTrue(version.startswith("pi-telegram "))

    def build(self, kind):
        """Build a C{wheel} or C{sdist}; returns the file."""
        out = self.work / "dist"
        code = f"from setuptools.build_meta import build_{kind} as b; b({str(out)!r})"
        out.mkdir()
        run([sys.executable, "-c", code], self.source)
        (found,) = out.iterdir()
        return found

    def test_plain(self):
        """C{pip install .}"""
        self.environment.install(self.source)
        self.check(self.environment.site)

    def test_editable(self):
        """C{pip install -e .}"""
        self.environment.install("-e", self.source)
        self.check(self.source)

    def test_wheel(self):
        """The wheel; it has the data files and nothing of the tests."""
        wheel = self.build("wheel")
        names = zipfile.ZipFile(wheel).namelist()
        for folder, pattern in (
            ("pitelegram/store/schema", "*.sql"),
            ("pitelegram/extension", "*.ts"),
            ("pitelegram/sandbox/page", "*"),
            ("pitelegram", "py.typed"),
        ):
            for file in (ROOT / folder).rglob(pattern):
                self.assertIn(file.relative_to(ROOT).as_posix(), names)
        strangers = [
            n for n in names if n.split("/")[0] in ("tests", "docs", "tools", "benchmarks")
        ]
        self.assertEqual(strangers, [])
        self.assertIn("twisted/plugins/pi_telegram_plugin.py", names)
        self.environment.install(wheel)
        self.check(self.environment.site)

    def test_sdist(self):
        """The source distribution."""
        self.environment.install(self.build("sdist"))
        self.check(self.environment.site)


class LayoutTests(SynchronousTestCase):
    """What must never be there."""

    def test_no_package_files(self):
        """C{twisted/} and C{twisted/plugins/} stay namespaces: an __init__ would hide Twisted."""
        self.assertEqual([str(path) for path in (ROOT / "twisted").rglob("__init__.py")], [])

    def test_plugin_is_words_only(self):
        """The plugin file imports nothing of ours: twistd reads it for every command."""
        text = (ROOT / "twisted" / "plugins" / "pi_telegram_plugin.py").read_text()
        self.assertNotIn("import pitelegram", text)
        self.assertNotIn("from pitelegram", text)
