"""Takes deliveries: checked, spooled, stored, and only then receipted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, DeferredLock
from zope.interface import implementer

from pitelegram.delivery.announce import Announcer
from pitelegram.delivery.interfaces import IDelivery
from pitelegram.delivery.sender import Sender
from pitelegram.delivery.shape import Delivery, parse_delivery
from pitelegram.delivery.spool import Spool
from pitelegram.errors import Refusal
from pitelegram.kernel.deferring import deferred
from pitelegram.store.interfaces import IOutbox
from pitelegram.store.outbox import outbox_key, receipt_state

RunBlocking = Callable[[Callable[[], Any]], "Deferred[Any]"]


@implementer(IDelivery)
class Intake:
    """See L{IDelivery}.

    @param run_blocking: runs a function that copies files, on a thread where there is one.
    """

    def __init__(
        self,
        outbox: IOutbox,
        spool: Spool,
        sender: Sender,
        announcer: Announcer,
        run_blocking: RunBlocking,
    ) -> None:
        self._outbox = outbox
        self._spool = spool
        self._sender = sender
        self._announcer = announcer
        self._run_blocking = run_blocking
        self._copying: dict[str, DeferredLock] = {}

    @deferred
    async def submit(
        self, binding_key: str, delivery_id: str, delivery: dict[str, Any], uploads: Any | None
    ) -> str:
        """Check, spool and store a delivery; fires with the receipt's state after the commit.

        The same id with the same content is answered without touching its files, which its sender
        may have removed since.

        @raise pitelegram.errors.BusBadRequest: the form is wrong.
        @raise Refusal: C{delivery-id-collision}, C{not-allowed}, C{too-large}.
        """
        parsed = parse_delivery(delivery_id, delivery)
        state = self._known(binding_key, delivery_id, parsed)
        if state is not None:
            return state
        if parsed.has_files and parsed.hold is None:
            state = await self._submit_files(binding_key, delivery_id, parsed, uploads)
        else:
            state = await self._store(binding_key, delivery_id, parsed, parsed.calls)
        self._sender.kick(binding_key)
        if parsed.hold is not None:
            self._announcer.kick()
        return state

    def kick(self, binding_key: str | None = None) -> None:
        """A target, a flood limit or a block changed: look again."""
        self._sender.kick(binding_key)
        self._announcer.kick()

    @deferred
    async def reopened(self, binding_key: str) -> None:
        """The user opened a binding's Thread again: its first part is due now, and the rest follows."""
        part = self._outbox.next_part(binding_key)
        if part is not None and part.next_attempt_ms:
            await self._outbox.retry(part.key, part.part, 0, "reopened")
        self.kick(binding_key)

    def again(self, key: str) -> Deferred[bool]:
        """The operator asked: send parked or dead parts once more, to the current target."""
        return self._sender.again(key)

    def blocked(self, blocked: bool) -> None:
        """C{my_chat_member} said the owner blocked or unblocked the bot."""
        self._sender.blocked(blocked)
        if not blocked:
            self._announcer.kick()

    def _known(self, binding_key: str, delivery_id: str, parsed: Delivery) -> str | None:
        found = self._outbox.find(binding_key, delivery_id)
        if found is None:
            return None
        if found[1] != parsed.digest:
            raise Refusal("delivery-id-collision", "this delivery id stands for other content")
        return receipt_state(found[0])

    def _store(
        self, binding_key: str, delivery_id: str, parsed: Delivery, calls: list[dict[str, Any]]
    ) -> Deferred[str]:
        return self._outbox.submit(
            binding_key, delivery_id, parsed.kind, parsed.digest, calls, parsed.hold
        )

    async def _submit_files(
        self, binding_key: str, delivery_id: str, parsed: Delivery, uploads: Path | None
    ) -> str:
        """One copy at a time per delivery: a repeat must not replace files that are being sent."""
        key = outbox_key(binding_key, delivery_id)
        lock = self._copying.setdefault(key, DeferredLock())
        await lock.acquire()
        try:
            state = self._known(binding_key, delivery_id, parsed)
            if state is None:
                copy = partial(self._spool.store, key, parsed.calls, uploads)
                calls = await self._run_blocking(copy)
                state = await self._store(binding_key, delivery_id, parsed, calls)
            return state
        finally:
            lock.release()
            if not lock.locked:
                self._copying.pop(key, None)
