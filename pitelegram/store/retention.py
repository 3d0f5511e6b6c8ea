"""Retention of the leader's store: what has served its time goes, in small batches."""

from __future__ import annotations

from twisted.internet.interfaces import IReactorTime

from pitelegram.errors import StoreError
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.kernel.rounds import Rounds
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


class Retention(Rounds):
    """Runs at start and hourly."""

    def __init__(
        self,
        clock: IReactorTime,
        database: IDatabase,
        journal: IJournal,
        outbox: IOutbox,
        bindings: IBindings,
        leadership: ILeadership,
    ) -> None:
        super().__init__(clock, PERIOD)
        self._clock = clock
        self._database = database
        self._journal = journal
        self._outbox = outbox
        self._bindings = bindings
        self._leadership = leadership

    @deferred
    async def round(self) -> None:
        """Forget what is old enough, batch by batch; a refusal of the store ends the round."""
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
        except StoreError as error:
            self._log.warn("retention stopped for this hour: {why}", why=str(error))
