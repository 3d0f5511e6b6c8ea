"""Where a text may be cut without tearing one visible sign apart."""

from __future__ import annotations

import unicodedata

_JOINER = "\u200d"
_LONGEST = 64
"""Flags in a row that are counted back; a sign is never longer."""


def may_part(text: str, index: int) -> bool:
    """Whether C{text[index - 1]} and C{text[index]} belong to two visible signs.

    By Unicode's extended grapheme clusters where they matter in a chat: combining marks, emoji
    with joiners, skin tones, variation selectors and tags, flags, Hangul, CR LF.
    """
    if not 0 < index < len(text):
        return True
    before, after = text[index - 1], text[index]
    if before < "\u0300" and after < "\u0300":
        return not (before == "\r" and after == "\n")
    if _JOINER in (before, after) or _extends(after):
        return False
    if _is_flag(before) and _is_flag(after):
        start = index
        while start > max(0, index - _LONGEST) and _is_flag(text[start - 1]):
            start -= 1
        return (index - start) % 2 == 0
    return not _one_syllable(before, after)


def _extends(character: str) -> bool:
    return (
        unicodedata.category(character) in ("Mn", "Me", "Mc")
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or "\U000e0020" <= character <= "\U000e007f"
    )


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _one_syllable(before: str, after: str) -> bool:
    """Whether two parts of Hangul make one block."""
    lead, vowel = "\u1100" <= before <= "\u115f", "\u1160" <= after <= "\u11a7"
    if lead:
        return vowel or "\u1100" <= after <= "\u115f" or "\uac00" <= after <= "\ud7a3"
    if "\u1160" <= before <= "\u11a7" or "\uac00" <= before <= "\ud7a3":
        return vowel or "\u11a8" <= after <= "\u11ff"
    return "\u11a8" <= before <= "\u11ff" and "\u11a8" <= after <= "\u11ff"
