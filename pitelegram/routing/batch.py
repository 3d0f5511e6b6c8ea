"""Many small writes as few larger ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.errors import Fenced
from pitelegram.kernel.deferring import deferred, sleep

T = TypeVar("T")

_RETRY = 1.0


class Batch(Generic[T]):
    """Collects what comes while a write is under way, and writes it together as the next.

    A write that fails is tried again each second, except when another process leads by now: then
    what was collected is dropped, for that process has it to do.

    @param write: stores a list of items in one commit.
    """

    _log = Logger()

    def __init__(self, clock: IReactorTime, write: Callable[[list[T]], Deferred[None]]) -> None:
        self._clock = clock
        self._write = write
        self._waiting: list[T] = []
        self._busy = False
        self._running: Deferred[None] = succeed(None)
        self._stopped = False

    def add(self, item: T) -> None:
        """Have C{item} written soon."""
        self._waiting.append(item)
        if not self._busy:
            self._busy = True
            self._running = self._run()

    def stop(self) -> Deferred[None]:
        """Give up trying again; fires when the write under way is over."""
        self._stopped = True
        done: Deferred[None] = Deferred()
        self._running.addBoth(lambda _: done.callback(None))
        return done

    @deferred
    async def _run(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await self._write(batch)
            except Fenced:
                self._log.warn(
                    "another process leads; {count} writes are left to it", count=len(batch)
                )
            except Exception:
                self._log.failure("a batch of {count} writes failed", count=len(batch))
                self._waiting[:0] = batch
                if self._stopped:
                    break
                await sleep(self._clock, _RETRY)
        self._busy = False
