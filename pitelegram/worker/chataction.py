"""C{typing…} in the Thread and in All while Pi works."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from pitelegram.kernel.deferring import spawn
from pitelegram.worker.trying import Fate, Trying, place_of

PERIOD = 2.5
"""Seconds; Telegram shows an action for five, so that one that was left out is not missed."""

LONGEST = 300.0
"""Seconds that a compaction is shown at most: of one that fell asleep no end is told."""

RUN, COMPACTION, ORDER = "run", "compaction", "order"
"""Why it is shown: Pi works; it compacts; the operator asked for a compaction."""


class ChatAction:
    """Sends C{typing} again and again while there is a reason.

    Nothing waits for it, and it waits for nothing: one that is on its way leaves out the next, too many
    calls leave some out, and a refusal ends it until Pi works anew.

    @param target: returns C{{"chatId","threadId"?}}, None while there is no Thread.
    """

    _log = Logger()

    def __init__(
        self, clock: IReactorTime, calls: Trying, target: Callable[[], dict[str, int] | None]
    ) -> None:
        self._clock = clock
        self._calls = calls
        self._target = target
        self._reasons: set[str] = set()
        self._timer: IDelayedCall | None = None
        self._limit: IDelayedCall | None = None
        self._sending = False

    def show(self, wanted: bool, why: str = ORDER) -> None:
        """Begin or end it for one reason; saying the same twice changes nothing."""
        if wanted == (why in self._reasons):
            return
        if wanted:
            self._reasons.add(why)
            if why == COMPACTION:
                self._limit = self._clock.callLater(LONGEST, self.show, False, COMPACTION)
            if self._timer is None:
                self._beat()
        else:
            self._reasons.discard(why)
            if why == COMPACTION:
                self._limit = _ended(self._limit)
            if not self._reasons:
                self._timer = _ended(self._timer)

    def stop(self) -> None:
        """Pi is gone, or this worker ends."""
        for why in list(self._reasons):
            self.show(False, why)

    def _beat(self) -> None:
        self._timer = self._clock.callLater(PERIOD, self._beat)
        target = self._target()
        if target is not None and not self._sending:
            self._sending = True
            spawn(self._log, "typing", self._send(target))

    async def _send(self, target: dict[str, int]) -> None:
        try:
            places = [place_of(target)]
            if "threadId" in target:
                places.append(place_of(target, everywhere=True))
            for place, options in places:
                if not self._reasons:
                    return
                params = {**place, "action": "typing"}
                outcome = await self._calls.call("sendChatAction", params, options)
                if outcome.fate in (Fate.REFUSED, Fate.MISSING):
                    self._timer = _ended(self._timer)
                if outcome.fate is not Fate.DONE:
                    return
        finally:
            self._sending = False


def _ended(call: IDelayedCall | None) -> None:
    if call is not None and call.active():
        call.cancel()
