"""Retention of the leader's store: what has served its time goes, in small batches."""

from __future__ import annotations

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from pitelegram.errors import StoreError
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.store.interfaces import IBindings, IDatabase, IJournal, ILeadership, IOutbox

PERIOD = 3600.0
"""Seconds between two rounds."""

BATCH = 200
"""Rows per transaction, so that no update waits long behind one."""

PAUSE = 0.05
"""Seconds between two batches."""

HOUR_MS = 3_600_000
JOURNAL_MS = 48 * HOUR_MS
HISTORY_MS = 90 * 24 * HOUR_MS
MESSAGES_MS = 30 * 24 * HOUR_MS
TOMBSTONE_MS = 45 * 24 * HOUR_MS
TOMBSTONES = 4096
"""Delivered rows go once they are both older than that and beyond the newest so many."""


class Retention(Service):
    """Runs at start and hourly."""

    log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        database: IDatabase,
        journal: IJournal,
        outbox: IOutbox,
        bindings: IBindings,
        leadership: ILeadership,
    ) -> None:
        self._clock = clock
        self._database = database
        self._journal = journal
        self._outbox = outbox
        self._bindings = bindings
        self._leadership = leadership
        self._round: Deferred[None] | None = None
        self._loop = LoopingCall(self._begin)
        self._loop.clock = clock

    def startService(self) -> None:
        """Begin."""
        super().startService()
        self._loop.start(PERIOD, now=True)

    @deferred
    async def stopService(self) -> None:
        """Stop between two batches."""
        Service.stopService(self)
        self._loop.stop()
        running = self._round
        if running is not None:
            running.cancel()
            await running

    def _begin(self) -> None:
        if self._round is None:
            self._round = self._forget()
            self._round.addBoth(self._ended)

    def _ended(self, outcome: object) -> None:
        self._round = None

    @deferred
    async def _forget(self) -> None:
        now = self._database.now_ms()
        try:
            for forget in (
                lambda: self._journal.forget_settled(now - JOURNAL_MS, BATCH),
                lambda: self._bindings.forget_messages(now - MESSAGES_MS, BATCH),
                lambda: self._outbox.forget_delivered(now - TOMBSTONE_MS, TOMBSTONES, BATCH),
                lambda: self._leadership.forget_history(now - HISTORY_MS, BATCH),
            ):
                while await forget() >= BATCH:
                    await sleep(self._clock, PAUSE)
        except CancelledError:
            return
        except StoreError as error:
            self.log.warn("retention stopped for this hour: {why}", why=str(error))
