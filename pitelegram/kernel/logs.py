"""Log observers that redact everything: text for the terminal, JSON lines, recent events.

The console shows the local operator's own paths; the JSON lines and L{RecentEvents} are fit for the
public (L{pitelegram.kernel.redact}).
"""

from __future__ import annotations

import collections
import logging
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO

from twisted.logger import (
    FilteringLogObserver,
    ILogObserver,
    Logger,
    LogLevel,
    LogLevelFilterPredicate,
    formatEvent,
    formatTime,
)
from twisted.python.failure import Failure
from zope.interface import implementer

from pitelegram.errors import UnsafeFile
from pitelegram.kernel.files import open_private
from pitelegram.kernel.jsonio import dumps
from pitelegram.kernel.redact import MARK, SECRETS, Secrets, is_private_name

ROTATE_BYTES = 5 * 1024 * 1024
FIELD_LIMIT = 500
TRACEBACK_LIMIT = 8_000

_LARGEST = 2**63 - 1
"""JSON as it is written here has no larger number."""

_TALKATIVE = ("twisted", "log_legacy")

_SOURCE = re.compile(r'File "(?:[^"]*/)?((?:pitelegram|twisted|zope)/[^"]*|[^"/]*)"')


def at_level(observer: Any, level: str) -> Any:
    """Return C{observer} behind a filter for C{level} (C{debug} … C{critical}) and above.

    What Twisted tells about its factories and ports is let through from C{warn} on, except at
    C{debug}: each connection would leave two lines.

    @raise ValueError: no such level.
    """
    try:
        named = LogLevel.levelWithName(level)
    except Exception:
        raise ValueError(f"no log level is called {level}") from None
    predicate = LogLevelFilterPredicate(named)
    if named is LogLevel.info:
        for namespace in _TALKATIVE:
            predicate.setLogLevelForNamespace(namespace, LogLevel.warn)
    return FilteringLogObserver(observer, [predicate])


def public_event(event: dict[str, Any], secrets: Secrets = SECRETS) -> dict[str, Any]:
    """Return a log event as a record of plain JSON, every text in it redacted for the public.

    C{at_ms}, C{level}, C{namespace}, C{message}, then C{fields} and C{traceback} where there are any.
    """
    level = event.get("log_level")
    record: dict[str, Any] = {
        "at_ms": int(event.get("log_time", 0) * 1000),
        "level": level.name if level is not None else "info",
        "namespace": str(event.get("log_namespace", "")),
        "message": secrets.redact_public(_message(event)),
    }
    fields = {key: _field(key, value, secrets) for key, value in _fields(event)}
    if fields:
        record["fields"] = fields
    if event.get("log_failure") is not None:
        text = _SOURCE.sub(r'File "\1"', _traceback(event))
        record["traceback"] = secrets.redact_public(text, TRACEBACK_LIMIT)
    return record


@implementer(ILogObserver)
class ConsoleObserver:
    """Writes one line of text per event, and tracebacks, to a stream."""

    def __init__(self, stream: TextIO, secrets: Secrets = SECRETS) -> None:
        self._stream = stream
        self._secrets = secrets

    def __call__(self, event: dict[str, Any]) -> None:
        """Write the event; a stream that is gone is no reason to stop."""
        level = event.get("log_level")
        text = f"{formatTime(event.get('log_time'))} [{level.name if level else 'info'}] "
        text += _message(event)
        if event.get("log_failure") is not None:
            text += "\n" + _traceback(event).rstrip()
        try:
            self._stream.write(self._secrets.redact(text) + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            return


@implementer(ILogObserver)
class JsonLinesObserver:
    """Appends one redacted JSON object per event to a private file that is rotated by size.

    A file that somebody removed or renamed is made anew.

    @param path: the current file.
    @param previous: what it is renamed to at C{rotate_bytes}.
    @ivar lost: events that could not be written since the last one that could.
    """

    def __init__(
        self,
        path: Path,
        previous: Path,
        secrets: Secrets = SECRETS,
        rotate_bytes: int = ROTATE_BYTES,
    ) -> None:
        self._path = path
        self._previous = previous
        self._secrets = secrets
        self._rotate_bytes = rotate_bytes
        self._fd: int | None = None
        self._size = 0
        self.lost = 0

    @property
    def problem(self) -> str | None:
        """The sentence for the operator while events are lost."""
        return "the event log cannot be written; events are lost" if self.lost else None

    def __call__(self, event: dict[str, Any]) -> None:
        """Append the event; a full disk loses the line, not the program."""
        line = dumps(public_event(event, self._secrets)) + b"\n"
        try:
            self._write(line)
            self.lost = 0
        except (OSError, UnsafeFile):
            self.lost += 1
            self.close()

    def close(self) -> None:
        """Close the file; the next event opens it again."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _write(self, line: bytes) -> None:
        if self._fd is not None and not self._is_in_place(self._fd):
            self.close()
        if self._fd is not None and self._size + len(line) > self._rotate_bytes:
            self.close()
            os.replace(self._path, self._previous)
        if self._fd is None:
            self._fd = open_private(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            self._size = os.fstat(self._fd).st_size
        written = os.write(self._fd, line)
        self._size += written
        if written < len(line):
            raise OSError("the disk took half a line")

    def _is_in_place(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), os.lstat(self._path))
        except FileNotFoundError:
            return False


@implementer(ILogObserver)
class RecentEvents:
    """Keeps the newest redacted events and tells subscribers of new ones."""

    def __init__(self, size: int = 1_000, secrets: Secrets = SECRETS) -> None:
        self._events: collections.deque[dict[str, Any]] = collections.deque(maxlen=size)
        self._secrets = secrets
        self._observers: list[Callable[[dict[str, Any]], None]] = []

    def __call__(self, event: dict[str, Any]) -> None:
        """Keep the event."""
        record = public_event(event, self._secrets)
        self._events.append(record)
        for observer in list(self._observers):
            observer(record)

    def newest(self, limit: int) -> list[dict[str, Any]]:
        """Return up to C{limit} events, oldest first."""
        return list(self._events)[-limit:] if limit > 0 else []

    def subscribe(self, observer: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
        """Call C{observer(record)} for each new event; returns the way out."""
        self._observers.append(observer)
        return lambda: self._observers.remove(observer)


class StdlibForwarder(logging.Handler):
    """Hands records of the standard C{logging} module to Twisted's log."""

    _levels = (
        (logging.CRITICAL, LogLevel.critical),
        (logging.ERROR, LogLevel.error),
        (logging.WARNING, LogLevel.warn),
        (logging.INFO, LogLevel.info),
    )

    def emit(self, record: logging.LogRecord) -> None:
        """Forward one record, with its traceback where it has one."""
        level = next((ours for theirs, ours in self._levels if record.levelno >= theirs), None)
        event: dict[str, Any] = {"text": record.getMessage()}
        if record.exc_info and record.exc_info[1] is not None:
            event["log_failure"] = Failure(record.exc_info[1])
        Logger(record.name).emit(level or LogLevel.debug, "{text}", **event)


def forward_stdlib(level: int = logging.INFO) -> StdlibForwarder:
    """Send what libraries log through C{logging} to Twisted's log; returns the handler."""
    handler = StdlibForwarder(level)
    logging.getLogger().addHandler(handler)
    return handler


def _message(event: dict[str, Any]) -> str:
    return formatEvent(event) or str(event.get("log_format") or "")


def _traceback(event: dict[str, Any]) -> str:
    return str(event["log_failure"].getTraceback())


def _fields(event: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    ours = {"log_flattened", "isError", "time", "system", "message", "format", "failure", "why"}
    return ((k, v) for k, v in event.items() if not k.startswith("log_") and k not in ours)


def _field(key: str, value: Any, secrets: Secrets) -> Any:
    if is_private_name(key):
        return MARK
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int) and -_LARGEST <= value <= _LARGEST:
        return value
    return secrets.redact_public(str(value), FIELD_LIMIT)
