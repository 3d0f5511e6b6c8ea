"""The end of a worker: drain, abort, close; drawn in C{docs/machines/worker-stop.md}."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.errors import PiGone, PiRefused
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.kernel.observers import OneShot
from pitelegram.pi.interfaces import IPiHost
from pitelegram.worker.brake import Brake
from pitelegram.worker.queue import Queue

CLOSE_SHARE = 0.3
"""Share of the total time that is kept for ending Pi's process."""
CLOSE_LEAST = 1.0
ABORT_SECONDS = 3.0
LOOK = 0.05


class Ladder:
    """Goes down once; a second, harsher call makes it skip what is left of waiting.

    @param up: whether Pi can be talked to.
    @param idle: whether nothing runs, compacts, is queued in Pi, or is being stored.
    @param changed: called at each new phase.
    @ivar phase: C{draining}, C{aborting}, C{closing} or None before it began.
    @ivar done: fires with Pi's exit in words when its process is proven gone.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        queue: Queue,
        brake: Brake,
        host: IPiHost,
        up: Callable[[], bool],
        idle: Callable[[], bool],
        changed: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._queue = queue
        self._brake = brake
        self._host = host
        self._up = up
        self._idle = idle
        self._changed = changed
        self._deadline = 0.0
        self._waits = False
        self.phase: str | None = None
        self.done: OneShot[str] = OneShot()

    @deferred
    async def stop(self, drain: bool, seconds: float) -> str:
        """Stop within C{seconds} and fire with Pi's exit in words.

        @param drain: first wait for what runs; nothing new is handed meanwhile.
        """
        deadline = self._clock.seconds() + seconds
        if self.phase is not None:
            self._deadline = min(self._deadline, deadline)
            self._waits = self._waits and drain
            return await self.done.when()
        self._deadline, self._waits = deadline, drain
        self._queue.close()
        close_time = max(CLOSE_LEAST, seconds * CLOSE_SHARE)
        self._enter("draining")
        while self._waits and not self._idle() and self._left() > close_time:
            await sleep(self._clock, LOOK)
        if not self._idle():
            self._enter("aborting")
            await self._abort(close_time)
        self._enter("closing")
        words = await self._host.stop(max(self._left(), CLOSE_LEAST))
        self.done.fire(words)
        return words

    async def _abort(self, close_time: float) -> None:
        """Abort, and give the answer so far the time to be stored."""
        if self._up():
            aborting = self._brake.abort()
            aborting.addErrback(lambda failure: failure.trap(PiGone, PiRefused) and None)
            aborting.addErrback(lambda failure: self._log.failure("the abort failed", failure))
        until = self._clock.seconds() + min(ABORT_SECONDS, max(0.0, self._left() - close_time / 2))
        while not self._idle() and self._clock.seconds() < until:
            await sleep(self._clock, LOOK)

    def _enter(self, phase: str) -> None:
        self.phase = phase
        self._changed()

    def _left(self) -> float:
        return self._deadline - self._clock.seconds()
