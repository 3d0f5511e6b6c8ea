"""Is a Thread gone?  (Rule D29.)"""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from zope.interface import implementer

from pitelegram.botapi.interfaces import IBotApi
from pitelegram.delivery.interfaces import IThreadLoss
from pitelegram.errors import TelegramError
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.observers import OneShot
from pitelegram.store.interfaces import IBindings
from pitelegram.targets import TelegramTarget
from pitelegram.threads.interfaces import IThreads
from pitelegram.threads.titles import CONTROL_KEY

ALIVE = "alive"
UNKNOWN = "unknown"
LOST = "lost"


@implementer(IThreadLoss)
class ThreadLoss:
    """Asks Telegram in a way that tells a dead Thread from a confused server."""

    log = Logger()

    def __init__(self, api: IBotApi, bindings: IBindings, threads: IThreads) -> None:
        self._api = api
        self._bindings = bindings
        self._threads = threads
        self._asking: dict[str, OneShot[str]] = {}

    def examine(self, binding_key: str) -> Deferred[str]:
        """Return C{alive}, C{unknown} or C{lost}; see L{IThreadLoss}.

        Several who ask about one binding at the same time share the answer.
        """
        asking = self._asking.get(binding_key)
        if asking is None:
            asking = self._asking[binding_key] = OneShot()
            self._examine(binding_key).addBoth(self._answer, binding_key)
        return asking.when()

    def _answer(self, outcome: Any, binding_key: str) -> None:
        self._asking.pop(binding_key).fire(outcome)

    @deferred
    async def _examine(self, binding_key: str) -> str:
        binding = self._bindings.get(binding_key) or self._bindings.get(CONTROL_KEY)
        if binding is None or binding.target is None:
            return LOST
        binding_key = binding.binding_key
        target = binding.target
        if target.thread_id is None:
            return UNKNOWN
        verdict = await self._ask(binding_key, target)
        if verdict == LOST and not await self._threads.lost(binding_key, target):
            return UNKNOWN
        self.log.info("a Thread was looked for: {verdict}", verdict=verdict)
        return verdict

    async def _ask(self, binding_key: str, target: TelegramTarget) -> str:
        try:
            me = await self._api.call("getMe", {})
        except TelegramError:
            return UNKNOWN
        self._threads.learn(me)
        if me.get("has_topics_enabled") is not True:
            return UNKNOWN
        exists = await self._threads.exists(binding_key, target)
        return UNKNOWN if exists is None else ALIVE if exists else LOST
