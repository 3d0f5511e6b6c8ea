"""Whether updates arrive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IReactorTime

from pitelegram.botapi import phase


class Health:
    """Remembers polls that completed.

    @param patience: seconds after which a completed poll is too old (its time-out + 15).
    """

    def __init__(
        self, clock: IReactorTime, monotonic: Callable[[], float], patience: float
    ) -> None:
        self._clock = clock
        self._monotonic = monotonic
        self._patience = patience
        self._began_ms = self._now_ms()
        self._last: float | None = None
        self._last_ms: int | None = None
        self._first_began: float | None = None
        self._failures = 0

    def begin(self) -> None:
        """The first poll goes out."""
        self._first_began = self._monotonic()
        self._began_ms = self._now_ms()
        self._failures = 0

    def succeeded(self) -> None:
        """A poll completed."""
        self._last = self._monotonic()
        self._last_ms = self._now_ms()
        self._failures = 0

    def failed(self) -> None:
        """A poll failed, or its batch could not be stored."""
        self._failures += 1

    def snapshot(self, now: str) -> dict[str, Any]:
        """Return the members of the status document's C{polling}, given the phase."""
        receiving = self._receiving() and now not in (phase.STOPPED, phase.CONFLICT)
        since = self._began_ms if self._last_ms is None else self._last_ms
        return {
            "phase": now,
            "last_success_ms": self._last_ms,
            "consecutive_failures": self._failures,
            "receiving": receiving,
            "not_receiving_since_ms": None if receiving else since,
        }

    def _receiving(self) -> bool:
        now = self._monotonic()
        if self._last is not None:
            return now - self._last < self._patience
        if self._first_began is None or self._failures:
            return False
        return now - self._first_began < self._patience

    def _now_ms(self) -> int:
        return int(self._clock.seconds() * 1000)
