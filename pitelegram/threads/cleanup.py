"""Inactive Threads: found by proof, shown, and deleted one by one with fresh proof."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

from pitelegram.botapi.interfaces import IBotApi
from pitelegram.errors import Fenced, Refusal, Refused, StoreError, TelegramError
from pitelegram.kernel.deferring import deferred, sleep, spawn
from pitelegram.panel.interfaces import ICleanup, Switches
from pitelegram.store.cleanups import Cleanups, Inactive
from pitelegram.store.interfaces import IBindings
from pitelegram.targets import TelegramTarget
from pitelegram.threads.observing import Observers

AGAIN_SECONDS, AGAIN_TIMES = 2.0, 1800
"""How often what became of a claim is stored again: for an hour; then the next leader does it."""

Protects = Callable[[str], str | None]
"""Says why a binding's Thread must stay, None when no process of it lives or may come back."""


@implementer(ICleanup)
@attrs.define(eq=False, kw_only=True)
class Cleanup:
    """See L{ICleanup}.

    The store proves what is durable (no update, answer or intent needs the Thread) in the very
    transaction that claims it; C{protects} proves what lives, right before that transaction and
    again right before the call.  A registration that comes meanwhile gets no Thread that is claimed.

    @param protects: see L{Protects}.
    @param dismiss: nobody wants a Thread for that binding, until somebody asks for one again.
    @param missing: looks for bindings that want a Thread and have none.
    @param read_switches: reads the switches from the file.
    @param write_switch: flips one in the file and fires with them.
    """

    api: IBotApi
    store: Cleanups
    bindings: IBindings
    observers: Observers
    protects: Protects
    dismiss: Callable[[str], None]
    missing: Callable[[], None]
    fresh_id: Callable[[], str]
    now_ms: Callable[[], int]
    read_switches: Callable[[], Switches]
    write_switch: Callable[[str], Deferred[Switches]]
    clock: IReactorTime
    _lock: DeferredLock = attrs.field(factory=DeferredLock, init=False)
    _log: Logger = attrs.field(factory=Logger, init=False)

    def review(self) -> Deferred[tuple[str, list[str]]]:
        """See L{ICleanup.review}."""
        return self._lock.run(self._review, 0)

    def delete(self, operation_id: str) -> Deferred[tuple[int, int]]:
        """See L{ICleanup.delete}."""
        return self._lock.run(self._delete, operation_id)

    def delete_newest(self) -> Deferred[tuple[int, int]]:
        """Delete what the newest review found; see L{ICleanup.delete}."""
        return self._lock.run(self._delete, None)

    def sweep(self, age_ms: int) -> Deferred[tuple[int, int, int]]:
        """Delete what has been inactive for C{age_ms}; fires with deleted, kept and too young."""
        return self._lock.run(self._sweep, age_ms)

    def switches(self) -> Switches:
        """See L{ICleanup.switches}."""
        return self.read_switches()

    def flip(self, name: str) -> Deferred[Switches]:
        """See L{ICleanup.flip}."""
        return self.write_switch(name)

    def quit(self, binding_key: str) -> Deferred[bool | None]:
        """Delete the Thread of one binding, if nothing speaks against it.

        The operator's review stays as it is.

        @return: fires with whether it is gone; None while something needs it.
        """
        return self._lock.run(self._quit, binding_key)

    @deferred
    async def _quit(self, binding_key: str) -> bool | None:
        found = [each for each in self.store.candidates() if each.binding_key == binding_key]
        if not found or self.protects(binding_key) is not None:
            return None
        item = attrs.evolve(found[0], operation_id=f"quit-{self.fresh_id()}")
        await self.store.add(item)
        return await self._one(item)

    @deferred
    async def _review(self, age_ms: int) -> tuple[str, list[str]]:
        operation = self.fresh_id()
        found = [
            attrs.evolve(item, operation_id=operation)
            for item in self.store.candidates()
            if item.inactive_since_ms <= self.now_ms() - age_ms
            and self.protects(item.binding_key) is None
        ]
        await self.store.review(operation, found)
        return operation, [self._name(item.binding_key) for item in found]

    @deferred
    async def _delete(self, operation_id: str | None) -> tuple[int, int]:
        items = self.store.reviewed(operation_id)
        if not items:
            raise Refusal(
                "stale",
                "there is no review that found anything, or not the newest one; review again",
            )
        outcomes = [await self._one(item) for item in items]
        return sum(outcomes), len(outcomes) - sum(outcomes)

    @deferred
    async def _sweep(self, age_ms: int) -> tuple[int, int, int]:
        young = sum(
            item.inactive_since_ms > self.now_ms() - age_ms for item in self.store.candidates()
        )
        operation, names = await self._review(age_ms)
        if not names:
            return 0, 0, young
        deleted, kept = await self._delete(operation)
        return deleted, kept, young

    async def _one(self, item: Inactive) -> bool:
        """Delete one Thread; whether it is gone."""
        reason = self.protects(item.binding_key)
        if reason is not None:
            await self.store.blocked(item, reason)
            return False
        if not await self.store.claim(item):
            return False
        reason = self.protects(item.binding_key)
        if reason is None:
            self.dismiss(item.binding_key)
            reason = await self._call(item)
        if reason is not None:
            await self._settled(item, lambda: self._stays(item, reason))
            return False
        await self._settled(item, lambda: self._is_gone(item))
        return True

    async def _settled(self, item: Inactive, settle: Callable[[], Awaitable[None]]) -> None:
        """Note what became of a claim; while that cannot be stored, again and again beside the rest.

        A claim that stayed would keep every registration of its binding waiting.
        """
        try:
            await settle()
        except Fenced:
            raise
        except StoreError as error:
            self._log.error("a deletion was not noted: {reason}", reason=str(error))
            spawn(self._log, "noting a deletion", self._keep_settling(settle))

    async def _keep_settling(self, settle: Callable[[], Awaitable[None]]) -> None:
        for _ in range(AGAIN_TIMES):
            await sleep(self.clock, AGAIN_SECONDS)
            try:
                await settle()
                return
            except Fenced:
                return
            except StoreError:
                continue

    async def _stays(self, item: Inactive, reason: str) -> None:
        await self.store.blocked(item, reason)
        self._give_back(item)

    async def _is_gone(self, item: Inactive) -> None:
        if await self.store.deleted(item):
            old = TelegramTarget(item.chat_id, item.thread_id)
            self.observers.tell(item.binding_key, None, old, "deleted")
            self.missing()

    async def _call(self, item: Inactive) -> str | None:
        """Delete the Thread; None when it is gone, else why it may not be."""
        params: dict[str, Any] = {"chat_id": item.chat_id, "message_thread_id": item.thread_id}
        try:
            await self.api.call("deleteForumTopic", params)
        except Refused as error:
            if error.code == 400 and "TOPIC_ID_INVALID" in error.description.upper():
                return None
            return "Telegram refused"
        except TelegramError as error:
            self._log.info("a Thread was not deleted: {why}", why=type(error).__name__)
            return "Telegram did not answer"
        return None

    def _give_back(self, item: Inactive) -> None:
        """Tell a worker that registered meanwhile that its Thread is there."""
        binding = self.bindings.get(item.binding_key)
        if binding is not None and binding.target is not None:
            self.observers.tell(item.binding_key, binding.target, None, "restored")

    def _name(self, binding_key: str) -> str:
        binding = self.bindings.get(binding_key)
        if binding is None:
            return binding_key
        return binding.title or binding.thread_name or binding.slot or "?"
