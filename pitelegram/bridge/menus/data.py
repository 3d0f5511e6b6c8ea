"""What the callback data of a menu says."""

from __future__ import annotations

import hashlib
import re

import attrs

FAMILIES = (
    "compact",
    "menu",
    "model",
    "newsession",
    "queue",
    "session",
    "settings",
    "status",
    "thinking",
)
"""First words of callback data that belong to menus; C{status} is understood and not used."""

_WORDS = re.compile(r"[A-Za-z0-9_.:-]{1,64}\Z")
_NUMBER = re.compile(r"[0-9]{1,15}\Z")


@attrs.frozen
class Pressed:
    """A press of a menu's button.

    @ivar family: one of L{FAMILIES}.
    @ivar verb: what is asked; empty when the data has the family only.
    @ivar words: what stands behind it.
    """

    family: str
    verb: str
    words: tuple[str, ...] = ()

    def word(self, index: int = 0) -> str:
        """Return one of the words, empty when it is not there."""
        return self.words[index] if index < len(self.words) else ""

    def number(self, index: int = 0) -> int | None:
        """Return one of the words as a number, None when it is none."""
        word = self.word(index)
        return int(word) if _NUMBER.match(word) else None


def belongs(data: str) -> bool:
    """Whether callback data begins like a menu's, well formed or not."""
    return data.partition(":")[0] in FAMILIES and ":" in data


def read(data: str) -> Pressed | None:
    """Return what callback data says, None when it is no menu's."""
    if not belongs(data) or not _WORDS.match(data):
        return None
    family, verb, *words = data.split(":")
    return Pressed(family, verb, tuple(words))


def key_of(name: str) -> str:
    """Return 12 hex digits that stand for a name, however long and wherever in its list it is."""
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:12]
