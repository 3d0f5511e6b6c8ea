"""What a person sees: plain tables, colour only on a terminal."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, TextIO

_CODES = {"green": "32", "yellow": "33", "red": "31", "bold": "1", "dim": "2"}

WORDS = {
    "ok": "green",
    "running": "green",
    "degraded": "yellow",
    "warn": "yellow",
    "backoff": "yellow",
    "down": "red",
    "fail": "red",
    "failed": "red",
}
"""Colours of words that say how something is."""


def print_json(value: Any, look: Callable[[Any], Any]) -> None:
    """Print one line of JSON, after a last look at it.

    @param look: one of L{pitelegram.control.outward}.
    """
    text = json.dumps(look(value), ensure_ascii=False, separators=(",", ":"))
    sys.stdout.write(text + "\n")


def is_coloured(stream: TextIO) -> bool:
    """Whether colours may be written there."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not plain


def coloured(text: str, colour: str | None, stream: TextIO | None = None) -> str:
    """Return C{text} in C{colour} when the stream is a terminal."""
    if colour is None or not is_coloured(stream or sys.stdout):
        return text
    return f"\033[{_CODES[colour]}m{text}\033[0m"


def shown(value: Any) -> str:
    """Return a value as a cell: no control characters, nothing for None."""
    if value is None:
        return "-"
    text = str(value)
    return "".join(c if c.isprintable() else "?" for c in text)


def width(text: str) -> int:
    """Return how many columns a text takes on a terminal."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows in columns."""
    cells = [[shown(cell) for cell in row] for row in rows]
    widths = [max(width(line[n]) for line in [list(header), *cells]) for n in range(len(header))]
    print(coloured(_line(header, widths, {}), "bold"))
    for row in cells:
        print(_line(row, widths, WORDS))


def _line(row: Sequence[str], widths: Sequence[int], colours: dict[str, str]) -> str:
    parts = []
    for cell, wide in zip(row, widths, strict=True):
        parts.append(coloured(cell, colours.get(cell)) + " " * (wide - width(cell)))
    return "  ".join(parts).rstrip()


def complain(message: str) -> None:
    """Print one line to standard error."""
    print(f"pi-telegram: {message}", file=sys.stderr)
