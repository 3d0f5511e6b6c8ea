"""When a worker that ended is started again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from random import Random

from pitelegram.kernel.backoff import Backoff

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 60.0
MOST = 5
WINDOW_SECONDS = 600.0
HEALTHY_SECONDS = 600.0
UNCOUNTED_SECONDS = 5.0
"""Pause after an end that is nobody's fault (the binding's lock was taken)."""


class RestartPolicy:
    """Exponential pauses, at most five restarts in ten minutes, forgiven after ten healthy ones.

    @param monotonic: seconds that only run forward.
    @ivar restarts: restarts since an operator started this worker.
    @ivar most: restarts within the window.
    """

    most = MOST

    def __init__(self, random: Random, monotonic: Callable[[], float]) -> None:
        self._backoff = Backoff(FIRST_SECONDS, LONGEST_SECONDS, random)
        self._monotonic = monotonic
        self._crashes: deque[float] = deque()
        self._running_since: float | None = None
        self.restarts = 0

    def recall(self, restarts: int, ages: Sequence[float]) -> None:
        """Take over what an earlier daemon counted: C{ages} in seconds, the oldest crash first."""
        now = self._monotonic()
        self.restarts = restarts
        self._crashes.extend(now - age for age in ages)
        for _ in ages:
            self._backoff.next()

    def running(self) -> None:
        """The worker is ready now."""
        self._running_since = self._monotonic()

    def crashed(self, counted: bool = True) -> float | None:
        """The worker ended; return the pause before the next start, None when it is enough."""
        now = self._monotonic()
        since, self._running_since = self._running_since, None
        if since is not None and now - since >= HEALTHY_SECONDS:
            self._forgive()
        if not counted:
            return UNCOUNTED_SECONDS
        while self._crashes and now - self._crashes[0] > WINDOW_SECONDS:
            self._crashes.popleft()
        if len(self._crashes) >= MOST:
            return None
        self._crashes.append(now)
        self.restarts += 1
        return self._backoff.next()

    def reset(self) -> None:
        """An operator takes over: everything before is forgotten."""
        self._forgive()
        self._running_since = None
        self.restarts = 0

    def _forgive(self) -> None:
        self._crashes.clear()
        self._backoff.reset()
