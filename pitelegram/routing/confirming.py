"""Telling workers which deliveries have settled, so that they may forget them one day."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from pitelegram.errors import BusError
from pitelegram.kernel.deferring import spawn
from pitelegram.routing.interfaces import IRegistry
from pitelegram.store.interfaces import IJournal

BATCH = 200
_GATHER = 0.5
"""Seconds that settlements are gathered before they are confirmed."""


@attrs.define(eq=False)
class Confirmations:
    """Sends C{leader.confirmSettled} after a registration and as rows settle.

    @ivar is_unanswered: whether a forward of an id is unanswered; such an id waits.
    """

    _journal: IJournal
    _registry: IRegistry
    _clock: IReactorTime
    _is_unanswered: Callable[[str], bool]
    _running: set[str] = attrs.field(factory=set, init=False)
    _timers: dict[str, IDelayedCall] = attrs.field(factory=dict, init=False)
    _log = Logger()

    def settled(self, binding_keys: Iterable[str]) -> None:
        """Rows of these bindings have settled."""
        for key in binding_keys:
            if key not in self._timers and self._registry.live(key) is not None:
                self._timers[key] = self._clock.callLater(_GATHER, self.start, key)

    def start(self, binding_key: str) -> None:
        """Confirm everything outstanding of a binding now."""
        timer = self._timers.pop(binding_key, None)
        if timer is not None and timer.active():
            timer.cancel()
        if binding_key not in self._running:
            self._running.add(binding_key)
            spawn(self._log, "confirming settled deliveries", self._run(binding_key))

    def stop(self) -> None:
        """Confirm nothing more."""
        timers, self._timers = self._timers, {}
        for timer in timers.values():
            timer.cancel()

    async def _run(self, binding_key: str) -> None:
        try:
            while True:
                follower = self._registry.live(binding_key)
                if follower is None or not follower.ready:
                    return
                settled = self._journal.unconfirmed(binding_key, BATCH)
                ids = [each for each in settled if not self._is_unanswered(each)]
                if not ids:
                    return
                await follower.link.confirm_settled(ids)
                await self._journal.confirm(ids)
        except BusError as error:
            self._log.debug("settlements wait to be confirmed: {reason}", reason=str(error))
        finally:
            self._running.discard(binding_key)
