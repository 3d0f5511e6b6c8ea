"""The texts of service units: systemd's for one user, and launchd's agents."""

from __future__ import annotations

import plistlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from pitelegram.errors import UsageError

MARKER = "Written by pi-telegram service install; do not edit."
"""Stands in every unit of ours: a file without it is somebody else's."""

RESTART_SECONDS = 5
BURST, BURST_SECONDS = 10, 300
"""systemd gives up after that many starts in so many seconds."""

NO_RESTART = "2 3 4 5"
"""Exit codes that starting again cannot help: usage, not configured, a live owner, lost for good."""

_UNSAFE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
"""Line breaks, control characters, and bytes that were no UTF-8: systemd drops such lines."""

_WORD = re.compile(r'"(?:[^"\\]|\\.)*"')

KEPT = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
    *("SSL_CERT_FILE", "PI_TELEGRAM_API_ROOT", "PI_TELEGRAM_ROOTS", "PI_TELEGRAM_LOG_LEVEL"),
    *("PI_TELEGRAM_NETWORK_FAMILY", "PI_TELEGRAM_CONTROL_SOCKET", "PI_TELEGRAM_SOCKET_GROUP"),
)
"""Variables of whoever installs that the daemon needs later; a service gets none of them."""


@attrs.frozen(kw_only=True)
class Program:
    """What a unit runs.

    @ivar words: program and arguments, absolute; never a token or a password.
    @ivar environment: its variables.
    @ivar profile: the bot profile, which names the unit.
    @ivar log: where launchd writes what it prints.
    """

    words: Sequence[str]
    environment: Mapping[str, str]
    profile: str
    log: Path


def unit_name(profile: str) -> str:
    """Return the name of a profile's systemd unit."""
    return f"pi-telegram{'' if profile == 'default' else f'-{profile}'}.service"


def agent_label(profile: str) -> str:
    """Return the label of a profile's launchd agent."""
    return f"pi-telegram{'' if profile == 'default' else f'.{profile}'}"


def systemd_unit(program: Program) -> str:
    """Return the text of a systemd user unit (rule D33).

    C{KillMode=process} and C{OOMPolicy=continue} leave the workers, which live in the unit's control
    group, alone when the daemon is stopped or a worker is killed for want of memory.
    """
    program_word, *arguments = program.words
    command = [quoted(program_word), *(quoted(word, command=True) for word in arguments)]
    environment = [
        f"Environment={quoted(f'{name}={value}')}"
        for name, value in sorted(program.environment.items())
    ]
    lines = [
        f"# {MARKER}",
        "[Unit]",
        f"Description=pi-telegram daemon (profile {program.profile})",
        f"StartLimitIntervalSec={BURST_SECONDS}",
        f"StartLimitBurst={BURST}",
        "",
        "[Service]",
        "Type=notify",
        "NotifyAccess=main",
        f"ExecStart={' '.join(command)}",
        *environment,
        "KillMode=process",
        "OOMPolicy=continue",
        "Restart=on-failure",
        f"RestartSec={RESTART_SECONDS}",
        f"RestartPreventExitStatus={NO_RESTART}",
        "TimeoutStartSec=120",
        "TimeoutStopSec=60",
        "UMask=0077",
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return "\n".join(lines) + "\n"


def launchd_agent(program: Program) -> bytes:
    """Return the property list of a launchd agent.

    C{AbandonProcessGroup} leaves the workers alone when the daemon ends.

    @raise UsageError: a text cannot stand in a property list.
    """
    agent: dict[str, Any] = {
        "Label": agent_label(program.profile),
        "Comment": MARKER,
        "ProgramArguments": list(program.words),
        "EnvironmentVariables": dict(program.environment),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "AbandonProcessGroup": True,
        "ProcessType": "Background",
        "Umask": 0o077,
        "StandardOutPath": str(program.log),
        "StandardErrorPath": str(program.log),
    }
    try:
        return plistlib.dumps(agent)
    except ValueError:
        raise UsageError("a path or option has a control character in it") from None


def quoted(text: str, command: bool = False) -> str:
    """Return a text as one word of a unit file.

    C{%} begins a specifier everywhere; C{$} a variable among the arguments of a
    command only, not in its program's path.

    @raise UsageError: the text cannot stand in a unit file.
    """
    if _UNSAFE.search(text):
        raise UsageError("a path or option has a line break or a control character in it")
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    if command:
        text = text.replace("$", "$$")
    return f'"{text}"'


def words_of(unit: str) -> list[str]:
    """Return the words of a systemd unit's command line, as its program gets them.

    @raise ValueError: there is none that this program could have written.
    """
    line = next((each for each in unit.splitlines() if each.startswith("ExecStart=")), "")
    words = [_unquoted(word) for word in _WORD.findall(line)]
    if not words:
        raise ValueError("the unit has no command line")
    return [words[0], *(word.replace("$$", "$") for word in words[1:])]


def environment_of(unit: str) -> dict[str, str]:
    """Return the variables that a systemd unit sets."""
    lines = [each for each in unit.splitlines() if each.startswith("Environment=")]
    pairs = [_unquoted(word).partition("=") for line in lines for word in _WORD.findall(line)]
    return {name: value for name, _, value in pairs}


def _unquoted(word: str) -> str:
    return re.sub(r"\\(.)", r"\1", word[1:-1]).replace("%%", "%")


def is_ours(data: bytes) -> bool:
    """Whether a file is a unit that this program wrote."""
    return MARKER.encode() in data
