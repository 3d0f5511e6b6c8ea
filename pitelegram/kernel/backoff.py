"""Delays between attempts."""

from __future__ import annotations

from random import Random


class Backoff:
    """Exponential delays with jitter, reset on success.

    @param initial: first delay in seconds.
    @param maximum: largest delay in seconds, jitter included.
    @param random: source of jitter; each delay is drawn from [delay/2, delay].
    """

    def __init__(self, initial: float, maximum: float, random: Random, factor: float = 2.0) -> None:
        self._initial = initial
        self._maximum = maximum
        self._factor = factor
        self._random = random
        self._next = initial

    def next(self) -> float:
        """Return the next delay in seconds."""
        delay = min(self._next, self._maximum)
        self._next = min(delay * self._factor, self._maximum)
        return delay * (0.5 + self._random.random() / 2)

    def reset(self) -> None:
        """Start over from the first delay."""
        self._next = self._initial
