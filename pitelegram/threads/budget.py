"""How often titles may be edited: one budget for all Threads."""

from __future__ import annotations

from twisted.internet.interfaces import IReactorTime

PERIOD = 10.0
"""Seconds that the budget is counted over."""

MOST = 3
"""Titles edited in that time by themselves: messages need the bot's rate more."""

MOST_ASKED = 6
"""Titles edited in that time, with those that the operator asked for."""


class TitleBudget:
    """Counts edits of titles, and knows until when Telegram wants none."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._edits: list[float] = []
        self._not_before = 0.0

    def wait_for(self, most: int = MOST) -> float:
        """Return the seconds until one more title may be edited, 0 for now.

        @param most: L{MOST}, or L{MOST_ASKED} for what the operator asked for.
        """
        now = self._clock.seconds()
        self._edits = [each for each in self._edits if each > now - PERIOD]
        full = 0.0 if len(self._edits) < most else self._edits[-most] + PERIOD - now
        return max(full, self._not_before - now, 0.0)

    def spend(self) -> None:
        """A title is being edited."""
        self._edits.append(self._clock.seconds())

    def pause(self, seconds: float | None = None) -> float:
        """Telegram said "wait", or nothing: edit none for a while; returns how long."""
        wait = PERIOD if seconds is None else seconds
        self._not_before = max(self._not_before, self._clock.seconds() + wait)
        return wait
