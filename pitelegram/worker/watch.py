"""Finds a Pi that is idle while a prompt of ours should be running."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.application.service import Service
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from pitelegram.errors import PiGone, PiRefused
from pitelegram.kernel.deferring import spawn
from pitelegram.pi.interfaces import IPiHost
from pitelegram.worker.queue import Queue

PERIOD = 2.0
"""Seconds between two looks; only two in a row with the same finding count."""


class Watch(Service):
    """Looks every two seconds; asks Pi itself before anything is concluded.

    What Pi still has in its own queue is taken back and held again; what it took and lost becomes
    uncertain, since Pi had accepted it.

    @param events: returns a number that changes with every event of Pi.
    """

    _log = Logger()

    def __init__(
        self, clock: IReactorTime, queue: Queue, host: IPiHost, events: Callable[[], int]
    ) -> None:
        self._clock = clock
        self._queue = queue
        self._host = host
        self._events = events
        self._suspected: int | None = None
        self._call: IDelayedCall | None = None

    def startService(self) -> None:
        """Begin to look."""
        super().startService()
        self._call = self._clock.callLater(PERIOD, self._look)

    def stopService(self) -> None:
        """Stop looking."""
        super().stopService()
        if self._call is not None and self._call.active():
            self._call.cancel()

    def _look(self) -> None:
        self._call = self._clock.callLater(PERIOD, self._look)
        before, self._suspected = self._suspected, None
        if self._queue.hands.overdue():
            self._suspected = self._events()
            if before == self._suspected:
                spawn(self._log, "looking after an overdue prompt", self._check(before))

    async def _check(self, events: int) -> None:
        try:
            state: dict[str, Any] = await self._host.get_state()
            if self._events() != events or not self._queue.hands.overdue():
                return
            if state.get("pendingMessageCount"):
                cleared = await self._host.clear_queue()
                texts = [*cleared.get("steering", ()), *cleared.get("followUp", ())]
                await self._queue.give_back(texts)
            elif not state.get("isStreaming") and not state.get("isCompacting"):
                self._queue.hands.missed_settlement()
        except (PiGone, PiRefused) as error:
            self._log.info("an overdue prompt cannot be looked after: {reason}", reason=str(error))
