"""Work that is done at the start and again and again, never twice at once."""

from __future__ import annotations

from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from pitelegram.kernel.deferring import deferred, log_failure


class Rounds(Service):
    """Base of such a service; a sub-class says what a round is.

    A round that fails is logged, and the next comes in its time.  One that is still under way then
    is left alone.  Stopping cancels it and waits for its end.

    @param period: seconds from one beginning to the next.
    """

    _log = Logger()

    def __init__(self, clock: IReactorTime, period: float) -> None:
        self._period = period
        self._under_way: Deferred[None] | None = None
        self._loop = LoopingCall(self._begin)
        self._loop.clock = clock

    def round(self) -> Deferred[None]:
        """Do one round; may be cancelled."""
        raise NotImplementedError

    def startService(self) -> None:
        """Begin with a round."""
        super().startService()
        self._loop.start(self._period)

    @deferred
    async def stopService(self) -> None:
        """Do no more rounds; see the class."""
        Service.stopService(self)
        if self._loop.running:
            self._loop.stop()
        under_way = self._under_way
        if under_way is not None:
            under_way.cancel()
            await under_way

    def _begin(self) -> None:
        if self._under_way is None:
            under_way = self.round().addErrback(self._failed).addBoth(self._ended)
            self._under_way = None if under_way.called else under_way

    def _failed(self, failure: Failure) -> None:
        if failure.check(CancelledError) is None:
            log_failure(self._log, type(self).__name__, failure)

    def _ended(self, outcome: Any) -> None:
        self._under_way = None
