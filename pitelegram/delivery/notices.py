"""Short messages of the daemon itself, as durable as answers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from twisted.logger import Logger
from zope.interface import implementer

from pitelegram.delivery.shape import parse_delivery
from pitelegram.delivery.text import shortened
from pitelegram.errors import Refusal
from pitelegram.kernel.alarms import is_alarm
from pitelegram.kernel.deferring import deferred
from pitelegram.routing.interfaces import INotices
from pitelegram.store.interfaces import IOutbox


@implementer(INotices)
class Notices:
    """See L{INotices}.

    @param kick: tells the sender that a binding has something to send.
    @param fresh_id: makes the id of a notice that was given none.
    """

    _log = Logger()

    def __init__(
        self, outbox: IOutbox, kick: Callable[[str], None], fresh_id: Callable[[], str]
    ) -> None:
        self._outbox = outbox
        self._kick = kick
        self._fresh_id = fresh_id

    @deferred
    async def post(
        self,
        binding_key: str,
        text: str,
        notice_id: str | None = None,
        buttons: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Store a notice for a binding's Thread; fires after the commit.

        The same C{notice_id} is posted once per binding, whatever its text is the second time.
        """
        delivery_id = _delivery_id(self._fresh_id() if notice_id is None else notice_id)
        params: dict[str, Any] = {
            "text": shortened(text),
            "link_preview_options": {"is_disabled": True},
        }
        if not buttons and not is_alarm(text):
            params["disable_notification"] = True
        if buttons:
            row = [{"text": label, "callback_data": data} for label, data in buttons]
            params["reply_markup"] = {"inline_keyboard": [row]}
        delivery = {"kind": "notice", "calls": [{"method": "sendMessage", "params": params}]}
        parsed = parse_delivery(delivery_id, delivery)
        try:
            await self._outbox.submit(
                binding_key, delivery_id, parsed.kind, parsed.digest, parsed.calls
            )
        except Refusal:
            self._log.debug("notice {notice} was posted before", notice=delivery_id)
            return
        self._kick(binding_key)


def _delivery_id(notice_id: str) -> str:
    """Return a delivery id; one that the grammar does not take is replaced by its digest."""
    fits = len(notice_id) <= 100 and notice_id.isascii()
    if not fits or not all(each.isalnum() or each in "._-" for each in notice_id):
        notice_id = hashlib.sha256(notice_id.encode()).hexdigest()[:32]
    return f"notice-{notice_id}"
