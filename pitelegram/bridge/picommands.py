"""Pi's prompt templates and skills under names that Telegram takes as commands."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import attrs

SOURCES = ("prompt", "skill")
"""What Pi lists and a Thread may run; commands of extensions stay in the terminal."""

BUILT_IN = frozenset(
    {
        "abort",
        "attach",
        "compact",
        "continue",
        "daemon",
        "detach",
        "help",
        "model",
        "name",
        "new",
        "next",
        "queue",
        "sessions",
        "settings",
        "start",
        "status",
        "stop",
        "thinking",
        "workers",
    }
)
"""Names that are ours, whatever Pi lists."""

LONGEST = 32
"""Characters of a Telegram command's name."""

_OTHER = re.compile(r"[^a-z0-9_]+")


@attrs.frozen
class Template:
    """One prompt template or skill.

    @ivar name: as Telegram has it.
    @ivar command: as Pi has it, without the slash.
    """

    name: str
    command: str
    description: str = ""

    def prompt(self, argument: str) -> str:
        """Return what Pi is given: its own command with the arguments behind it."""
        return f"/{self.command} {argument}".rstrip()


def telegram_name(command: str) -> str:
    """Return the name of a command as C{[a-z0-9_]{1,32}}; empty when nothing is left of it."""
    return _OTHER.sub("_", command.lower()).strip("_")[:LONGEST].strip("_")


def templates(listed: Iterable[Any]) -> list[Template]:
    """Return what of C{get_commands} a Thread may run, in Pi's order.

    A name that is ours, or taken already, is left out; so is a record that is not understood.  Of two
    commands with one name Pi runs the extension's, so a template of that name is left out, too.
    """
    found: dict[str, Template] = {}
    listed = list(listed)
    elsewhere = {
        record.get("name")
        for record in listed
        if isinstance(record, dict) and record.get("source") not in SOURCES
        if isinstance(record.get("name"), str)
    }
    for record in listed:
        if not isinstance(record, dict) or record.get("source") not in SOURCES:
            continue
        command, words = record.get("name"), record.get("description")
        if not isinstance(command, str) or not command or command.split() != [command]:
            continue
        if command in elsewhere:
            continue
        name = telegram_name(command)
        if name and name not in BUILT_IN:
            text = words if isinstance(words, str) else ""
            found.setdefault(name, Template(name, command, text))
    return list(found.values())
