"""Which sessions Pi has of a directory, and what they are about."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import attrs

from pitelegram.kernel import jsonio
from pitelegram.pi.records import message_text
from pitelegram.pi.sessions import read_header

MOST_LOOKED_AT = 2000
"""Files whose header is read for one list; the newest come first."""
MOST_LISTED = 300
_PART = 1 << 17
"""Bytes at each end of a file that are searched for its name and its first words."""


@attrs.frozen
class SessionFile:
    """One session file.

    @ivar modified: seconds since the epoch.
    """

    path: Path
    modified: float


def sessions_of(home: Path, directory: str) -> list[SessionFile]:
    """Return the sessions below C{home} that work in C{directory}, the newest first.

    Links are not followed: what they lead to is none of Pi's own.

    @param directory: a real path.
    """
    found: list[SessionFile] = []
    looked = 0
    for each in sorted(_files(home), key=lambda file: -file.modified):
        if looked == MOST_LOOKED_AT or len(found) == MOST_LISTED:
            break
        looked += 1
        header = read_header(each.path)
        if header is not None and os.path.realpath(header.cwd) == directory:
            found.append(each)
    return found


def _files(home: Path) -> Iterator[SessionFile]:
    """Every session file in the directory and those right below it."""
    for place in (home, *_directories(home)):
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False):
                        yield SessionFile(Path(entry.path), entry.stat().st_mtime)
        except OSError:
            continue


def _directories(home: Path) -> list[Path]:
    try:
        with os.scandir(home) as entries:
            return [Path(e.path) for e in entries if e.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def session_words(path: Path) -> tuple[str, str]:
    """Return a session's name and what the user said first; what is not found is empty."""
    try:
        with open(path, "rb") as file:
            head = file.read(_PART)
            size = os.fstat(file.fileno()).st_size
            tail = b""
            if size > _PART:
                file.seek(max(_PART, size - _PART))
                tail = file.read(_PART)
    except OSError:
        return "", ""
    name = words = ""
    for line in (*head.split(b"\n"), *tail.split(b"\n")):
        if b'"session_info"' in line:
            name = _name(line) or name
        elif not words and b'"role":"user"' in line:
            words = _said(line)
    return name, words


def _name(line: bytes) -> str:
    record = _record(line)
    name = record.get("name") if record.get("type") == "session_info" else None
    return name.strip() if isinstance(name, str) else ""


def _said(line: bytes) -> str:
    message = _record(line).get("message")
    if not isinstance(message, dict) or message.get("role") != "user":
        return ""
    return message_text(message).strip()[:1000]


def _record(line: bytes) -> dict[str, object]:
    try:
        value = jsonio.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
