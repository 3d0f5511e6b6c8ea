"""Updates that the leader forwards, on their way into the inbox."""

from __future__ import annotations

from typing import Any, TypeGuard

from pitelegram.bridge.callbacks import SENT, is_ours
from pitelegram.bridge.grouping import Place
from pitelegram.bridge.incoming import Asked, Origin, Press, Prompt, read_update
from pitelegram.bridge.prompt import callback_text
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.jsonio import dumps
from pitelegram.store.rows import InboxRow
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.bestcalls import BestEffort
from pitelegram.worker.dialogs import Dialogs
from pitelegram.worker.editing import Editing
from pitelegram.worker.gathering import Gatherer
from pitelegram.worker.orders import Orders
from pitelegram.worker.queue import Queue


class Intake:
    """Stores an update before it is answered for; a repeat changes nothing."""

    def __init__(
        self,
        inbox: IInbox,
        queue: Queue,
        orders: Orders,
        dialogs: Dialogs,
        gatherer: Gatherer,
        editing: Editing,
        calls: BestEffort,
    ) -> None:
        self._inbox = inbox
        self._queue = queue
        self._orders = orders
        self._dialogs = dialogs
        self._gatherer = gatherer
        self._editing = editing
        self._calls = calls

    @deferred
    async def admit(
        self, delivery_id: str, update_id: int, kind: str, update: dict[str, Any]
    ) -> tuple[str, str]:
        """Fire with the receipt's C{(settlement, reason)} after the commit."""
        try:
            asked, origin = read_update(kind, update)
            body = dumps(update)
        except ValueError:
            return "terminal-rejected", "the update does not hold what its kind promises"
        gathered = self._is_prompt(asked, origin)
        place: Place = origin.chat_id, origin.thread_id
        if kind == "message":
            self._gatherer.expect(place)
        row: InboxRow | None = None
        try:
            new = await self._store(delivery_id, update_id, kind, update, body, asked, origin)
            if new and gathered:
                row = await self._editing.edited_before(self._inbox.row(delivery_id))
        finally:
            if kind == "message":
                self._gatherer.take(place, row)
        if _becomes_prompt(asked):
            self._queue.kick(new=new)
            self._calls.answer_callback(asked.callback_id, SENT)
        elif not gathered:
            self._orders.hurry(asked)
        return "accepted", ""

    async def _store(
        self,
        delivery_id: str,
        update_id: int,
        kind: str,
        update: dict[str, Any],
        body: bytes,
        asked: Asked,
        origin: Origin,
    ) -> bool:
        """Commit it; returns whether it is new.  What becomes no prompt overtakes the queue."""
        prompt, lane = None, "normal" if self._is_prompt(asked, origin) else "control"
        if _becomes_prompt(asked):
            prompt, lane = callback_text(asked.data), "priority"
        elif lane == "normal" and self._waits_for_nothing(asked, origin):
            prompt = self._gatherer.at_once((origin.chat_id, origin.thread_id), update)
        return await self._inbox.admit(
            delivery_id,
            "telegram",
            kind,
            body,
            prompt,
            update_id=update_id,
            chat_id=origin.chat_id,
            thread_id=origin.thread_id,
            message_id=origin.message_id,
            lane=lane,
        )

    def _waits_for_nothing(self, asked: Asked, origin: Origin) -> bool:
        early = self._editing.waits_for(origin.chat_id, origin.message_id)
        return isinstance(asked, Prompt) and asked.plain and not early

    def _is_prompt(self, asked: Asked, origin: Origin) -> bool:
        """A reply to a dialog is its answer, or too late; it is never a prompt."""
        return isinstance(asked, Prompt) and not self._dialogs.wants(origin)


def _becomes_prompt(asked: Asked) -> TypeGuard[Press]:
    """Whether it is the press of a button that the bot showed and that is nobody's here."""
    return isinstance(asked, Press) and asked.offered and not is_ours(asked.data)
