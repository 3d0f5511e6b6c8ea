"""Orders that ask Pi and may take their time, done beside those that must not wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from twisted.internet.defer import CancelledError, DeferredLock
from twisted.logger import Logger

from pitelegram.errors import PiGone, PiRefused, Refusal
from pitelegram.kernel.deferring import spawn
from pitelegram.store.rows import InboxRow

Answers = list[dict[str, Any]]
"""Deliveries that are stored together with the settlement of a row."""

Work = Callable[[], Awaitable[Answers]]


class Aside:
    """Runs one order after the other, and settles each when it is done.

    The row stays C{admitted} until then, so that a crash loses no order; whoever gives work here makes
    sure that doing it again does no harm.

    @param commit: settles a row with its answers.
    @param failed: returns the answers of an order that was refused.
    @param done: called after each.
    """

    _log = Logger()

    def __init__(
        self,
        commit: Callable[[InboxRow, Answers], Awaitable[None]],
        failed: Callable[[InboxRow, str], Answers],
        done: Callable[[], None],
    ) -> None:
        self._commit = commit
        self._failed = failed
        self._done = done
        self._rows: dict[int, bool] = {}
        self._lanes: dict[str, DeferredLock] = {}

    def has(self, seq: int) -> bool:
        """Whether a row's order is being done, or waits for its turn."""
        return seq in self._rows

    def earliest(self) -> int | None:
        """Return the first row that prompts behind it have to wait for, None when there is none."""
        return min((seq for seq, first in self._rows.items() if first), default=None)

    def begin(self, row: InboxRow, work: Work, lane: str = "", first: bool = False) -> None:
        """Do it when those before it in its lane are done.

        @param first: it changes what prompts behind it mean, or becomes one of them.
        """
        self._rows[row.seq] = first
        spawn(self._log, "an order", self._run(row, work, lane))

    async def _run(self, row: InboxRow, work: Work, lane: str) -> None:
        lock = self._lanes.setdefault(lane, DeferredLock())
        await lock.acquire()
        try:
            answers = await self._outcome(row, work)
        finally:
            lock.release()
            if not lock.locked and self._lanes.get(lane) is lock:
                del self._lanes[lane]
        # One that cannot be settled stays ours: done again now, it would be so for ever.
        await self._commit(row, answers)
        del self._rows[row.seq]
        self._done()

    async def _outcome(self, row: InboxRow, work: Work) -> Answers:
        try:
            return await work()
        except (Refusal, PiRefused, PiGone) as error:
            self._log.info("an order was not done: {reason}", reason=str(error))
            return self._failed(row, str(error))
        except CancelledError:
            raise
        except Exception:
            self._log.failure("an order failed")
            return self._failed(row, "")
