"""What Threads promise to their neighbours."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from twisted.internet.defer import Deferred
from zope.interface import Interface

from pitelegram.targets import TelegramTarget


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
        """C{observer(binding_key, target, old_target, reason)} after each committed change.

        C{reason}: C{created}, C{recreated} (after a loss: to be told to the user), C{lost},
        C{served}, C{unserved}, C{reassigned}, C{restored}, C{mode}, C{owner}, C{forgotten}.
        """

    def destination(binding_key: str) -> TelegramTarget | None:
        """Where messages of a binding go now: its target, or None.

        What is still to be said of a binding that was forgotten goes where C{daemon}'s goes.  For
        C{daemon} in classic mode it is the private chat itself, which stays free for workers.
        """

    def forget(binding_key: str) -> Deferred[None]:
        """Remove a binding: its slot and name are free, its Thread belongs to nobody."""

    def kick() -> None:
        """An owner was paired, or a worker came or went: look again what is missing."""

    def serve(binding_key: str) -> Deferred[None]:
        """Classic mode (D20): this binding gets the private chat itself.

        @raise pitelegram.errors.Refusal: C{unavailable} where that cannot be.
        """

    def unserve() -> Deferred[None]:
        """Classic mode: nobody has the chat, until C{serve}."""

    def renamed(message: dict[str, Any]) -> Deferred[None]:
        """A C{forum_topic_edited} service message: what the user calls a Thread, it stays called."""

    def title(binding_key: str, busy: bool = False) -> str:
        """What the Thread of a binding is to be called."""

    def retitle(binding_key: str, busy: bool = False) -> Deferred[bool]:
        """Rename the Thread of a binding, if its title is to be another one now.

        Fires with whether Telegram was asked.

        @raise pitelegram.errors.TelegramError: it was not done, or nobody can tell.
        """

    def lost(binding_key: str, target: TelegramTarget) -> Deferred[bool]:
        """A Thread is proven gone: clear it, make one new; False if it was another by then."""

    def reassign(binding_key: str, chat_id: int, thread_id: int | None) -> Deferred[bool]:
        """Give a Thread to another binding (compare-and-swap under the epoch)."""


class IAttaching(Interface):
    """Which Thread a worker has, by the operator's word (C{threads.attaching.Attaching})."""

    def is_attached(binding_key: str) -> bool:
        """Whether a binding is in a Thread that is not its own."""

    def is_classic() -> bool:
        """Whether there are no Threads, and the chat serves one worker at a time (rule D20)."""

    def serving() -> str | None:
        """The binding that has the chat itself, while there are no Threads."""

    def attach(binding_key: str, place: TelegramTarget) -> Awaitable[str]:
        """Give a Thread (in classic mode the chat) to a binding; returns what to say.

        @raise pitelegram.errors.Refusal: C{unavailable}, C{same-thread} or C{not-free}.
        """

    def detach(place: TelegramTarget) -> Awaitable[str]:
        """Move the worker of a Thread back to where it was; returns what to say.

        @raise pitelegram.errors.Refusal: C{not-attached}, C{not-free} or C{unavailable}.
        """
