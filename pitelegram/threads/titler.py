"""Keeps the titles of Threads as the display mode wants them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from twisted.internet.interfaces import IReactorTime

from pitelegram.errors import Refused, TelegramError
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.rounds import Rounds
from pitelegram.threads.budget import PERIOD, TitleBudget
from pitelegram.threads.interfaces import IThreads


class Titler(Rounds):
    """Renames the Threads of connected workers whose titles are to be others now.

    One after the other, each in its turn, as the budget allows.  A title that Telegram refuses is
    not tried again before it is to be another one, and neither it nor one that cannot be made stops
    any other.

    @param budget: after Telegram's "wait", or silence, it allows nothing for a while.
    @param busy: the bindings whose workers are connected, and whether each is at work (None: it has
        not said).
    """

    def __init__(
        self,
        clock: IReactorTime,
        threads: IThreads,
        budget: TitleBudget,
        busy: Callable[[], Mapping[str, bool | None]],
    ) -> None:
        super().__init__(clock, PERIOD)
        self._threads = threads
        self._budget = budget
        self._busy = busy
        self._last = ""
        self._refused: dict[str, str] = {}

    @deferred
    async def round(self) -> None:
        """Edit a few."""
        busy = self._busy()
        for key in self._in_turn(busy):
            if self._budget.wait_for() > 0:
                return
            try:
                edited = await self._edit(key, busy[key])
            except TelegramError:
                # An edit may be repeated: the same title twice is one title.
                self._last = key
                return
            if edited:
                self._last = key

    def _in_turn(self, busy: Mapping[str, bool | None]) -> list[str]:
        """By key, beginning behind whoever was served last."""
        return sorted(busy, key=lambda key: (key <= self._last, key))

    async def _edit(self, key: str, busy: bool | None) -> bool:
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
