"""C{/attach} and C{/detach}: which Thread (or, without Threads, whose chat) a worker has."""

from __future__ import annotations

import attrs
from twisted.logger import Logger
from zope.interface import implementer

from pitelegram.errors import Refusal
from pitelegram.store.attachments import Attachments
from pitelegram.store.interfaces import IBindings
from pitelegram.store.rows import Binding
from pitelegram.targets import TelegramTarget
from pitelegram.threads.interfaces import IAttaching, IThreads
from pitelegram.threads.mode import DISABLED
from pitelegram.threads.titles import CONTROL_KEY


@implementer(IAttaching)
@attrs.define(eq=False)
class Attaching:
    """Moves a worker to another Thread of the same chat, and back.

    A worker keeps its directory, slot and name; only where it talks changes.  The Thread it leaves
    stays, belongs to nobody meanwhile, and is where C{/detach} returns it to.
    """

    _threads: IThreads
    _bindings: IBindings
    _attachments: Attachments
    _log: Logger = attrs.field(factory=Logger, init=False)

    def is_attached(self, binding_key: str) -> bool:
        """Whether a binding is in a Thread that is not its own."""
        return self._attachments.previous(binding_key) is not None

    def is_classic(self) -> bool:
        """See L{IAttaching.is_classic}."""
        return self._threads.mode() == DISABLED

    def serving(self) -> str | None:
        """See L{IAttaching.serving}."""
        for binding in self._bindings.list():
            target = binding.target
            if target is not None and target.thread_id is None:
                return None if binding.binding_key == CONTROL_KEY else binding.binding_key
        return None

    async def attach(self, binding_key: str, place: TelegramTarget) -> str:
        """Give the Thread C{place} to a binding; returns what to say.

        @raise Refusal: C{unavailable}, C{same-thread} or C{not-free}, with a sentence.
        """
        if self.is_classic():
            await self._threads.serve(binding_key)
            return "This chat talks to that worker now."
        binding = self._bindings.get(binding_key)
        if binding is None or binding.target is None or binding.target.thread_id is None:
            raise Refusal("unavailable", "that worker has no Thread to be moved from")
        self._check_place(binding, place)
        old = binding.target
        assert old.thread_id is not None
        home = self._attachments.previous(binding_key)
        await self._attachments.remember(binding_key, old.chat_id, old.thread_id)
        if not await self._threads.reassign(binding_key, place.chat_id, place.thread_id):
            if home is None:
                await self._attachments.forget(binding_key)
            raise Refusal("unavailable", "the Thread changed hands meanwhile; try again")
        if home == (place.chat_id, place.thread_id):
            await self._attachments.forget(binding_key)
        return "This Thread belongs to that worker now. /detach moves it back."

    async def detach(self, place: TelegramTarget) -> str:
        """Move the worker of C{place} back to where it was; returns what to say.

        @raise Refusal: C{not-attached}, or C{not-free}.
        """
        if self.is_classic():
            await self._threads.unserve()
            return "This chat talks to no worker now. /attach NAME chooses one."
        binding = self._bindings.by_target(place.chat_id, place.thread_id)
        previous = None if binding is None else self._attachments.previous(binding.binding_key)
        if binding is None or previous is None:
            raise Refusal("not-attached", "no worker was attached to this Thread")
        there = self._bindings.by_target(*previous)
        if there is not None and there.binding_key != binding.binding_key:
            raise Refusal("not-free", "the worker's former Thread belongs to another worker now")
        if not await self._threads.reassign(binding.binding_key, *previous):
            raise Refusal("unavailable", "the worker could not be moved back; try again")
        await self._attachments.forget(binding.binding_key)
        return "The worker is back in its own Thread."

    def _check_place(self, binding: Binding, place: TelegramTarget) -> None:
        assert binding.target is not None
        if place.thread_id is None:
            raise Refusal("unavailable", "write /attach in the Thread that the worker is to have")
        if place.chat_id != binding.target.chat_id:
            raise Refusal("unavailable", "a worker can only move within its own chat")
        if place == binding.target:
            raise Refusal("same-thread", "that worker has this Thread already")
        owner = self._bindings.by_target(place.chat_id, place.thread_id)
        if owner is not None and owner.binding_key == CONTROL_KEY:
            raise Refusal("not-free", "the daemon's own Thread cannot serve a worker")
        if owner is not None:
            raise Refusal("not-free", "this Thread belongs to another worker")
