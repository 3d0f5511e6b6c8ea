"""Things that happen in crowds, told in one line each."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime

SOON = 1.0
"""Seconds in which what happens together is counted together."""
GAP = 30.0
"""Seconds between two lines of one kind."""


class Mentions:
    """Counts what happens, and tells how often.

    @param tell: gets C{(kind, how many)}.
    """

    def __init__(self, clock: IReactorTime, tell: Callable[[str, int], object]) -> None:
        self._clock = clock
        self._tell = tell
        self._counts: dict[str, int] = {}
        self._told: dict[str, float] = {}
        self._calls: dict[str, IDelayedCall] = {}

    def mention(self, kind: str) -> None:
        """It happened once more."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if kind not in self._calls:
            last = self._told.get(kind)
            gap = 0.0 if last is None else last + GAP - self._clock.seconds()
            self._calls[kind] = self._clock.callLater(max(SOON, gap), self._say, kind)

    def flush(self) -> None:
        """Tell now what waits to be told."""
        for kind, call in list(self._calls.items()):
            call.cancel()
            self._say(kind)

    def _say(self, kind: str) -> None:
        del self._calls[kind]
        self._told[kind] = self._clock.seconds()
        self._tell(kind, self._counts.pop(kind))
