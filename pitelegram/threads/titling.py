"""Titles of Threads: what they are to be, and the edits that make them so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.botapi.interfaces import IBotApi
from pitelegram.errors import CertainlyUnsent, Refusal, Refused, TelegramError
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.keyed import KeyedLock
from pitelegram.store.interfaces import IBindings
from pitelegram.store.rows import Binding
from pitelegram.targets import TelegramTarget
from pitelegram.threads.budget import MOST_ASKED, TitleBudget
from pitelegram.threads.classic import place
from pitelegram.threads.interfaces import MARKS
from pitelegram.threads.mode import ENABLED
from pitelegram.threads.naming import clean_name
from pitelegram.threads.titles import clean, title_for

CLOSED = "topic_closed"

MOVED = ("not-allowed", "this Thread is not this worker's any more")
NO_THREADS = ("unavailable", "this chat has no Threads, so there is none to be named")
SHUT = ("unavailable", "this Thread is closed; open it again first")


class Titling:
    """Edits titles, one at a time for each Thread, within one budget for all.

    A title is stored when Telegram took it, and only while the Thread is still the same binding's.

    @param mode: whether there are Threads (L{pitelegram.threads.mode.ThreadMode.now}).
    @param display_mode: one of L{pitelegram.threads.titles.MODES}.
    @param changed: called after each stored change.
    @ivar budget: how often titles may be edited.
    """

    log = Logger()

    def __init__(
        self,
        api: IBotApi,
        bindings: IBindings,
        clock: IReactorTime,
        mode: Callable[[], str],
        display_mode: Callable[[], str],
        changed: Callable[[], None],
    ) -> None:
        self._api = api
        self._bindings = bindings
        self._mode = mode
        self._display_mode = display_mode
        self._changed = changed
        self._edits = KeyedLock()
        self._doubtful: set[str] = set()
        self.budget = TitleBudget(clock)

    # --- what it is to be --------------------------------------------------------------------

    def title(self, binding_key: str, busy: bool | None = None) -> str:
        """Return what a binding's Thread is to be called."""
        binding = self._bindings.get(binding_key)
        return "" if binding is None else self.title_of(binding, busy)

    def title_of(self, binding: Binding, busy: bool | None = None) -> str:
        """The same for a row."""
        return title_for(self._display_mode(), binding, self._bindings.list(), busy)

    def title_of_new(self, binding: Binding) -> str:
        """Return what a Thread that is made now is to be called.

        What the user called the one before went with it.
        """
        return self.title_of(attrs.evolve(binding, user_title=None))

    # --- by itself ---------------------------------------------------------------------------

    @deferred
    async def retitle(self, binding_key: str, busy: bool | None = None) -> bool:
        """Rename a Thread, if its title is to be another one; see L{IThreads.retitle}."""
        return await self._edits.run(binding_key, lambda: self._retitle(binding_key, busy))

    @deferred
    async def _retitle(self, binding_key: str, busy: bool | None) -> bool:
        binding = self._bindings.get(binding_key)
        if binding is None or binding.target is None or binding.target.thread_id is None:
            return False
        if binding.closed or self._mode() != ENABLED:
            return False
        title, target = self.title_of(binding, busy), binding.target
        if title == binding.title and binding_key not in self._doubtful:
            return False
        try:
            await self._edit(binding_key, target, title)
        except Refused as error:
            if CLOSED not in error.description.lower():
                raise
            await self.shut(binding_key, target)
            return True
        await self._bindings.set_title(binding_key, title, place(target))
        self._stored(binding_key)
        return True

    async def _edit(self, binding_key: str, target: TelegramTarget, title: str) -> None:
        """Ask Telegram; of an edit that nobody can tell of, the title counts as unknown."""
        params = {"chat_id": target.chat_id, "message_thread_id": target.thread_id, "name": title}
        self.budget.spend()
        self._doubtful.add(binding_key)
        try:
            await self._api.call("editForumTopic", params)
        except Refused as error:
            if "TOPIC_NOT_MODIFIED" not in error.description.upper():
                self._doubtful.discard(binding_key)
                raise
        except CertainlyUnsent as error:
            self._doubtful.discard(binding_key)
            self.budget.pause(error.retry_after)
            raise
        except TelegramError:
            self.budget.pause()
            raise
        finally:
            self._crossed(binding_key, target)

    def _crossed(self, binding_key: str, target: TelegramTarget) -> None:
        """A Thread that got another owner during an edit may have the former one's title now."""
        owner = self._bindings.by_target(*place(target))
        if owner is not None and owner.binding_key != binding_key:
            self._doubtful.add(owner.binding_key)

    @deferred
    async def exists(self, binding_key: str, target: TelegramTarget) -> bool | None:
        """Whether Telegram has a Thread, None: nobody can tell; see L{IThreads.exists}."""
        return await self._edits.run(binding_key, lambda: self._exists(binding_key, target))

    @deferred
    async def _exists(self, binding_key: str, target: TelegramTarget) -> bool | None:
        binding = self._bindings.get(binding_key)
        if binding is None or binding.target != target:
            return None
        title = binding.title or self.title_of(binding)
        params = {"chat_id": target.chat_id, "message_thread_id": target.thread_id, "name": title}
        try:
            await self._api.call("editForumTopic", params)
        except Refused as error:
            said = error.description.upper() if error.code == 400 else ""
            if "TOPIC_NOT_MODIFIED" in said:
                return True
            return False if "TOPIC_ID_INVALID" in said else None
        except CertainlyUnsent as error:
            if error.retry_after is not None:
                self.budget.pause(error.retry_after)
            return None
        except TelegramError:
            return None
        finally:
            self._crossed(binding_key, target)
        return True

    # --- by the operator ---------------------------------------------------------------------

    @deferred
    async def rename(
        self, binding_key: str, target: TelegramTarget | None, name: str, busy: bool | None = None
    ) -> tuple[str, str | None]:
        """Name a Thread, or with an empty name give it its own title; see L{IThreads.rename}."""
        manual = clean_name(name) if name else None
        return await self._edits.run(
            binding_key, lambda: self._rename(binding_key, target, manual, busy)
        )

    @deferred
    async def _rename(
        self,
        binding_key: str,
        target: TelegramTarget | None,
        manual: str | None,
        busy: bool | None,
    ) -> tuple[str, str | None]:
        binding = self._bindings.get(binding_key)
        if self._mode() != ENABLED or target is None or target.thread_id is None:
            raise Refusal(*NO_THREADS)
        if binding is None or binding.target != target:
            raise Refusal(*MOVED)
        if binding.closed:
            raise Refusal(*SHUT)
        title = self.title_of(attrs.evolve(binding, manual_name=manual, user_title=None), busy)
        if title != binding.title or binding_key in self._doubtful:
            await self._edit_now(binding_key, target, title)
        if not await self._bindings.set_manual_name(binding_key, place(target), manual, title):
            raise Refusal(*MOVED)
        self._stored(binding_key)
        return title, manual

    async def _edit_now(self, binding_key: str, target: TelegramTarget, title: str) -> None:
        """Edit within the budget, without waiting for it.

        @raise Refusal: C{rate-limited}, C{api} or C{unavailable}.
        """
        wait = self.budget.wait_for(MOST_ASKED)
        if wait > 0:
            raise _limited(wait)
        try:
            await self._edit(binding_key, target, title)
        except Refused as error:
            if CLOSED in error.description.lower():
                await self.shut(binding_key, target)
                raise Refusal(*SHUT) from None
            fields = {"errorCode": error.code, "description": error.description}
            raise Refusal("api", error.description, **fields) from None
        except CertainlyUnsent as error:
            if error.code == 429:
                wait = error.retry_after or self.budget.wait_for(MOST_ASKED)
                raise _limited(wait) from None
            raise Refusal("unavailable", "Telegram cannot be reached") from None
        except TelegramError:
            raise Refusal(
                "unavailable", "Telegram did not answer; the name may show for a moment"
            ) from None

    # --- by the user, in his client ----------------------------------------------------------

    @deferred
    async def renamed(self, message: dict[str, Any]) -> None:
        """Take a C{forum_topic_edited} of the owner: his title stays until he gives ours again."""
        binding, topic = self._of_owner(message, "forum_topic_edited")
        name = topic.get("name")
        if binding is None or binding.target is None or not isinstance(name, str):
            return
        if not clean(name):
            return
        without = attrs.evolve(binding, user_title=None)
        own = clean(name) in {self.title_of(without, busy) for busy in MARKS}
        await self._bindings.set_user_title(
            binding.binding_key, place(binding.target), clean(name), not own
        )
        self._stored(binding.binding_key)

    @deferred
    async def shut_by_owner(self, message: dict[str, Any], closed: bool) -> str | None:
        """Take a C{forum_topic_closed} or C{forum_topic_reopened} of the owner.

        Fires with the binding whose Thread it is, None for nobody's.
        """
        field = "forum_topic_closed" if closed else "forum_topic_reopened"
        binding, _ = self._of_owner(message, field)
        if binding is None or binding.target is None:
            return None
        await self.shut(binding.binding_key, binding.target, closed)
        return binding.binding_key

    async def shut(self, binding_key: str, target: TelegramTarget, closed: bool = True) -> None:
        """A Thread is closed, or open again."""
        if await self._bindings.set_closed(binding_key, place(target), closed):
            self._changed()

    def _of_owner(
        self, message: dict[str, Any], field: str
    ) -> tuple[Binding | None, dict[str, Any]]:
        """Return whose Thread a service message of a person is about, and what it says."""
        topic, sender = message.get(field), message.get("from")
        chat, thread_id = message.get("chat"), message.get("message_thread_id")
        if not isinstance(topic, dict) or not isinstance(chat, dict) or type(thread_id) is not int:
            return None, {}
        if not isinstance(sender, dict) or sender.get("is_bot") is True:
            return None, {}
        return self._bindings.by_target(chat.get("id", 0), thread_id), topic

    def _stored(self, binding_key: str) -> None:
        self._doubtful.discard(binding_key)
        self._changed()


def _limited(seconds: float) -> Refusal:
    return Refusal(
        "rate-limited",
        f"Telegram lets no title be changed for another {max(1, round(seconds))} s",
        retryAfter=seconds,
    )
