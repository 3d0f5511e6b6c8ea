"""JSON values of any size in AMP boxes.

AMP values end at 65,535 bytes.  A longer JSON text is cut, anywhere between two bytes, into pieces:
the first stands under C{name}, the next under C{name.1}, C{name.2} and so on of the same box.
"""

from __future__ import annotations

import re
from typing import Any

from twisted.protocols.amp import MAX_VALUE_LENGTH, Argument

from pitelegram.bus.fields import python_name
from pitelegram.kernel import jsonio

MAX_DEPTH = 256
"""Brackets around a value; everything that L{jsonio.dumps} can write has fewer."""

_BRACKETS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|(?P<open>[\[{])|(?P<close>[\]}])', re.DOTALL)
_NUMBER = re.compile(rb"[1-9][0-9]{0,8}")


class BrokenPieces(Exception):
    """A value's pieces have a gap: the connection cannot be trusted any more."""


def cut(name: bytes, data: bytes) -> dict[bytes, bytes]:
    """Return the pieces of C{data} by their keys."""
    if len(data) <= MAX_VALUE_LENGTH:
        return {name: data}
    pieces = {name: data[:MAX_VALUE_LENGTH]}
    for number, start in enumerate(range(MAX_VALUE_LENGTH, len(data), MAX_VALUE_LENGTH), 1):
        pieces[b"%s.%d" % (name, number)] = data[start : start + MAX_VALUE_LENGTH]
    return pieces


def join(name: bytes, box: dict[bytes, bytes]) -> bytes | None:
    """Return the joined value of C{name}, None if the box has no piece of it.

    @raise BrokenPieces: if a piece is missing between others, the first included.
    """
    prefix = name + b"."
    further = sum(1 for key in box if key.startswith(prefix) and _is_piece(key, prefix))
    if name not in box:
        if further:
            raise BrokenPieces("a value without its first piece")
        return None
    pieces = [box[name]]
    for number in range(1, further + 1):
        piece = box.get(b"%s%d" % (prefix, number))
        if piece is None:
            raise BrokenPieces("a value with a missing piece")
        pieces.append(piece)
    return b"".join(pieces)


def _is_piece(key: bytes, prefix: bytes) -> bool:
    return _NUMBER.fullmatch(key, len(prefix)) is not None


class Json(Argument):
    """An AMP argument that holds a JSON value, in pieces where it must.

    When sending, C{bytes} are taken as JSON text that is ready; anything else is serialized.
    """

    def fromBox(self, name: bytes, strings: dict, objects: dict, proto: Any) -> None:
        """Join and parse; see L{Argument.fromBox}.

        @raise BrokenPieces: on a gap.
        @raise ValueError: if it is not JSON, or nested too deeply.
        @raise KeyError: if it is absent and not optional.
        """
        data = join(name, strings)
        key = python_name(name)
        if data is not None:
            objects[key] = parse(data)
        elif self.optional:
            objects[key] = None
        else:
            raise KeyError(key)

    def toBox(self, name: bytes, strings: dict, objects: dict, proto: Any) -> None:
        """Serialize and cut; see L{Argument.toBox}."""
        key = python_name(name)
        value = objects[key] if not self.optional else objects.get(key)
        if value is None and self.optional:
            return
        data = value if isinstance(value, bytes) else jsonio.dumps(value)
        if len(data) <= MAX_VALUE_LENGTH:
            strings[name] = data
        else:
            strings.update(cut(name, data))


def parse(data: bytes) -> Any:
    """Parse one JSON value of the wire.

    @raise ValueError: not UTF-8, not JSON, or nested too deeply.
    """
    value = jsonio.loads(data)
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH:
        _check_depth(data)
    return value


def _check_depth(data: bytes) -> None:
    """Raise C{ValueError} if brackets outside texts stand more than L{MAX_DEPTH} deep.

    @param data: JSON that was parsed already: here a text without an end would cost much time.
    """
    depth = 0
    for match in _BRACKETS.finditer(data):
        depth += match.lastgroup == "open"
        depth -= match.lastgroup == "close"
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
