"""The beginning of a JSON record that is too large to be worth reading whole."""

from __future__ import annotations

import re
from typing import Any

from pitelegram.kernel import jsonio

WHOLE = 4096
"""Bytes of a record up to which it is decoded as it is, and of which a larger one keeps its head."""

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s"\[\]{}:,]+|\s+', re.DOTALL)
_CUT_STRING = re.compile(rb'"(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*', re.DOTALL)
_FAILED = re.compile(rb'"isError":(true|false)[^"]*(?:"durationMs":[0-9.]+)?[\s}]*\Z')
_CLOSERS = {b"[": b"]", b"{": b"}"}


def head(line: bytes) -> Any:
    """Decode a record, or of one beyond L{WHOLE} bytes what stands in these.

    Where it was cut a text ends with C{…}, and members and elements behind it are missing.

    @raise ValueError: it is no JSON.
    """
    return jsonio.loads(line if len(line) <= WHOLE else _closed(line[:WHOLE]))


def failed(line: bytes) -> bool:
    """Whether a C{tool_execution_end} says that the tool failed; its end is enough for that."""
    found = _FAILED.search(line, max(0, len(line) - 120))
    return found is not None and found[1] == b"true"


def _closed(data: bytes) -> bytes:
    """Make valid JSON of JSON that was cut."""
    open_: list[bytes] = []  # the brackets that close what is open
    safe = position = 0  # up to C{safe} it is valid once these are added
    value = True  # whether a value comes next, not a name
    while match := _TOKEN.match(data, position):
        token, position = match[0], match.end()
        if token in _CLOSERS:
            open_.append(_CLOSERS[token])
            safe, value = position, token == b"["
        elif open_ and token == open_[-1]:
            open_.pop()
            safe = position
        elif token == b",":
            value = open_[-1:] == [b"]"]
        elif token == b":":
            value = True
        elif not token.isspace() and value and position < len(data):
            safe = position
    ending = b"".join(reversed(open_))
    cut = _CUT_STRING.match(data, position) if value else None
    if cut is None:
        return data[:safe] + ending
    return data[: cut.end()].decode("utf-8", "ignore").encode() + '…"'.encode() + ending
