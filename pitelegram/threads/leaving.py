"""Threads of attached Pis that quit gracefully: deleted once nobody needs them any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.application.service import Service
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.panel.interfaces import Switches
from pitelegram.store.interfaces import IBindings
from pitelegram.threads.cleanup import Cleanup

LOOK_SECONDS = 1.0
PATIENCE = 60.0
"""Seconds that a wish lasts: who quits lives on for a moment, and its last answer is on its way."""

DELETED, KEPT, PENDING = "deleted", "kept", "pending"


class Leaving(Service):
    """Does what C{follower.disconnect} asks by C{deleteThread}.

    A wish holds for the registration that it was made by: whoever registers for the binding meanwhile
    keeps the Thread.  It ends with the leader, and then the Thread stays.

    @param lives: whether a process of a binding lives or may come back: True, False, or None while
        that cannot be told.
    @param may_delete: reads the switches anew; all off when the file cannot be trusted.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        bindings: IBindings,
        cleanup: Cleanup,
        lives: Callable[[str], bool | None],
        may_delete: Callable[[], Switches],
        now_ms: Callable[[], int],
    ) -> None:
        self._clock = clock
        self._bindings = bindings
        self._cleanup = cleanup
        self._lives = lives
        self._may_delete = may_delete
        self._now_ms = now_ms
        self._timers: dict[str, IDelayedCall] = {}

    @deferred
    async def quit(self, binding_key: str) -> str:
        """A worker quit and wants its Thread deleted; fires with what became of it.

        It is C{deleted}, C{kept}, or C{pending}: deleted as soon as that is proven to harm nobody.
        """
        self._drop(binding_key)
        who = self._bindings.last_worker(binding_key)
        until = self._clock.seconds() + PATIENCE
        return await self._look(binding_key, who, until)

    def stopService(self) -> None:
        """Give the wishes up."""
        Service.stopService(self)
        for binding_key in list(self._timers):
            self._drop(binding_key)

    def _drop(self, binding_key: str) -> None:
        timer = self._timers.pop(binding_key, None)
        if timer is not None and timer.active():
            timer.cancel()

    async def _look(self, binding_key: str, who: dict[str, Any] | None, until: float) -> str:
        outcome = await self._outcome(binding_key, who)
        if outcome != PENDING:
            return outcome
        if self._clock.seconds() >= until:
            self._log.info("a Thread of a worker that quit stays: something needs it")
            return KEPT
        self._drop(binding_key)
        self._timers[binding_key] = self._clock.callLater(
            LOOK_SECONDS, self._again, binding_key, who, until
        )
        return PENDING

    def _again(self, binding_key: str, who: dict[str, Any] | None, until: float) -> None:
        self._timers.pop(binding_key, None)
        looking = self._look(binding_key, who, until)
        spawn(self._log, "the Thread of a worker that quit", looking)

    async def _outcome(self, binding_key: str, who: dict[str, Any] | None) -> str:
        binding = self._bindings.get(binding_key)
        if binding is None or binding.kind != "attached" or binding.thread_id is None:
            return KEPT
        if not self._may_delete().on_quit or self._bindings.last_worker(binding_key) != who:
            return KEPT
        if self._lives(binding_key) is not False:
            return PENDING
        await self._bindings.set_inactive(binding_key, self._now_ms())
        gone = await self._cleanup.quit(binding_key)
        return PENDING if gone is None else DELETED if gone else KEPT
