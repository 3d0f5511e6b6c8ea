"""Keeps the titles of Threads as the display mode wants them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from twisted.internet.interfaces import IReactorTime

from pitelegram.errors import CertainlyUnsent, Refused, TelegramError
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.rounds import Rounds
from pitelegram.threads.interfaces import IThreads

PERIOD = 10.0
"""Seconds between two rounds."""

MOST = 3
"""Titles edited in one round, for all Threads together: messages need the bot's rate more."""


class Titler(Rounds):
    """Renames the Threads of connected workers whose titles are to be others now.

    One after the other, each in its turn.  A title that Telegram refuses is not tried again before
    it is to be another one, and stops no other.

    @param busy: the bindings whose workers are connected, and whether each is at work.
    """

    def __init__(
        self, clock: IReactorTime, threads: IThreads, busy: Callable[[], Mapping[str, bool]]
    ) -> None:
        super().__init__(clock, PERIOD)
        self._clock = clock
        self._threads = threads
        self._busy = busy
        self._last = ""
        self._not_before = 0.0
        self._refused: dict[str, str] = {}

    @deferred
    async def round(self) -> None:
        """Edit a few; after Telegram's "wait" or silence nothing is asked for a while."""
        if self._clock.seconds() < self._not_before:
            return
        busy = self._busy()
        left = MOST
        for key in self._in_turn(busy):
            try:
                edited = await self._edit(key, busy[key])
            except TelegramError as error:
                # An edit may be repeated: the same title twice is one title.
                self._last = key
                wait = error.retry_after if isinstance(error, CertainlyUnsent) else None
                self._not_before = self._clock.seconds() + (wait or PERIOD)
                return
            if edited:
                self._last = key
                left -= 1
                if left == 0:
                    return

    def _in_turn(self, busy: Mapping[str, bool]) -> list[str]:
        """By key, beginning behind whoever was served last."""
        return sorted(busy, key=lambda key: (key <= self._last, key))

    async def _edit(self, key: str, busy: bool) -> bool:
        title = self._threads.title(key, busy)
        if self._refused.get(key) == title:
            return False
        self._refused.pop(key, None)
        try:
            return await self._threads.retitle(key, busy)
        except Refused as error:
            self._refused[key] = title
            self._log.info("a title was not changed: {error}", error=str(error))
            return True
