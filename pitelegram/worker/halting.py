"""C{/abort}, C{/stop} and C{/next}: done at once, and answered within a second whatever Pi does."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred, TimeoutError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from pitelegram.bridge import labels
from pitelegram.errors import PiGone, PiRefused, StoreError
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.observers import OneShot
from pitelegram.store.rows import InboxRow
from pitelegram.worker.brake import Aborted, Brake
from pitelegram.worker.queue import Queue
from pitelegram.worker.settling import Settler, short_id

KNOWN_BY = 0.5
"""Seconds after which the operator is told what is known; Pi usually needs a hundredth of one."""


class Halting:
    """Answers the commands that end something."""

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        brake: Brake,
        queue: Queue,
        settler: Settler,
    ) -> None:
        self._clock = clock
        self._brake = brake
        self._queue = queue
        self._settler = settler

    @deferred
    async def abort(self, row: InboxRow) -> str:
        """End the run; the queue goes on.  Fires with the answer to the command's row."""
        return await self._soon(row, self._brake.abort(), _aborted, "")

    @deferred
    async def stop(self, row: InboxRow) -> str:
        """End the run and clear the queue.

        Only what was there before the command goes: done again after a crash it clears nothing
        newer.  A store that cannot be written does not keep the run from being ended.
        """
        try:
            cleared = await self._brake.clear(before=row.seq)
        except StoreError as error:
            self._log.error("the queue cannot be cleared: {reason}", reason=str(error))
            return await self._soon(
                row,
                self._brake.abort(),
                lambda found: _aborted(found) + labels.NOT_CLEARED,
                labels.NOT_CLEARED,
            )
        aborting = self._brake.abort(keep=False, before=row.seq)
        # What Pi refused while the abort waited for it is held again.
        aborting.addBoth(self._cleared_again, row.seq)
        return await self._soon(
            row,
            aborting,
            lambda found: labels.aborted(found.run, found.compaction, cleared + found.dropped),
            labels.cleared_turns(cleared),
        )

    @deferred
    async def next_turn(self, row: InboxRow) -> str:
        """End the run so that what waits has its turn."""
        if not self._queue.waits():
            return labels.QUEUE_EMPTY
        found = self._brake.at_work()
        if not found.run and not found.compaction:
            self._queue.kick(new=True)
            return labels.NEXT_TURN
        return await self._soon(
            row,
            self._brake.abort(),
            lambda found: f"{_aborted(found)} {labels.NEXT_TURN}",
            "",
        )

    async def _soon(
        self,
        row: InboxRow,
        aborting: Deferred[Aborted],
        words: Callable[[Aborted], str],
        known: str,
    ) -> str:
        """Return what came of an abort, or what is known so far; then the rest is told later.

        @param known: what is true whatever Pi does, as the end of an answer.
        """
        outcome: OneShot[str] = OneShot()
        aborting.addCallback(words).addErrback(self._failed, known).addBoth(outcome.fire)
        try:
            return await outcome.when().addTimeout(KNOWN_BY, self._clock)
        except TimeoutError:
            outcome.when().addCallback(
                lambda text: self._settler.say(f"reply-{short_id(row.delivery_id)}-late", text)
            )
            return labels.ABORT_IS_LATE + known

    def _failed(self, failure: Failure, known: str) -> str:
        if failure.check(PiGone, PiRefused):
            self._log.info("an abort failed: {reason}", reason=failure.getErrorMessage())
        else:
            self._log.failure("an abort failed", failure)
        return (labels.ABORT_UNANSWERED if self._brake.up else labels.aborted(False)) + known

    @deferred
    async def _cleared_again(self, result: Aborted | Failure, before: int) -> Aborted:
        dropped = await self._brake.clear(before=before)
        if isinstance(result, Failure):
            result.raiseException()
        return Aborted(result.run, result.compaction, result.dropped + dropped)


def _aborted(found: Aborted) -> str:
    return labels.aborted(found.run, found.compaction)
