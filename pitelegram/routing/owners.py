"""Who sent, or was given, which message."""

from __future__ import annotations

from collections import defaultdict

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from pitelegram.kernel.deferring import deferred
from pitelegram.routing.batch import Batch
from pitelegram.store.interfaces import IBindings

_Note = tuple[int, int, str, bool]


class MessageOwners:
    """Remembers owners of messages; what is not written yet is known all the same."""

    def __init__(self, bindings: IBindings, clock: IReactorTime) -> None:
        self._bindings = bindings
        self._fresh: dict[tuple[int, int], tuple[str, bool]] = {}
        self._batch: Batch[_Note] = Batch(clock, self._write)

    def expected(self, chat_id: int, message_id: int, binding_key: str) -> None:
        """A message is about to be forwarded to a binding; what comes right after it may ask."""
        self._fresh[chat_id, message_id] = binding_key, False

    def given(self, chat_id: int, message_id: int, binding_key: str) -> None:
        """A message was forwarded to a binding: reactions and edits on it follow there."""
        self._note(chat_id, message_id, binding_key, False)

    def shown(self, chat_id: int, message_id: int, binding_key: str) -> None:
        """A button of a message that nobody is known to have sent goes to a binding: its own it is.

        A leader that was killed between Telegram's answer and its commit leaves such a message.
        """
        if self.owner(chat_id, message_id) is None:
            self._note(chat_id, message_id, binding_key, True)

    def _note(self, chat_id: int, message_id: int, binding_key: str, outgoing: bool) -> None:
        self._fresh[chat_id, message_id] = binding_key, outgoing
        self._batch.add((chat_id, message_id, binding_key, outgoing))

    def owner(self, chat_id: int, message_id: int) -> tuple[str, bool] | None:
        """Return C{(binding_key, outgoing)}, or None."""
        fresh = self._fresh.get((chat_id, message_id))
        if fresh is not None:
            return fresh
        return self._bindings.message_owner(chat_id, message_id)

    def stop(self) -> Deferred[None]:
        """Fire when nothing is being written any more."""
        return self._batch.stop()

    @deferred
    async def _write(self, notes: list[_Note]) -> None:
        groups: defaultdict[tuple[int, str, bool], list[int]] = defaultdict(list)
        for chat_id, message_id, binding_key, outgoing in notes:
            groups[chat_id, binding_key, outgoing].append(message_id)
        writing = [
            self._bindings.remember_messages(chat_id, message_ids, binding_key, outgoing)
            for (chat_id, binding_key, outgoing), message_ids in groups.items()
        ]
        for each in writing:
            await each
        for chat_id, message_id, *owner in notes:
            if self._fresh.get((chat_id, message_id)) == tuple(owner):
                del self._fresh[chat_id, message_id]
