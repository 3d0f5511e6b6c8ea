"""What Threads promise to their neighbours."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from zope.interface import Interface


class IThreads(Interface):
    """Slots, names, titles and Threads of bindings (C{threads.provision.Threads}, a Service)."""

    def ensure(binding_key: str, kind: str, directory: str | None) -> Deferred[Any]:
        """Give a binding its row, slot and palette name, and start making its Thread.

        Fires with the L{pitelegram.store.rows.Binding} at once, without waiting for Telegram; the
        Thread follows (observers hear of it).  C{daemon} is the Control Thread and takes no slot.

        @raise pitelegram.errors.Refusal: C{no-slot} at the 27th.
        """

    def mode() -> str:
        """C{enabled}, C{disabled} or C{unknown} (remembered from the last C{getMe})."""

    def learn(me: dict[str, Any]) -> None:
        """A fresh C{getMe} answer: bot name and thread mode."""

    def created(message: dict[str, Any]) -> Deferred[None]:
        """A C{forum_topic_created} service message by the bot: settles a lost answer."""

    def subscribe(observer: Any) -> None:
        """C{observer(binding_key, target, old_target, reason)} after each committed change."""

    def serve(binding_key: str) -> Deferred[None]:
        """Classic mode (D20): this binding gets the private chat itself."""

    def reassign(binding_key: str, chat_id: int, thread_id: int | None) -> Deferred[bool]:
        """Give a Thread to another binding (compare-and-swap under the epoch)."""
