"""Pi's session files, read for two questions: is it one, and what became of a prompt.

A session is JSON lines: a header, then entries with C{type} and C{id}.  Pi appends the user's
message before the model is asked, each finished assistant message, and each tool result.  A killed
Pi leaves at most a last line without its LF.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import attrs

from pitelegram.errors import WorkerError
from pitelegram.kernel import jsonio
from pitelegram.pi.records import message_text

DAMAGED = "damaged"
"""Type of the stand-in for a line that is no entry."""

_CHUNK = 1 << 16
_HEADER_LIMIT = 1 << 16
_ENTRY_ID = re.compile(rb'\A\{"type":"[a-z_]+","id":"([A-Za-z0-9_-]+)"')


class SessionChanged(WorkerError):
    """The session file is not the one that was marked: shorter, or other entries."""


@attrs.frozen
class SessionHeader:
    """The first line of a session file.

    @ivar cwd: where Pi's tools run in this session.
    """

    session_id: str
    cwd: str
    version: int


@attrs.frozen
class SessionMark:
    """A place in a session file: behind its last whole line.

    @ivar size: bytes up to there; 0 when the file does not exist yet.
    @ivar entry: id of the last entry, None when there is none.
    """

    size: int
    entry: str | None


@attrs.frozen
class NeverRan:
    """Pi did not take this prompt."""


@attrs.frozen
class Finished:
    """Pi answered it.

    @ivar text: the answer.
    @ivar entry: id of the answer's entry; prompts that were answered together share it.
    """

    text: str
    entry: str


@attrs.frozen
class Unknown:
    """Pi took it, or may have; there is no whole answer."""


Outcome = NeverRan | Finished | Unknown


def session_home(agent_dir: Path, environment: Mapping[str, str]) -> Path:
    """Return the directory that holds Pi's session files: variable, Pi's own setting, default.

    @param environment: Pi's.
    """
    told = environment.get("PI_CODING_AGENT_SESSION_DIR")
    if not told:
        try:
            settings: Any = jsonio.loads((agent_dir / "settings.json").read_bytes())
        except (OSError, ValueError, RecursionError):
            settings = None
        told = settings.get("sessionDir") if isinstance(settings, dict) else None
    if not isinstance(told, str) or not told:
        return agent_dir / "sessions"
    return Path(os.path.expanduser(told))


def read_header(path: Path) -> SessionHeader | None:
    """Return the header of a session file; None when it is not a readable session."""
    try:
        with _open(path) as file:
            line = file.readline(_HEADER_LIMIT)
    except OSError:
        return None
    record = _object(line)
    if record is None or record.get("type") != "session":
        return None
    session_id, cwd, version = record.get("id"), record.get("cwd"), record.get("version")
    if not (isinstance(session_id, str) and isinstance(cwd, str) and isinstance(version, int)):
        return None
    return SessionHeader(session_id, cwd, version)


def mark(path: Path) -> SessionMark:
    """Return the place behind the last whole line; size 0 for a missing file."""
    try:
        with _open(path) as file:
            return _mark(file, os.fstat(file.fileno()).st_size)
    except OSError:
        return SessionMark(0, None)


def after_mark(path: Path, place: SessionMark) -> list[dict[str, Any]]:
    """Return the entries behind a mark, in order; a cut last line is left out.

    A damaged line in between, which a killed Pi leaves and the next one closes with an LF, stands as
    an entry of the type L{DAMAGED}.

    @raise SessionChanged: the file does not reach to the mark, or has another entry there.
    """
    try:
        file = _open(path)
    except OSError:
        if place.size:
            raise SessionChanged("the session file is gone") from None
        return []
    with file:
        size = os.fstat(file.fileno()).st_size
        if size < place.size or _mark(file, place.size) != place:
            raise SessionChanged("the session file was replaced")
        file.seek(place.size)
        return list(_entries(file, header=place.size == 0))


def outcomes(path: Path, place: SessionMark, prompts: Sequence[str]) -> list[Outcome]:
    """Return what became of prompts, in the order in which they were handed over.

    Pi must be gone.  All prompts of a run that is not settled are asked for together, with the mark
    of the first: otherwise one of them would take another's answer for its own.

    @param prompts: the texts as they were given to Pi.
    """
    try:
        entries = after_mark(path, place)
    except SessionChanged:
        return [Unknown() for _ in prompts]
    users = [position for position, entry in enumerate(entries) if _role(entry) == "user"]
    taken = _matched(entries, users, prompts)
    strange = len(users) > sum(position is not None for position in taken)
    strange = strange or any(entry["type"] == DAMAGED for entry in entries if "type" in entry)
    return [
        (Unknown() if strange else NeverRan()) if position is None else _answer(entries, position)
        for position in taken
    ]


def outcome(path: Path, place: SessionMark, prompt: str) -> Outcome:
    """Return what became of the only prompt of a run; see L{outcomes}."""
    return outcomes(path, place, [prompt])[0]


def _matched(
    entries: Sequence[dict[str, Any]], users: Sequence[int], prompts: Sequence[str]
) -> list[int | None]:
    """For each prompt the user entry that is it; every entry is taken once."""
    free = list(users)
    found: list[int | None] = []
    for prompt in prompts:
        same = (p for p in free if is_prompt(message_text(entries[p]["message"]), prompt))
        position = next(same, None)
        if position is not None:
            free.remove(position)
        found.append(position)
    return found


def is_prompt(text: str, prompt: str) -> bool:
    """Whether a message's text is that prompt: the same, or with Pi's note about a picture behind.

    Blanks around it do not count.
    """
    text, prompt = text.strip(), prompt.strip()
    return text == prompt or text.startswith((f"{prompt}\n\n[Image", f"{prompt}\n[Image"))


def _answer(entries: Sequence[dict[str, Any]], position: int) -> Outcome:
    for entry in entries[position + 1 :]:
        if _role(entry) == "assistant" and entry["message"].get("stopReason") == "stop":
            return Finished(message_text(entry["message"]), str(entry.get("id", "")))
    return Unknown()


def _role(entry: dict[str, Any]) -> object:
    message = entry.get("message")
    return (
        message.get("role")
        if entry.get("type") == "message" and isinstance(message, dict)
        else None
    )


def _open(path: Path) -> IO[bytes]:
    """Open a regular file; never waits on a pipe that has its name."""
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError("not a regular file")
    return file


def _entries(file: IO[bytes], header: bool) -> Iterator[dict[str, Any]]:
    for line in file:
        if not line.endswith(b"\n"):
            return
        record = _object(line)
        if record is None:
            yield {"type": DAMAGED}
        elif header and record.get("type") == "session":
            header = False
        else:
            yield record


def _mark(file: IO[bytes], size: int) -> SessionMark:
    """The mark of the last whole line within the first C{size} bytes."""
    end = _last_lf(file, size) + 1
    if end <= 0:
        return SessionMark(0, None)
    file.seek(_last_lf(file, end - 1) + 1)
    head = file.read(min(end - file.tell(), 256))
    found = _ENTRY_ID.match(head)
    if found is not None and not head.startswith(b'{"type":"session"'):
        return SessionMark(end, found[1].decode("ascii"))
    file.seek(_last_lf(file, end - 1) + 1)
    record = _object(file.read(end - file.tell())) or {}
    entry = record.get("id") if record.get("type") != "session" else None
    return SessionMark(end, entry if isinstance(entry, str) else None)


def _last_lf(file: IO[bytes], end: int) -> int:
    """Position of the last LF before C{end}, -1 when there is none."""
    while end > 0:
        start = max(0, end - _CHUNK)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found
        end = start
    return -1


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        record = jsonio.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
