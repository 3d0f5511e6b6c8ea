"""What Threads promise to their neighbours."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from twisted.internet.defer import Deferred
from zope.interface import Interface

from pitelegram.targets import TelegramTarget

MARKS: dict[bool | None, str] = {None: "", True: "⏳ ", False: "🟢 "}
"""What the display mode C{state} puts before a label: nothing while a worker has not reported."""


def without_mark(title: str) -> str:
    """Return a title without the mark of the display mode C{state}."""
    for mark in MARKS.values():
        if mark and title.startswith(mark):
            return title[len(mark) :]
    return title


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

    def closed(message: dict[str, Any]) -> Deferred[str | None]:
        """A C{forum_topic_closed} service message: the user's Thread is left alone.

        No title is edited meanwhile.  Fires with the binding whose Thread it is, None for nobody's.
        """

    def reopened(message: dict[str, Any]) -> Deferred[str | None]:
        """A C{forum_topic_reopened} service message; fires as L{closed}."""

    def found_closed(binding_key: str, target: TelegramTarget) -> Deferred[None]:
        """Telegram refused a message: that Thread is closed."""

    def title(binding_key: str, busy: bool | None = None) -> str:
        """What the Thread of a binding is to be called.

        @param busy: whether its worker is at work; None: it has not said.
        """

    def exists(binding_key: str, target: TelegramTarget) -> Deferred[bool | None]:
        """Whether Telegram has the Thread of a binding; fires with None when nobody can tell.

        The proof is an edit with the last known title (rule D29), never beside another edit: it
        would take the newer title away again.
        """

    def retitle(binding_key: str, busy: bool | None = None) -> Deferred[bool]:
        """Rename the Thread of a binding, if its title is to be another one now.

        Fires with whether Telegram was asked.

        @raise pitelegram.errors.TelegramError: it was not done, or nobody can tell.
        """

    def rename(
        binding_key: str, target: TelegramTarget | None, name: str, busy: bool | None = None
    ) -> Deferred[tuple[str, str | None]]:
        """Give a Thread the name that the operator wants; an empty one: its own title again.

        Fires with the title that Telegram took and the name, after both are stored.

        @param target: where the operator said so: refused when the binding has another by now.
        @raise pitelegram.errors.Refusal: C{invalid-name}, C{not-allowed}, C{rate-limited} (with
            C{retryAfter}), C{api} or C{unavailable}, with a sentence.
        """

    def moved(binding_key: str, directory: str, busy: bool | None = None) -> Deferred[None]:
        """A worker works in another directory now: binding and title follow, the Thread stays."""

    def living(binding_key: str) -> Deferred[None]:
        """A binding has a live worker (L{ensure} says so by itself).

        Where two of one directory have, their titles show their letters, from then on for good.
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
