"""The daemon as a service: unit texts, service managers, and the commands."""

from __future__ import annotations

import inspect
import json
import os
import plistlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from twisted.internet.utils import getProcessOutputAndValue
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.commands import units
from pitelegram.commands.background import BOOT
from pitelegram.commands.managers import (
    Known,
    Launchd,
    ServiceRefused,
    Systemd,
    manager_for,
    run_program,
)
from pitelegram.commands.units import Program
from pitelegram.errors import UsageError
from pitelegram.kernel.deferring import deferred
from tests.commands.support import CommandCase

STRANGE = "/home/müller/my project/100%n \"x\" $HOME \\n 'y'"


def a_program(**changes: Any) -> Program:
    """Return what a unit might run."""
    facts: dict[str, Any] = {
        "words": ["/usr/bin/python3", "-c", "import x; x.y()", "run", f"--root={STRANGE}"],
        "environment": {"PATH": "/opt/pi bin:/usr/bin", "LANG": "de_DE.UTF-8"},
        "profile": "default",
        "log": Path("/tmp/daemon.log"),
    }
    return Program(**{**facts, **changes})


class Programs:
    """Stands for the system's programs.

    @ivar ran: every call.
    @ivar answers: exit code and output, by the words that a call contains; 0 and nothing else.
    """

    def __init__(self) -> None:
        self.ran: list[tuple[str, ...]] = []
        self.answers: dict[str, tuple[int, str]] = {}

    def __call__(self, *words: str) -> tuple[int, str]:
        """Record a call and answer it."""
        self.ran.append(words)
        found = [answer for word, answer in self.answers.items() if word in words]
        return found[0] if found else (0, "")


class UnitTests(SynchronousTestCase):
    """The unit's text."""

    def test_rules(self) -> None:
        """Workers outlive a stop and the want of memory; what starting again cannot help stays."""
        lines = units.systemd_unit(a_program()).splitlines()
        for line in (
            "Type=notify",
            "NotifyAccess=main",
            "KillMode=process",
            "OOMPolicy=continue",
            "Restart=on-failure",
            "RestartPreventExitStatus=2 3 4 5",
            "WantedBy=default.target",
        ):
            self.assertIn(line, lines)
        self.assertNotIn("network-online.target", "\n".join(lines))

    def test_quoting(self) -> None:
        """Spaces, per cent signs, quotes, dollars and backslashes arrive as they are."""
        text = units.systemd_unit(a_program())
        self.assertIn("100%%n", text)
        self.assertIn("$$HOME", text)
        self.assertEqual(units.words_of(text), a_program().words)
        self.assertEqual(units.environment_of(text), a_program().environment)

    def test_no_line_breaks(self) -> None:
        """What cannot stand in a unit is a mistake of the command line, and adds no line to it."""
        for word in ("a\nExecStart=/bin/evil", "a\rb", "a\0b", "a\x1bb", "a\udcffb"):
            with self.assertRaises(UsageError, msg=repr(word)):
                units.systemd_unit(a_program(words=["/bin/x", word]))
            with self.assertRaises(UsageError, msg=repr(word)):
                units.systemd_unit(a_program(environment={"PATH": word}))
        with self.assertRaises(UsageError):
            units.launchd_agent(a_program(words=["/bin/x", "a\0b"]))

    def test_names(self) -> None:
        """One unit per profile."""
        self.assertEqual(units.unit_name("default"), "pi-telegram.service")
        self.assertEqual(units.unit_name("work"), "pi-telegram-work.service")
        self.assertEqual(units.agent_label("work"), "pi-telegram.work")

    def test_systemd_takes_it(self) -> None:
        """systemd's own check has nothing to say about it, strange paths included."""
        analyze = shutil.which("systemd-analyze")
        self.assertIsNotNone(analyze, "install systemd: its systemd-analyze checks the unit")
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "pi-telegram.service"
            python = Path(directory) / "my 100% $HOME pythön"
            python.symlink_to("/bin/sh")
            words = [str(python), "-c", BOOT, f"--root={STRANGE}"]
            program = a_program(
                words=words, environment={"PATH": "/a b/100%:/usr/bin", "X": STRANGE}
            )
            self.assertEqual(units.words_of(units.systemd_unit(program)), words)
            file.write_text(units.systemd_unit(program))
            done = self.verify(str(analyze), file, directory)
            said = [line for line in done.stderr.splitlines() if "pi-telegram" in line]
            self.assertEqual((done.returncode, said), (0, []), done.stderr)
            python.unlink()
            done = self.verify(str(analyze), file, directory)
            self.assertIn(f"{python} is not executable", done.stderr)

    def verify(self, analyze: str, file: Path, directory: str) -> Any:
        """Have systemd check a unit, without a manager and without a login."""
        return subprocess.run(
            [analyze, "--user", "verify", str(file)],
            capture_output=True,
            text=True,
            env={**os.environ, "XDG_RUNTIME_DIR": directory, "HOME": directory},
        )

    def test_launchd(self) -> None:
        """The agent is a right property list; workers outlive it; a clean end stays an end."""
        agent = plistlib.loads(units.launchd_agent(a_program(profile="work")))
        self.assertEqual(agent["Label"], "pi-telegram.work")
        self.assertEqual(agent["ProgramArguments"], a_program().words)
        self.assertEqual(agent["EnvironmentVariables"], a_program().environment)
        self.assertIs(agent["AbandonProcessGroup"], True)
        self.assertEqual(agent["KeepAlive"], {"SuccessfulExit": False})
        self.assertTrue(units.is_ours(units.launchd_agent(a_program())))
        self.assertFalse(units.is_ours(b"[Unit]\nDescription=pi-telegram daemon\n"))


class ManagerTests(SynchronousTestCase):
    """What the managers are asked."""

    def setUp(self) -> None:
        """A home directory and programs that only remember."""
        self.home = Path(self.mktemp()).absolute()
        self.home.mkdir()
        self.run_ = Programs()

    def test_systemd(self) -> None:
        """Read, enabled and started; restarted only when it ran with another content."""
        systemd = Systemd(self.run_, {}, self.home)
        self.assertEqual(
            systemd.file("work"), self.home / ".config/systemd/user/pi-telegram-work.service"
        )
        self.run_.answers["is-active"] = (3, "inactive")
        systemd.load("default", changed=True)
        verbs = [words[2] for words in self.run_.ran if words[0] == "systemctl"]
        self.assertEqual(verbs, ["is-active", "is-enabled", "daemon-reload", "enable"])
        self.run_.answers["is-active"] = (0, "active")
        for changed, last in ((False, "enable"), (True, "restart")):
            systemd.load("default", changed=changed)
            self.assertEqual(self.run_.ran[-1][2], last)
        systemd.unload("default")
        self.assertEqual(self.run_.ran[-1][2:], ("disable", "--now", "pi-telegram.service"))

    def test_no_manager(self) -> None:
        """Without a user manager the reason and the way out are said."""
        self.run_.answers["daemon-reload"] = (1, "Failed to connect to bus")
        with self.assertRaises(ServiceRefused) as caught:
            Systemd(self.run_, {}, self.home).load("default", changed=False)
        self.assertIn("Failed to connect to bus", str(caught.exception))
        self.assertIn("pi-telegram start", str(caught.exception))

    def test_lingering(self) -> None:
        """Lingering that is off is said with its cure."""
        systemd = Systemd(self.run_, {"XDG_CONFIG_HOME": "/etc/x"}, self.home)
        self.assertEqual(systemd.file("default"), Path("/etc/x/systemd/user/pi-telegram.service"))
        for said, lingers, hinted in (("Linger=no", False, True), ("Linger=yes", True, False)):
            self.run_.answers["show-user"] = (0, said)
            known = systemd.known("default")
            self.assertEqual((known.lingers, systemd.hint(known) is not None), (lingers, hinted))
        self.run_.answers["show-user"] = (1, "no such user")
        self.assertIsNone(systemd.known("default").lingers)

    def test_not_answered(self) -> None:
        """A manager that did not answer is not taken for one that said no."""
        systemd, launchd = Systemd(self.run_, {}, self.home), Launchd(self.run_, self.home)
        for code in (1, 124, 127):
            self.run_.answers["is-active"] = (code, "Failed to connect to bus")
            known = systemd.known("default")
            self.assertEqual((known.active, known.enabled), (None, None), code)
            self.assertIn("does not answer", systemd.hint(known) or "")
        for code in (3, 4):
            self.run_.answers["is-active"] = (code, "inactive")
            self.assertIs(systemd.known("default").active, False)
        self.run_.answers["print"] = (124, "launchctl did not answer")
        self.assertIsNone(launchd.known("default").active)

    def test_does_not_stop(self) -> None:
        """One that runs on although it was told to end is said; one nobody runs is no matter."""
        for manager in (Systemd(self.run_, {}, self.home), Launchd(self.run_, self.home)):
            self.run_.answers = {"disable": (1, "timed out"), "bootout": (5, "timed out")}
            with self.assertRaises(ServiceRefused) as caught:
                manager.unload("default")
            self.assertIn("timed out", str(caught.exception))
            self.run_.answers |= {"is-active": (3, ""), "print": (113, "")}
            manager.unload("default")
        self.run_.answers = {"bootout": (36, "in progress")}
        Launchd(self.run_, self.home).unload("default")
        self.assertEqual(self.run_.ran[-1][1], "bootout")

    def test_restart(self) -> None:
        """Each manager restarts it in its own words, or says why not."""
        systemd, launchd = Systemd(self.run_, {}, self.home), Launchd(self.run_, self.home)
        systemd.restart("work")
        launchd.restart("work")
        self.assertEqual(self.run_.ran[0][2:], ("restart", "pi-telegram-work.service"))
        self.assertEqual(self.run_.ran[1][1:3], ("kickstart", "-k"))
        self.run_.answers = {"restart": (1, "no"), "kickstart": (3, "no")}
        for manager in (systemd, launchd):
            with self.assertRaises(ServiceRefused):
                manager.restart("work")

    def test_interface(self) -> None:
        """The stand-in takes and gives what the real runner does."""
        signature = inspect.signature(run_program)
        self.assertEqual(
            inspect.signature(self.run_).return_annotation, signature.return_annotation
        )
        for run in (self.run_, run_program):
            code, said = run("true")
            self.assertEqual((code, said), (0, ""))

    def test_launchd(self) -> None:
        """Loaded once; loaded anew when its content changed; unloaded by its label."""
        launchd = Launchd(self.run_, self.home)
        self.run_.answers["print"] = (113, "not found")
        launchd.load("default", changed=True)
        self.assertEqual(self.run_.ran[-1][1], "bootstrap")
        self.run_.answers["print"] = (0, "")
        self.run_.ran.clear()
        launchd.load("default", changed=False)
        self.assertEqual([words[1] for words in self.run_.ran], ["print"])
        launchd.load("default", changed=True)
        self.assertEqual(
            [words[1] for words in self.run_.ran][1:], ["print", "bootout", "bootstrap"]
        )
        for damaged in (b"", b"<plist>", b"<?xml", plistlib.dumps({}), plistlib.dumps([1])):
            with self.assertRaises(ValueError, msg=repr(damaged)):
                launchd.words(damaged)
        self.assertIsNone(launchd.hint(Known(active=True, enabled=True, lingers=None)))
        self.run_.answers = {"print": (1, ""), "bootstrap": (5, "Input/output error")}
        with self.assertRaises(ServiceRefused):
            launchd.load("default", changed=True)

    def test_platforms(self) -> None:
        """Linux, macOS, and a sentence for others."""
        self.assertIsInstance(manager_for("linux", self.run_, {}, self.home), Systemd)
        self.assertIsInstance(manager_for("darwin", self.run_, {}, self.home), Launchd)
        with self.assertRaises(ServiceRefused):
            manager_for("win32", self.run_, {}, self.home)

    def test_missing_program(self) -> None:
        """A program that is not there is an answer, not a crash."""
        self.assertEqual(run_program("no-such-program-here")[0], 127)
        self.assertEqual(run_program("sh", "-c", "echo out; exit 3"), (3, "out"))


SYSTEMCTL = """#!/bin/sh
echo "$@" >> "$0.log"
case "$*" in *is-active*|*is-enabled*) exit "$(cat "$0.active")";; esac
"""


class CommandTests(CommandCase):
    """C{service …} as processes, with a stand-in for C{systemctl}."""

    def setUp(self) -> None:
        """Put the stand-in before everything else."""
        super().setUp()
        self.home = self.agent / "home"
        self.bin = self.agent / "bin dir"
        self.bin.mkdir()
        for name in ("systemctl", "loginctl"):
            (self.bin / name).write_text(SYSTEMCTL)
            (self.bin / name).chmod(0o755)
            (self.bin / f"{name}.active").write_text("3")
        self.unit = self.home / ".config/systemd/user/pi-telegram.service"
        self.configure({"profiles": {"default": {"botToken": "123:secret"}}, "other": 1})

    def service(self, *words: str) -> Any:
        """Run a command."""
        return self.cli("service", *words, environ=self.environ())

    def environ(self) -> dict[str, str]:
        """Where the stand-ins are found, and a home directory of its own."""
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        return {"HOME": str(self.home), "PATH": path, "XDG_CONFIG_HOME": ""}

    def doctor(self) -> Any:
        """Have everything looked at."""
        return self.cli("doctor", "--api-root", "http://127.0.0.1:9", environ=self.environ())

    def asked(self) -> list[str]:
        """What systemctl was asked."""
        log = self.bin / "systemctl.log"
        return log.read_text().splitlines() if log.exists() else []

    @deferred
    async def test_life(self) -> None:
        """Installed, looked at, installed again, removed: exactly our file and our setting."""
        root = self.agent / "pro 100% $x"
        root.mkdir()
        done = await self.service("install", "--root", str(root), "--pi", "sh")
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("--user enable --now pi-telegram.service", self.asked())
        words = units.words_of(self.unit.read_text())
        self.assertIn(f"--root={root}", words)
        self.assertIn(f"--agent-dir={self.agent}", words)
        self.assertIn(f"--pi={shutil.which('sh')}", words)
        self.assertTrue(os.path.isabs(words[0]))
        self.assertNotIn("secret", self.unit.read_text())
        self.assertIn(str(self.bin), units.environment_of(self.unit.read_text())["PATH"])
        self.assertEqual(self.configured()["cluster"], {"leader": "daemon"})
        (self.bin / "systemctl.active").write_text("0")
        shown = await self.service("status", "--json")
        report = json.loads(shown.out)
        self.assertEqual((shown.code, report["up_to_date"], report["active"]), (0, True, True))
        doctor = await self.doctor()
        self.assertIn("service", doctor.out)
        before = self.unit.read_text()
        await self.service("install", "--root", str(root), "--pi", "sh")
        self.assertEqual(self.unit.read_text(), before)
        self.assertNotIn("--user restart pi-telegram.service", self.asked())
        await self.service("install", "--pi", "sh")
        self.assertIn("--user restart pi-telegram.service", self.asked())
        done = await self.service("uninstall")
        self.assertEqual(done.code, 0, done.err)
        self.assertFalse(self.unit.exists())
        stopped = self.asked().index("--user disable --now pi-telegram.service")
        self.assertEqual(self.asked()[stopped:][1], "--user daemon-reload")
        self.assertNotIn("cluster", self.configured())
        self.assertEqual(self.configured()["other"], 1)
        self.assertEqual((await self.service("uninstall")).code, 0)

    @deferred
    async def test_foreign_unit(self) -> None:
        """A unit that somebody else wrote is neither replaced nor removed."""
        self.unit.parent.mkdir(parents=True)
        self.unit.write_text("[Service]\nExecStart=/bin/true\n")
        for verb in ("install", "uninstall", "status"):
            done = await self.service(verb)
            self.assertEqual(done.code, 1, verb)
            self.assertIn("did not write", done.err)
        self.assertEqual(self.unit.read_text(), "[Service]\nExecStart=/bin/true\n")
        self.assertEqual(self.asked(), [])

    @deferred
    async def test_another_agent_directory(self) -> None:
        """A service belongs to one place: from another it is neither replaced nor removed."""
        await self.service("install", "--pi", "sh")
        before, asked = self.unit.read_text(), len(self.asked())
        other = self.agent / "other"
        other.mkdir()
        for verb in ("install", "uninstall", "status"):
            done = await self.service(verb, f"--agent-dir={other}")
            self.assertEqual(done.code, 1, verb)
            self.assertIn("another agent directory", done.err)
        self.assertEqual((self.unit.read_text(), len(self.asked())), (before, asked))
        self.unit.write_text(before.replace("ExecStart=", "#"))
        self.assertEqual((await self.service("install", "--pi", "sh")).code, 0)
        self.assertEqual(self.unit.read_text(), before)

    @deferred
    async def test_own_setting_only(self) -> None:
        """A leader that was chosen before stays, and one that was changed since too."""
        self.configure({"cluster": {"leader": "auto"}})
        await self.service("install", "--pi", "sh")
        self.assertEqual(self.configured()["cluster"]["leader"], "daemon")
        await self.service("uninstall")
        self.assertEqual(self.configured()["cluster"]["leader"], "auto")
        self.configure({"cluster": {"leader": "daemon"}})
        await self.service("install", "--pi", "sh")
        await self.service("uninstall")
        self.assertEqual(self.configured()["cluster"]["leader"], "daemon")

    @deferred
    async def test_setting_of_two_services(self) -> None:
        """The services of two profiles share the setting: the last one that goes takes it back."""
        self.configure({"profiles": {"default": {"botToken": "1:a"}, "two": {"botToken": "2:b"}}})
        for profile in ("default", "two"):
            done = await self.service("install", "--pi", "sh", "--profile", profile)
            self.assertEqual(done.code, 0, done.err)
        await self.service("uninstall")
        self.assertFalse(self.unit.exists())
        self.assertEqual(self.configured()["cluster"]["leader"], "daemon")
        await self.service("uninstall", "--profile", "two")
        self.assertNotIn("cluster", self.configured())

    @deferred
    async def test_no_manager(self) -> None:
        """systemd that is not there: exit 1 with the way out; the file is kept to be looked at."""
        (self.bin / "systemctl").write_text("#!/bin/sh\necho no bus >&2\nexit 1\n")
        done = await self.service("install", "--pi", "sh")
        self.assertEqual(done.code, 1)
        self.assertIn("no bus", done.err)
        self.assertIn("pi-telegram start", done.err)
        self.assertTrue(self.unit.exists())
        self.assertNotIn("cluster", self.configured())
        shown = await self.service("status", "--json")
        report = json.loads(shown.out)
        self.assertEqual((shown.code, report["installed"], report["active"]), (1, True, None))
        self.assertIn("does not answer", (await self.doctor()).out)

    @deferred
    async def test_runs_on(self) -> None:
        """A service that does not end keeps its file, so that it can still be told to."""
        await self.service("install", "--pi", "sh")
        (self.bin / "systemctl.active").write_text("0")
        with open(self.bin / "systemctl", "a") as script:
            script.write('case "$*" in *disable*) echo timed out; exit 1;; esac\n')
        done = await self.service("uninstall")
        self.assertEqual(done.code, 1)
        self.assertIn("timed out", done.err)
        self.assertTrue(self.unit.exists())
        self.assertEqual(self.configured()["cluster"], {"leader": "daemon"})

    @deferred
    async def on(self, platform: str, *words: str) -> tuple[int, str]:
        """Run a command of another platform; fires with its exit code and what it complains of."""
        boot = (
            "import sys; from pitelegram.commands import parser, service;"
            "args = parser.build().parse_args(['service', *sys.argv[2:]]);"
            "sys.exit(getattr(service, sys.argv[2])(args, sys.argv[1]))"
        )
        environ = {**os.environ, **self.environ(), "PI_CODING_AGENT_DIR": str(self.agent)}
        arguments = ["-c", boot, platform, *words]
        _, err, code = await getProcessOutputAndValue(sys.executable, arguments, env=environ)
        return code, err.decode()

    @deferred
    async def test_agent_of_launchd(self) -> None:
        """On macOS an agent is written, loaded, found up to date, unloaded and removed."""
        (self.bin / "launchctl").write_text(
            '#!/bin/sh\necho "$@" >> "$0.log"\n[ "$1" != print ] || exit 113\n'
        )
        (self.bin / "launchctl").chmod(0o755)
        code, err = await self.on("darwin", "install", "--pi", "sh", "--profile", "work")
        self.assertEqual(code, 0, err)
        file = self.home / "Library/LaunchAgents/pi-telegram.work.plist"
        words = plistlib.loads(file.read_bytes())["ProgramArguments"]
        self.assertIn("--profile=work", words)
        self.assertIn(f"--agent-dir={self.agent}", words)
        self.assertEqual(file.stat().st_mode & 0o777, 0o644)
        code, err = await self.on("darwin", "uninstall", "--profile", "work")
        self.assertEqual((code, file.exists()), (0, False), err)
        asked = (self.bin / "launchctl.log").read_text().splitlines()
        domain = f"gui/{os.getuid()}"
        self.assertIn(f"bootstrap {domain} {file}", asked)
        self.assertEqual(asked[-1], f"bootout {domain}/pi-telegram.work")
        self.assertEqual(self.asked(), [])

    @deferred
    async def test_line_break(self) -> None:
        """A directory that cannot stand in a unit is refused before anything is written."""
        root = self.agent / "two\nlines"
        root.mkdir()
        done = await self.service("install", "--pi", "sh", "--root", str(root))
        self.assertEqual(done.code, 2, done.err)
        self.assertNotIn("Traceback", done.err)
        self.assertFalse(self.unit.exists())
        self.assertNotIn("cluster", self.configured())

    @deferred
    async def test_start_and_restart_beside_it(self) -> None:
        """C{start} says that the service runs; C{restart} leaves it to its manager."""
        await self.service("install", "--pi", "sh")
        self.own()
        environ = self.environ()
        done = await self.cli("start", environ=environ)
        self.assertEqual(done.code, 4)
        self.assertNotIn("runs as a service", done.err)  # it is installed and does not run
        (self.bin / "systemctl.active").write_text("0")
        done = await self.cli("start", environ=environ)
        self.assertEqual(done.code, 4)
        self.assertIn("runs as a service already", done.err)
        done = await self.cli("restart", "--log-level=debug", environ=environ)
        self.assertEqual(done.code, 1)
        self.assertIn("service install", done.err)
        self.assertNotIn("--user restart pi-telegram.service", self.asked())
        done = await self.cli("restart", environ=environ)
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(self.asked()[-1], "--user restart pi-telegram.service")

    @deferred
    async def test_platform_without_services(self) -> None:
        """Where no manager is known nothing is written, and the way out is said."""
        code, err = await self.on("sunos5", "install", "--pi", "sh")
        self.assertEqual(code, 1, err)
        self.assertIn("pi-telegram start", err)
        self.assertNotIn("cluster", self.configured())
        self.assertFalse(self.home.exists())

    @deferred
    async def test_token_in_a_variable(self) -> None:
        """A service does not get the variable, and that is said."""
        self.configure({"profiles": {"default": {"botToken": "$TOKEN"}}})
        done = await self.service("install", "--pi", "sh")
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("botTokenFile", done.err)

    @deferred
    async def test_proxy_with_a_password(self) -> None:
        """It is in no unit."""
        await self.service("install", "--pi", "sh", "--proxy", "http://me:pass@proxy:1")
        self.assertNotIn("pass", self.unit.read_text())
        await self.service("install", "--pi", "sh", "--proxy", "http://proxy:1")
        self.assertIn("--proxy=http://proxy:1", self.unit.read_text())
