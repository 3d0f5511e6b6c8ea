"""The daemon as a service: unit texts, service managers, and the commands."""

from __future__ import annotations

import json
import os
import plistlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.commands import units
from pitelegram.commands.managers import (
    Known,
    Launchd,
    ServiceRefused,
    Systemd,
    manager_for,
    run_program,
)
from pitelegram.commands.units import Program
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
        with self.assertRaises(ValueError):
            units.systemd_unit(a_program(words=["/bin/x", "a\nExecStart=/bin/evil"]))

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
            program = a_program(words=["/bin/sh", "-c", "exit 0", f"--root={STRANGE}"])
            file.write_text(units.systemd_unit(program))
            done = subprocess.run(
                [str(analyze), "--user", "verify", str(file)],
                capture_output=True,
                text=True,
                env={**os.environ, "XDG_RUNTIME_DIR": directory, "HOME": directory},
            )
        said = [line for line in done.stderr.splitlines() if "pi-telegram" in line]
        self.assertEqual((done.returncode, said), (0, []), done.stderr)

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
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        environ = {"HOME": str(self.home), "PATH": path, "XDG_CONFIG_HOME": ""}
        return self.cli("service", *words, environ=environ)

    def doctor(self) -> Any:
        """Have everything looked at."""
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        environ = {"HOME": str(self.home), "PATH": path, "XDG_CONFIG_HOME": ""}
        return self.cli("doctor", "--api-root", "http://127.0.0.1:9", environ=environ)

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
    async def test_no_manager(self) -> None:
        """systemd that is not there: exit 1 with the way out; the file is kept to be looked at."""
        (self.bin / "systemctl").write_text("#!/bin/sh\necho no bus >&2\nexit 1\n")
        done = await self.service("install", "--pi", "sh")
        self.assertEqual(done.code, 1)
        self.assertIn("no bus", done.err)
        self.assertIn("pi-telegram start", done.err)
        self.assertTrue(self.unit.exists())

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
