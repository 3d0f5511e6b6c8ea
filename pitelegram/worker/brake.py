"""Ending what Pi does, and emptying what waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.pi.interfaces import IPiHost
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.handover import HANDING, RUNNING
from pitelegram.worker.queue import Queue

ANSWER_DUE = 5.0
"""Seconds to wait for Pi's answer to a prompt before an abort follows it."""


@attrs.frozen
class Aborted:
    """What an abort came to.

    @ivar run: there was a run to end, or a prompt on its way.
    @ivar compaction: Pi compacted its context.
    @ivar dropped: how many prompts from Pi's own queue will not run.
    """

    run: bool = False
    compaction: bool = False
    dropped: int = 0


class Brake:
    """Abort and clear, as commands, the control socket and the stop ladder need them.

    @param up: whether Pi can be talked to.
    @param cancel_dialogs: answers Pi's open dialogs as cancelled: they block prompts and aborts.
    @param drop_groups: skips what is still being made into prompts (L{IGatherer.drop}).
    """

    def __init__(
        self,
        clock: IReactorTime,
        inbox: IInbox,
        queue: Queue,
        host: IPiHost,
        up: Callable[[], bool],
        cancel_dialogs: Callable[[], None],
        drop_groups: Callable[[int | None], Deferred[int]],
    ) -> None:
        self._clock = clock
        self._inbox = inbox
        self._queue = queue
        self._host = host
        self._up = up
        self._cancel_dialogs = cancel_dialogs
        self._drop_groups = drop_groups

    @property
    def up(self) -> bool:
        """Whether Pi can be talked to."""
        return self._up()

    def at_work(self) -> Aborted:
        """Return what an abort would end now."""
        if not self._up():
            return Aborted()
        state = self._host.state or {}
        run = bool(state.get("isStreaming")) or self._queue.state in (HANDING, RUNNING)
        return Aborted(run, bool(state.get("isCompacting")))

    @deferred
    async def abort(self, keep: bool = True, before: int | None = None) -> Aborted:
        """End the current run, or compaction.

        Prompts that Pi had queued come back as held ones, each to its old place.

        @param keep: leave those in the queue; else they are dropped.
        @param before: drop only rows before this one.
        @raise pitelegram.errors.PiGone: Pi ended meanwhile, or did not answer.
        """
        if not self._up():
            return Aborted()
        self._cancel_dialogs()
        # An abort that overtakes a prompt on its way finds nothing to end.
        waited = 0.0
        while self._queue.handed_in_flight() and waited < ANSWER_DUE:
            await sleep(self._clock, 0.05)
            waited += 0.05
        found = self.at_work()
        cleared = await self._host.abort()
        self._cancel_dialogs()
        returned = await self._queue.give_back(_texts(cleared), kick=keep)
        dropped = 0
        if not keep:
            dropped = await self._drop([seq for seq in returned if before is None or seq < before])
        return attrs.evolve(found, dropped=dropped)

    @deferred
    async def clear(self, before: int | None = None) -> int:
        """Drop what is gathered and held (before a row, where one is named); fires with how many."""
        gathered = await self._drop_groups(before)
        rows = self._queue.skippable()
        chosen = [row.seq for row in rows if before is None or row.seq < before]
        return gathered + await self._drop(chosen)

    @deferred
    async def clear_all(self) -> int:
        """Drop gathered and held prompts and those in Pi's own queue; fires with how many."""
        dropped = await self.clear()
        if self._up():
            returned = await self._queue.give_back(
                _texts(await self._host.clear_queue()), kick=False
            )
            dropped += await self._drop(returned)
        return dropped

    async def _drop(self, seqs: list[int]) -> int:
        if seqs:
            await self._inbox.skip(seqs)
        self._queue.kick()
        return len(seqs)


def _texts(cleared: dict[str, Any] | None) -> list[str]:
    cleared = cleared or {}
    return [*cleared.get("steering", ()), *cleared.get("followUp", ())]
