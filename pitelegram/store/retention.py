"""Retention of the leader's store: what has served its time goes, in small batches."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime

from pitelegram.errors import StoreError
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.kernel.rounds import Rounds
from pitelegram.store.interfaces import IBindings, IDatabase, IJournal, ILeadership, IOutbox

PERIOD = 3600.0
"""Seconds between two rounds."""

LOOK = 10.0
"""Seconds between two looks whether a round is due."""

RETRY = 60.0
"""Seconds after which a round that failed is tried again."""

BATCH = 200
"""Rows per transaction, at first and at most."""

SMALLEST = 10
"""Rows per transaction, at least."""

BUDGET = 0.025
"""Seconds that a batch may take: half of what an update may wait for it (the other is its own)."""

PAUSE = 0.05
"""Seconds between two batches."""

HOUR_MS = 3_600_000
JOURNAL_MS = 48 * HOUR_MS
HISTORY_MS = 90 * 24 * HOUR_MS
MESSAGES_MS = 30 * 24 * HOUR_MS
TOMBSTONE_MS = 45 * 24 * HOUR_MS
TOMBSTONES = 4096
"""Delivered rows go once they are both older than that and beyond the newest so many."""

NEVER, OK, FAILED = "never", "ok", "failed"

Forget = Callable[[int], Deferred[int]]
"""Takes a limit; fires with how many rows went."""


class Retention(Rounds):
    """Runs at the start and hourly, and sooner after a round that failed.

    While the store refuses writes it is tried at each look, so that an end of that is noticed even
    when nobody else has anything to write.

    @param monotonic: seconds of a clock that nobody sets.
    """

    def __init__(
        self,
        clock: IReactorTime,
        database: IDatabase,
        journal: IJournal,
        outbox: IOutbox,
        bindings: IBindings,
        leadership: ILeadership,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(clock, LOOK)
        self._clock = clock
        self._database = database
        self._journal = journal
        self._outbox = outbox
        self._bindings = bindings
        self._leadership = leadership
        self._monotonic = monotonic
        self._batch = BATCH
        self._due = monotonic()
        self._status = NEVER
        self._completed_ms: int | None = None

    @property
    def problem(self) -> str | None:
        """The sentence for the operator after a round that failed."""
        if self._status != FAILED:
            return None
        return "the store could not be maintained; it is tried again each minute"

    def report(self) -> dict[str, Any]:
        """Return what the status document says of maintenance."""
        return {
            "status": self._status,
            "last_completed_at_ms": self._completed_ms,
            "batch_size": self._batch,
            "cadence_seconds": int(PERIOD),
        }

    @deferred
    async def round(self) -> None:
        """Forget what is old enough if it is time for that; a refusal of the store ends the round."""
        try:
            if self._monotonic() >= self._due:
                await self._maintain()
            elif self._database.times.failure is not None:
                await self._leadership.set_meta("store_tried_ms", str(self._database.now_ms()))
        except CancelledError:
            raise
        except StoreError as error:
            if self._status != FAILED:
                self._log.warn("the store could not be maintained: {why}", why=str(error))
            self._failed_once()
        except Exception:
            self._failed_once()
            raise

    def _failed_once(self) -> None:
        self._status = FAILED
        self._due = self._monotonic() + RETRY

    async def _maintain(self) -> None:
        now = self._database.now_ms()
        self._due = self._monotonic() + PERIOD
        for forget in self._tables(now):
            while await self._take(forget):
                await sleep(self._clock, PAUSE)
        await self._database.checkpoint()
        self._status = OK
        self._completed_ms = self._database.now_ms()

    def _tables(self, now: int) -> tuple[Forget, ...]:
        return (
            lambda limit: self._journal.forget_settled(now - JOURNAL_MS, limit),
            lambda limit: self._bindings.forget_messages(now - MESSAGES_MS, limit),
            lambda limit: self._outbox.forget_delivered(now - TOMBSTONE_MS, TOMBSTONES, limit),
            lambda limit: self._leadership.forget_history(now - HISTORY_MS, limit),
        )

    async def _take(self, forget: Forget) -> bool:
        """Forget one batch; returns whether more is left.  The next one is as large as time allows."""
        limit, began = self._batch, self._monotonic()
        gone = await forget(limit)
        took = self._monotonic() - began
        if took > BUDGET:
            self._batch = max(SMALLEST, limit // 2)
        elif took < BUDGET / 4:
            self._batch = min(BATCH, limit * 2)
        return gone >= limit
