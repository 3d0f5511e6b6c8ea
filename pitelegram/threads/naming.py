"""Names that an operator gives."""

from __future__ import annotations

import unicodedata

from pitelegram.errors import Refusal

NAME_LIMIT = 96

_JOINERS = "\u200c\u200d"
"""Invisible, but parts of words and of pictures."""


def clean_name(name: str) -> str:
    """Return a name as it is kept: one line of at most 96 characters, nothing invisible.

    @raise Refusal: C{invalid-name}: nothing is left.
    """
    plain = "".join(_shown(each) for each in unicodedata.normalize("NFC", name))
    kept = " ".join(plain.split())[:NAME_LIMIT].strip()
    if not any(unicodedata.category(each)[0] in "LNPS" for each in kept):
        raise Refusal("invalid-name", "a name needs at least one character that can be seen")
    return kept


def _shown(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Cc", "Zs", "Zl", "Zp"):
        return " "
    if category in ("Cf", "Cs") and character not in _JOINERS and not _tag(character):
        return ""
    return character


def _tag(character: str) -> bool:
    """Whether it is part of a flag's picture."""
    return 0xE0020 <= ord(character) <= 0xE007F
