"""Makes the Thread of one binding, once, whatever gets lost on the way."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any

import attrs
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.botapi.interfaces import IBotApi
from pitelegram.errors import CertainlyUnsent, StoreFull, TelegramError, Uncertain
from pitelegram.kernel.backoff import Backoff
from pitelegram.kernel.deferring import sleep
from pitelegram.kernel.machine import Machine
from pitelegram.store.interfaces import IBindings
from pitelegram.store.rows import Binding
from pitelegram.targets import TelegramTarget
from pitelegram.threads import making
from pitelegram.threads.observing import Observers
from pitelegram.threads.titles import clean

LOOK_OUT = 30
"""Seconds of receiving updates in which the service message of a lost answer must come."""

_STALE_MS = 300_000
"""A service message this much older than the intent is about another Thread."""

_NO_THREADS = re.compile(r"not a forum|forum topic|topics are disabled|threaded mode", re.I)


@attrs.define(eq=False)
class Maker:
    """Makes Threads.

    @param possible: the chat to make Threads in; None while that is impossible.
    @param title_of: the title of a binding's Thread.
    @param receiving: whether updates arrive; time does not count for L{LOOK_OUT} while they do not.
    @ivar steps: where the making of each binding's Thread is.
    @param doubtful: called when Telegram says that there are no Threads at all.
    """

    log = Logger()

    _api: IBotApi
    _bindings: IBindings
    _clock: IReactorTime
    _random: Random
    _observers: Observers
    _possible: Callable[[], int | None]
    _title_of: Callable[[Binding], str]
    _receiving: Callable[[], bool]
    _doubtful: Callable[[], Deferred[None]]
    _lock: DeferredLock = attrs.field(factory=DeferredLock, init=False)
    _reasons: dict[str, str] = attrs.field(factory=dict, init=False)
    steps: dict[str, Machine] = attrs.field(factory=dict, init=False)

    async def make(self, binding_key: str, reason: str = "created", fresh: bool = False) -> None:
        """Return when the binding has its Thread, or when it cannot be made now.

        @param fresh: no call was made for the intent that may be there.
        """
        step = self.steps[binding_key] = making.making()
        self._reasons[binding_key] = reason
        backoff = Backoff(1.0, 300.0, self._random)
        try:
            while await self._step(step, binding_key, backoff, fresh):
                fresh = False
        finally:
            del self.steps[binding_key], self._reasons[binding_key]

    async def _step(self, step: Machine, binding_key: str, backoff: Backoff, fresh: bool) -> bool:
        """Do what comes next; returns whether something may be left to do."""
        binding = self._bindings.get(binding_key)
        if binding is None:
            return False
        if binding.target is not None:
            step.feed(making.FOUND)
            return False
        chat_id = self._possible()
        if chat_id is None:
            step.feed(making.IMPOSSIBLE)
            return False
        if self._intent(binding_key) is not None and not fresh:
            await self._answer_lost(step, binding_key)
        else:
            await self._create(step, binding, chat_id, backoff)
        return step.now != making.BOUND

    async def created(self, message: dict[str, Any]) -> None:
        """Take the bot's own C{forum_topic_created}: it settles an intent with that title."""
        topic = message.get("forum_topic_created")
        chat, thread_id = message.get("chat"), message.get("message_thread_id")
        if not isinstance(topic, dict) or not isinstance(chat, dict) or type(thread_id) is not int:
            return
        target = TelegramTarget(chat.get("id", 0), thread_id)
        name, date = clean(str(topic.get("name", ""))), message.get("date")
        if type(date) is not int:
            return
        async with _Held(self._lock):
            if self._bindings.by_target(target.chat_id, thread_id) is not None:
                return
            for intent in self._bindings.provisions():
                if intent["chat_id"] != target.chat_id or intent["title"] != name:
                    continue
                if date * 1000 < intent["started_ms"] - _STALE_MS:
                    continue
                await self._settle(intent["binding_key"], target)
                return

    async def _create(
        self, step: Machine, binding: Binding, chat_id: int, backoff: Backoff
    ) -> None:
        key, title = binding.binding_key, self._title_of(binding)
        await self._stored(lambda: self._bindings.begin_provision(key, chat_id, title))
        step.feed(making.CREATE)
        try:
            topic = await self._api.call("createForumTopic", {"chat_id": chat_id, "name": title})
            thread_id = topic.get("message_thread_id") if isinstance(topic, dict) else None
            if type(thread_id) is not int:
                raise Uncertain("createForumTopic", 0, "the answer names no Thread")
        except Uncertain as error:
            self.log.info("{error}", error=str(error))
            await self._answer_lost(step, key)
        except TelegramError as error:
            self.log.info("{error}", error=str(error))
            await self._not_made(step, key, error, backoff)
        else:
            async with _Held(self._lock):
                await self._settle(key, TelegramTarget(chat_id, thread_id))
            step.feed(making.MADE)

    async def _answer_lost(self, step: Machine, key: str) -> None:
        if self._intent(key) is None:
            return
        await self._stored(lambda: self._bindings.mark_ambiguous(key))
        step.feed(making.LOST_ANSWER)
        await self._look_out(step, key)

    async def _not_made(
        self, step: Machine, key: str, error: TelegramError, backoff: Backoff
    ) -> None:
        if self._intent(key) is None:
            return
        await self._stored(lambda: self._bindings.end_provision(key, None))
        step.feed(making.NOT_MADE)
        if _NO_THREADS.search(error.description):
            await self._doubtful()
        delay = backoff.next()
        if isinstance(error, CertainlyUnsent) and error.retry_after is not None:
            delay = max(delay, error.retry_after)
        await sleep(self._clock, delay)

    async def _look_out(self, step: Machine, key: str) -> None:
        """Wait for the service message; then take the intent away, so that one more is made."""
        left = LOOK_OUT
        while left > 0:
            await sleep(self._clock, 1.0)
            if self._intent(key) is None:
                return
            left -= 1 if self._receiving() else 0
        async with _Held(self._lock):
            if self._intent(key) is not None:
                await self._stored(lambda: self._bindings.end_provision(key, None))
        step.feed(making.TIME_OUT)

    async def _settle(self, key: str, target: TelegramTarget) -> None:
        """Make a Thread the binding's target; the lock is held."""
        binding = self._bindings.get(key)
        if binding is None or binding.target == target:
            return
        if self._intent(key) is not None:
            await self._stored(lambda: self._bindings.end_provision(key, target.thread_id))
        else:
            old = binding.target
            expected = None if old is None else (old.chat_id, old.thread_id)
            place = (target.chat_id, target.thread_id)
            if not await self._bindings.set_target(key, *place, expected):
                return
        self._observers.tell(key, target, binding.target, self._reasons.get(key, "created"))

    def _intent(self, key: str) -> dict[str, Any] | None:
        return next(
            (each for each in self._bindings.provisions() if each["binding_key"] == key), None
        )

    async def _stored(self, write: Callable[[], Deferred[Any]]) -> Any:
        """Write, again and again while the disk is full."""
        backoff = Backoff(1.0, 30.0, self._random)
        while True:
            try:
                return await write()
            except StoreFull:
                self.log.warn("no space is left; a Thread waits for it")
            await sleep(self._clock, backoff.next())


class _Held:
    """Holds a lock for a C{with} block."""

    def __init__(self, lock: DeferredLock) -> None:
        self._lock = lock

    async def __aenter__(self) -> None:
        await self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()
