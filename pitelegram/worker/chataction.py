"""C{typing…} in the Thread while Pi works."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from pitelegram.worker.bestcalls import BestEffort

PERIOD = 4.5
"""Seconds; Telegram shows an action for five."""


class ChatAction:
    """Sends C{typing} again and again between C{show(True)} and C{show(False)}.

    @param target: returns C{{"chatId","threadId"?}}, None while there is no Thread.
    """

    def __init__(
        self, clock: IReactorTime, calls: BestEffort, target: Callable[[], dict[str, int] | None]
    ) -> None:
        self._clock = clock
        self._calls = calls
        self._target = target
        self._call: IDelayedCall | None = None

    def show(self, wanted: bool) -> None:
        """Begin or end it; saying the same twice changes nothing."""
        if wanted and self._call is None:
            self._beat()
        elif not wanted and self._call is not None:
            if self._call.active():
                self._call.cancel()
            self._call = None

    def _beat(self) -> None:
        self._call = self._clock.callLater(PERIOD, self._beat)
        target = self._target()
        if target is not None:
            self._calls.typing(target)
