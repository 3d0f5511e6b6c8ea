"""How long commits take, over the newest of them."""

from __future__ import annotations

import math
import threading
from collections import deque

import attrs

WINDOW = 1000
"""Commits that the percentiles are made of."""


@attrs.frozen
class Commits:
    """What is told of commits; durations in microseconds.

    @ivar count: all commits since the file was opened.
    @ivar total_us: their durations together.
    @ivar window: how many of the newest the percentiles are made of.
    """

    count: int = 0
    total_us: int = 0
    window: int = 0
    p50_us: int = 0
    p99_us: int = 0


class CommitTimes:
    """Filled on the writer's thread, asked on any.

    @ivar failure: why the newest transaction was lost as a whole, None when it was committed.
    """

    def __init__(self, window: int = WINDOW) -> None:
        self._lock = threading.Lock()
        self._newest: deque[int] = deque(maxlen=window)
        self._count = 0
        self._total_us = 0
        self.failure: str | None = None

    def committed(self, seconds: float) -> None:
        """One transaction is on disk."""
        duration = max(0, round(seconds * 1_000_000))
        with self._lock:
            self._newest.append(duration)
            self._count += 1
            self._total_us += duration
        self.failure = None

    def lost(self, why: str) -> None:
        """A transaction was not stored."""
        self.failure = why

    def summary(self) -> Commits:
        """Return the figures as they are now."""
        with self._lock:
            newest, count, total = sorted(self._newest), self._count, self._total_us
        if not newest:
            return Commits(count, total)
        return Commits(count, total, len(newest), _rank(newest, 0.5), _rank(newest, 0.99))


def _rank(ordered: list[int], share: float) -> int:
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
