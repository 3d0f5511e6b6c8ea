"""Service managers: systemd for one user, and launchd; asked through their own programs."""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol
from xml.parsers.expat import ExpatError

import attrs

from pitelegram.commands import units
from pitelegram.commands.units import Program
from pitelegram.errors import PiTelegramError

SECONDS = 100.0
"""A stop may take as long as the unit's C{TimeoutStopSec}."""

NO_PROGRAM, NO_ANSWER = 127, 124

NOT_ACTIVE = (3, 4)
"""C{systemctl is-active} says that it does not run, or that there is none; others are failures."""

IN_PROGRESS = 36
"""launchd's C{EINPROGRESS}: the agent is ending."""


class ServiceRefused(PiTelegramError):
    """The service manager did not do it; says what the operator can do."""


class Run(Protocol):
    """Runs a program of the system and returns its exit code and what it printed."""

    def __call__(self, *words: str) -> tuple[int, str]: ...


def run_program(*words: str) -> tuple[int, str]:
    """Run a program; one that is not there ends with C{NO_PROGRAM}."""
    if shutil.which(words[0]) is None:
        return NO_PROGRAM, f"{words[0]} is not there"
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return NO_ANSWER, f"{words[0]} did not answer"
    return done.returncode, (done.stdout + done.stderr).strip()


@attrs.frozen(kw_only=True)
class Known:
    """What a manager says of a unit.

    @ivar active: it runs, by the manager's word; None when the manager did not answer.
    @ivar enabled: it starts by itself; None likewise.
    @ivar lingers: services go on while the user is not logged in; None where that is no question.
    """

    active: bool | None
    enabled: bool | None
    lingers: bool | None


class Systemd:
    """systemd's manager of one user.

    @param home: the user's home directory.
    """

    name = "systemd"

    def __init__(self, run: Run, environ: Mapping[str, str], home: Path) -> None:
        self._run = run
        base = environ.get("XDG_CONFIG_HOME")
        self._directory = (Path(base) if base else home / ".config") / "systemd" / "user"

    def file(self, profile: str) -> Path:
        """Return where a profile's unit is."""
        return self._directory / units.unit_name(profile)

    def text(self, program: Program) -> bytes:
        """Return the unit."""
        return units.systemd_unit(program).encode()

    def words(self, text: bytes) -> list[str]:
        """Return the command line of a unit of ours."""
        return units.words_of(text.decode())

    def load(self, profile: str, changed: bool) -> None:
        """Have the manager read the file, start it, and start it by itself from now on.

        @raise ServiceRefused: it did not.
        """
        unit = units.unit_name(profile)
        was_active = self.known(profile).active
        self._must("daemon-reload")
        self._must("enable", "--now", unit)
        if was_active and changed:
            self.restart(profile)

    def unload(self, profile: str) -> None:
        """Stop it, and start it no more; a manager that is not there has nothing to forget.

        @raise ServiceRefused: it runs on.
        """
        code, said = self._run("systemctl", "--user", "disable", "--now", units.unit_name(profile))
        if code != 0 and self.known(profile).active:
            raise ServiceRefused(
                f"systemd did not stop the service ({_last(said, code)}); the file is kept"
            )

    def restart(self, profile: str) -> None:
        """Stop and start it.

        @raise ServiceRefused: it was not.
        """
        self._must("restart", units.unit_name(profile))

    def forget(self) -> None:
        """A file is gone: have the manager notice."""
        self._run("systemctl", "--user", "daemon-reload")

    def known(self, profile: str) -> Known:
        """Ask the manager."""
        unit = units.unit_name(profile)
        active, _ = self._run("systemctl", "--user", "is-active", "--quiet", unit)
        enabled, _ = self._run("systemctl", "--user", "is-enabled", "--quiet", unit)
        code, said = self._run("loginctl", "show-user", str(os.getuid()), "--property=Linger")
        lingers = said.endswith("=yes") if code == 0 else None
        if active not in (0, *NOT_ACTIVE):
            return Known(active=None, enabled=None, lingers=lingers)
        return Known(active=active == 0, enabled=enabled == 0, lingers=lingers)

    def hint(self, known: Known) -> str | None:
        """Return what else the operator should do."""
        if known.active is None:
            return "systemd's manager of your services does not answer; use: pi-telegram start"
        if known.lingers is False:
            return (
                "lingering is off: the daemon stops when you log out. Switch it on with:"
                " loginctl enable-linger"
            )
        return None

    def _must(self, *words: str) -> None:
        code, said = self._run("systemctl", "--user", *words)
        if code != 0:
            raise ServiceRefused(
                f"systemd did not take the unit ({_last(said, code)}); the file is kept. Without a user manager"
                " (in a container, say) use: pi-telegram start"
            )


class Launchd:
    """launchd's agents of one user."""

    name = "launchd"

    def __init__(self, run: Run, home: Path) -> None:
        self._run = run
        self._directory = home / "Library" / "LaunchAgents"
        self._domain = f"gui/{os.getuid()}"

    def file(self, profile: str) -> Path:
        """Return where a profile's agent is."""
        return self._directory / f"{units.agent_label(profile)}.plist"

    def text(self, program: Program) -> bytes:
        """Return the property list."""
        return units.launchd_agent(program)

    def words(self, text: bytes) -> list[str]:
        """Return the command line of an agent of ours.

        @raise ValueError: it is damaged.
        """
        try:
            return [str(word) for word in plistlib.loads(text)["ProgramArguments"]]
        except (ExpatError, KeyError, TypeError) as error:
            raise ValueError("the agent has no command line") from error

    def load(self, profile: str, changed: bool) -> None:
        """Load and start it.

        @raise ServiceRefused: launchd did not.
        """
        if self.known(profile).active:
            if not changed:
                return
            self.unload(profile)
        code, said = self._run("launchctl", "bootstrap", self._domain, str(self.file(profile)))
        if code != 0:
            raise ServiceRefused(
                f"launchd did not take the agent ({_last(said, code)}); the file is kept"
            )

    def unload(self, profile: str) -> None:
        """Stop and unload it.

        @raise ServiceRefused: it runs on.
        """
        label = units.agent_label(profile)
        code, said = self._run("launchctl", "bootout", f"{self._domain}/{label}")
        if code not in (0, IN_PROGRESS) and self.known(profile).active:
            raise ServiceRefused(
                f"launchd did not stop the agent ({_last(said, code)}); the file is kept"
            )

    def restart(self, profile: str) -> None:
        """Stop and start it.

        @raise ServiceRefused: it was not.
        """
        label = units.agent_label(profile)
        code, said = self._run("launchctl", "kickstart", "-k", f"{self._domain}/{label}")
        if code != 0:
            raise ServiceRefused(f"launchd did not restart the agent ({_last(said, code)})")

    def forget(self) -> None:
        """launchd keeps nothing of a file that is gone."""

    def known(self, profile: str) -> Known:
        """Ask launchd."""
        label = units.agent_label(profile)
        code, _ = self._run("launchctl", "print", f"{self._domain}/{label}")
        active = None if code in (NO_ANSWER, NO_PROGRAM) else code == 0
        return Known(active=active, enabled=self.file(profile).exists(), lingers=None)

    def hint(self, known: Known) -> str | None:
        """Nothing more is to be done."""
        return None


Manager = Systemd | Launchd


def _last(said: str, code: int) -> str:
    return said.splitlines()[-1] if said else f"exit code {code}"


def manager_for(platform: str, run: Run, environ: Mapping[str, str], home: Path) -> Manager:
    """Return the service manager of a platform (C{sys.platform}).

    @raise ServiceRefused: there is none that this program knows.
    """
    if platform == "darwin":
        return Launchd(run, home)
    if platform.startswith("linux"):
        return Systemd(run, environ, home)
    raise ServiceRefused(
        "services are supported with systemd and launchd only; use: pi-telegram start"
    )


def found(words: Sequence[str], path: str | None) -> list[str]:
    """Return a command with its program's absolute path; as it is when that is not found."""
    program = shutil.which(words[0], path=path) if words else None
    return [program, *words[1:]] if program else list(words)
