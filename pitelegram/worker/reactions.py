"""Reactions to a message that waits: into the priority lane, or dropped at its turn."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger

from pitelegram.bridge.reactions import Wish
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.lanes import CONTROL, NORMAL, PRIORITY, waiting_row
from pitelegram.worker.queue import Queue


def _nothing_to_flush(chat_id: int, message_id: int) -> Deferred[None]:
    return succeed(None)


class Reactions:
    """Does what a reaction asks; what was handed, or is over, is left alone.

    A message that is still being made into a prompt takes the wish along: it is written to its row,
    and the group it belongs to is closed.

    @param flush: closes the group that a message is being gathered into; not waited for, since the
        files of a group may take long and other commands wait behind this one.
    """

    _log = Logger()

    def __init__(
        self,
        inbox: IInbox,
        queue: Queue,
        flush: Callable[[int, int], Deferred[None]] = _nothing_to_flush,
    ) -> None:
        self._inbox = inbox
        self._queue = queue
        self._flush = flush

    @deferred
    async def apply(self, chat_id: int, message_id: int, wish: Wish) -> None:
        """Do what changed on a message; nothing is written for what is so already."""
        row = waiting_row(self._inbox, chat_id, message_id)
        if row is None or wish == Wish():
            return
        if wish.priority is not None and row.lane != CONTROL:
            await self._queue.move(row.seq, PRIORITY if wish.priority else NORMAL)
        if wish.skip is not None:
            await self._queue.mark(row.seq, wish.skip)
        if row.state == "admitted":
            spawn(self._log, "closing a group", self._flush(chat_id, message_id))
