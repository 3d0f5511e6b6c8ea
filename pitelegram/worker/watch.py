"""Finds what was missed: a Pi that is idle or busy against all events, work that nobody went on with."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
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
SILENT_LOOKS = 15
"""Looks without any event after which a busy Pi is asked whether it still is."""


class Watch(Service):
    """Looks every two seconds; asks Pi itself before anything is concluded.

    What Pi still has in its own queue is taken back and held again; what it took and lost becomes
    uncertain, since Pi had accepted it.

    @param events: returns a number that changes with every event of Pi.
    @param retry: goes on with work that failed, a full disk's for one; harmless at any time.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        queue: Queue,
        host: IPiHost,
        events: Callable[[], int],
        retry: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._queue = queue
        self._host = host
        self._events = events
        self._retry = retry
        self._suspected: int | None = None
        self._seen = 0
        self._silent = 0
        self._asking = False
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
        self._retry()
        if self._queue.held:
            self._queue.kick()
        events, hands = self._events(), self._queue.hands
        self._silent = self._silent + 1 if events == self._seen else 0
        self._seen = events
        before, self._suspected = self._suspected, None
        if hands.overdue():
            self._suspected = events
            if before == events:
                self._ask("looking after an overdue prompt", self._check(events))
        elif self._silent >= SILENT_LOOKS and hands.busy():
            self._silent = 0
            self._ask("asking a silent Pi", self._refresh())

    def _ask(self, what: str, work: Coroutine[Any, Any, None]) -> None:
        """Ask one thing at a time: a Pi that hangs is not asked again and again."""
        if self._asking:
            work.close()
            return
        self._asking = True
        spawn(self._log, what, work).addBoth(self._asked)

    def _asked(self, _: object) -> None:
        self._asking = False

    async def _refresh(self) -> None:
        """What Pi says takes the place of what its events said; the next look draws conclusions."""
        try:
            await self._host.get_state()
        except (PiGone, PiRefused) as error:
            self._log.info("a silent Pi does not tell its state: {reason}", reason=str(error))

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
