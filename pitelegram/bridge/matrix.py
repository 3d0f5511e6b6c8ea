"""Button literals: strict JSON, or a compact matrix of positional cells, read in linear time.

The grammar stands in C{docs/buttons.md}.  JSON is tried first, on the whole and at each cell; what is
JSON, or was meant to be, is never read another way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

Cell = dict[str, Any] | tuple[str, ...]
"""A JSON object, or the one to three atoms of a positional cell."""

BLANKS = (
    "\t\n\x0b\x0c\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What is trimmed around a text; controls are not, and make it malformed."""

MOST_ATOMS = 3

_SPACE = re.compile(r"[ \t\r\n]*")
_BOUNDARY = re.compile(r"[ \t\r\n]*(?:,[ \t\r\n]*)?")
_ATOM = re.compile(r"[^|}\\]*(?:\\[|}\\][^|}\\]*)*")
_ESCAPE = re.compile(r"\\(.)")
_NAMED = re.compile(r'\{[ \t\r\n]*(?:\}|"[^"\\]*(?:\\.[^"\\]*)*"[ \t\r\n]*:)')
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Malformed(ValueError):
    """What a comment says cannot be read; nothing of it is used."""


def _no_constant(_: str) -> Any:
    raise ValueError("no strict JSON")


def _number(_: str) -> int:
    """Numbers are of no use here; reading huge ones would take long."""
    return 0


_JSON = json.JSONDecoder(parse_constant=_no_constant, parse_int=_number, parse_float=_number)


def read_matrix(payload: str) -> list[list[Cell]]:
    """Return the rows of a payload.

    @param payload: begins with a brace or a bracket.
    @raise Malformed: it is neither JSON of that shape nor a literal.
    """
    literal = Literal(payload)
    found = literal.whole_json()
    return literal.rows() if found is None else _rows_of(found)


def read_object(payload: str) -> dict[str, Any]:
    """Return a payload that is one JSON object.

    @raise Malformed: it is anything else.
    """
    found = Literal(payload).whole_json()
    if not isinstance(found, dict):
        raise Malformed("no JSON object")
    return found


def _rows_of(found: Any) -> list[list[Cell]]:
    """Return rows of parsed JSON: a cell by itself is a row."""
    elements = found if isinstance(found, list) else [found]
    rows = [each if isinstance(each, list) else [each] for each in elements]
    if not rows or not all(rows) or not all(isinstance(c, dict) for row in rows for c in row):
        raise Malformed("neither a cell nor rows of cells")
    return rows


class Literal:
    """Reads one payload from left to right.

    Each place is tried as JSON at most once, and one that has a name in it must be JSON: what is not
    makes the whole malformed.  So the time is linear.

    @param decode: C{(text, place) -> (value, place behind it)}.
    """

    def __init__(
        self, text: str, decode: Callable[[str, int], tuple[Any, int]] = _JSON.raw_decode
    ) -> None:
        self._text = text
        self._decode = decode
        self._at = 0

    def whole_json(self) -> Any:
        """Return the payload as JSON, None when it is none."""
        found = self._json()
        if found is not None and self._rest_is_blank():
            return found
        self._at = 0
        return None

    def rows(self) -> list[list[Cell]]:
        """Return the rows of a literal."""
        rows = self._list(self._element) if self._next() == "[" else [[self._cell()]]
        if not self._rest_is_blank():
            raise Malformed("something stands behind it")
        return rows

    def _list(self, one: Callable[[], Any]) -> list[Any]:
        """Return what stands between brackets; at most one comma between two, none elsewhere."""
        self._at = self._after(_SPACE, self._at + 1)
        found = [one()]
        while True:
            behind = self._after(_BOUNDARY, self._at)
            if self._text[behind : behind + 1] == "]":
                if "," in self._text[self._at : behind]:
                    raise Malformed("a comma before the end")
                self._at = behind + 1
                return found
            self._at = behind
            found.append(one())

    def _element(self) -> list[Cell]:
        return self._list(self._cell) if self._next() == "[" else [self._cell()]

    def _cell(self) -> Cell:
        if self._next() != "{":
            raise Malformed("no cell")
        if _NAMED.match(self._text, self._at) is None:
            return self._positional()
        found = self._json()
        if found is None:
            raise Malformed("nearly JSON")
        return found  # type: ignore[no-any-return]

    def _positional(self) -> tuple[str, ...]:
        atoms: list[str] = []
        self._at += 1
        while True:
            end = self._after(_ATOM, self._at)
            atoms.append(_atom(self._text[self._at : end]))
            self._at = end + 1
            mark = self._text[end : end + 1]
            if mark == "}":
                return tuple(atoms)
            if mark != "|" or len(atoms) == MOST_ATOMS:
                raise Malformed("a cell without its end")

    def _json(self) -> Any:
        """Return the JSON value that begins here and go behind it; None when there is none."""
        try:
            found, self._at = self._decode(self._text, self._at)
            return found
        except (ValueError, RecursionError):
            return None

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _after(self, pattern: re.Pattern[str], start: int) -> int:
        found = pattern.match(self._text, start)
        return start if found is None else found.end()

    def _rest_is_blank(self) -> bool:
        return self._after(_SPACE, self._at) == len(self._text)


def _atom(source: str) -> str:
    """Return an atom without what surrounds and escapes it."""
    text = _ESCAPE.sub(r"\1", source.strip(BLANKS))
    if not text or _CONTROL.search(text):
        raise Malformed("an atom is empty, or has controls in it")
    return text
