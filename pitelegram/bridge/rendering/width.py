"""How many columns of a terminal or a monospaced block a text takes."""

from __future__ import annotations

import unicodedata


def columns(text: str) -> int:
    """Return the width: wide glyphs and emoji count two, what combines counts none."""
    if text.isascii():
        return len(text)
    total, joined, last = 0, False, 0
    for character in text:
        if character == "\u200d":
            joined = True
            continue
        if character == "\ufe0f":
            total, last = total + (last == 1), 2
            continue
        if joined or "\U0001f3fb" <= character <= "\U0001f3ff" and last == 2:
            joined = False
            continue
        last = _one(character)
        total += last
    return total


def _one(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def padded(text: str, width: int, alignment: str) -> str:
    """Fill up with blanks.

    @param alignment: C{Right}, C{Center}, or anything else for left.
    """
    room = width - columns(text)
    if alignment == "Right":
        return " " * room + text
    if alignment == "Center":
        return " " * (room // 2) + text + " " * (room - room // 2)
    return text + " " * room
