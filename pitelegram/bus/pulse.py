"""Something regular that can also be asked for at once."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from pitelegram.kernel.deferring import deferred

INTERVAL = 1.0
JOIN = 0.05


class Pulse:
    """Beats every second, and soon after L{now}; never two at once.

    @param beat: does one; the next waits until it fired.
    """

    def __init__(self, clock: IReactorTime, beat: Callable[[], Deferred[None]]) -> None:
        self._clock = clock
        self._beat = beat
        self._asked = False
        self._last = 0.0
        self._rest: Deferred[None] | None = None

    @deferred
    async def run(self) -> None:
        """Beat until one fails, with its failure, or until cancelled."""
        while True:
            self._asked = False
            self._last = self._clock.seconds()
            await self._beat()
            await self._wait(JOIN if self._asked else INTERVAL)

    def now(self) -> None:
        """Beat in the next turn of the reactor, or as soon as 50 ms have passed since the last."""
        if not self._asked:
            self._asked = True
            self._clock.callLater(0, self._wake)

    def _wake(self) -> None:
        if self._rest is not None and not self._rest.called:
            self._rest.callback(None)

    def end(self, error: Exception) -> None:
        """Make L{run} fail now if it rests; a beat under way fails by itself."""
        if self._rest is not None and not self._rest.called:
            self._rest.errback(error)

    async def _wait(self, seconds: float) -> None:
        while True:
            due = self._last + (JOIN if self._asked else seconds) - self._clock.seconds()
            if due <= 0:
                return
            asked = self._asked
            self._rest = Deferred()
            timer = self._clock.callLater(due, lambda rest: rest.callback(None), self._rest)
            try:
                await self._rest
            finally:
                self._rest = None
                if timer.active():
                    timer.cancel()
            if self._asked == asked:
                return
