"""Text with entities, put together piece by piece; pieces may lie within a quotation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pitelegram.bridge.cutting import clean, utf16_length

BOLD, CODE, FOLDED = "bold", "code", "expandable_blockquote"


class Marked:
    """A message under construction.

    @ivar text: so far.
    @ivar length: of it, in UTF-16 units.
    """

    def __init__(self) -> None:
        self.text = ""
        self.length = 0
        self._entities: list[dict[str, Any]] = []

    def add(self, text: str, kind: str | None = None) -> Marked:
        """Add text, in one style or none."""
        start = self.length
        self.text += text
        self.length += utf16_length(text)
        if kind is not None and text.strip():
            self._mark(kind, start)
        return self

    @contextmanager
    def within(self, kind: str) -> Iterator[None]:
        """What is added meanwhile lies within that style."""
        start = self.length
        yield
        if self.length > start:
            self._mark(kind, start)

    def _mark(self, kind: str, start: int) -> None:
        self._entities.append({"type": kind, "offset": start, "length": self.length - start})

    def as_params(self) -> dict[str, Any]:
        """Return what C{sendMessage} and C{editMessageText} take: silent, without previews."""
        return {
            "text": self.text,
            "entities": sorted(self._entities, key=lambda each: (each["offset"], -each["length"])),
            "link_preview_options": {"is_disabled": True},
        }


def line(text: str) -> dict[str, Any]:
    """Return the parameters of a plain message."""
    return Marked().add(clean(text)).as_params()
