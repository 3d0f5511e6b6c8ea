"""Updates that the leader forwards, on their way into the inbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pitelegram.bridge import labels
from pitelegram.bridge.answer import notice
from pitelegram.bridge.incoming import Nothing, Prompt, read_update
from pitelegram.bridge.prompt import prompt_text
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.jsonio import dumps
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.dialogs import Dialogs
from pitelegram.worker.orders import Orders
from pitelegram.worker.queue import Queue
from pitelegram.worker.settling import short_id


class Intake:
    """Stores an update before it is answered for; a repeat changes nothing.

    @param stored: called when a notice may wait for submission.
    @param thread_name: returns the name of the worker's Thread, where it has one.
    """

    def __init__(
        self,
        inbox: IInbox,
        queue: Queue,
        orders: Orders,
        stored: Callable[[], None],
        thread_name: Callable[[], str | None],
        dialogs: Dialogs,
    ) -> None:
        self._inbox = inbox
        self._queue = queue
        self._orders = orders
        self._stored = stored
        self._thread_name = thread_name
        self._dialogs = dialogs

    @deferred
    async def admit(
        self, delivery_id: str, update_id: int, kind: str, update: dict[str, Any]
    ) -> tuple[str, str]:
        """Fire with the receipt's C{(settlement, reason)} after the commit."""
        try:
            asked, origin = read_update(kind, update)
        except ValueError:
            return "terminal-rejected", "the update does not hold what its kind promises"
        prompt = None
        # A reply to a dialog is its answer, or too late; it is never a prompt.
        if isinstance(asked, Prompt) and not self._dialogs.wants(origin):
            prompt = prompt_text(asked.text, self._thread_name(), asked.missing)
        new = await self._inbox.admit(
            delivery_id,
            "telegram",
            kind,
            dumps(update),
            prompt,
            update_id=update_id,
            chat_id=origin.chat_id,
            thread_id=origin.thread_id,
            message_id=origin.message_id,
            lane="normal" if prompt is not None or isinstance(asked, Nothing) else "control",
        )
        if new and prompt is not None and isinstance(asked, Prompt) and asked.missing:
            await self._tell_missing(delivery_id, asked.missing)
        if prompt is None:
            self._orders.kick()
        else:
            self._queue.kick(new=new)
        return "accepted", ""

    async def _tell_missing(self, delivery_id: str, missing: str) -> None:
        row = self._inbox.row(delivery_id)
        if row is not None:
            text = labels.not_taken(missing, with_text=True)
            (told, *_) = notice(f"missing-{short_id(delivery_id)}", text, row.admitted_ms)
            await self._inbox.add_answer(told["delivery_id"], "notice", told["delivery"])
            self._stored()
