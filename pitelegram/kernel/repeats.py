"""Equal words in a row are said once."""

from __future__ import annotations

from collections.abc import Callable, Hashable

WINDOW = 600.0
"""Seconds after which equal words are news again."""


class Repeats:
    """Remembers what was said last to whom.

    @param now: seconds of any clock.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._last: dict[Hashable, tuple[str, float]] = {}

    def again(self, listener: Hashable, text: str) -> bool:
        """Whether the listener heard these words last, and lately; else they are the last ones now."""
        now = self._now()
        said, at = self._last.get(listener, ("", 0.0))
        if said == text and now - at < WINDOW:
            return True
        self._last[listener] = (text, now)
        return False

    def spoken(self, listener: Hashable) -> None:
        """Something else was said to that listener."""
        self._last.pop(listener, None)
