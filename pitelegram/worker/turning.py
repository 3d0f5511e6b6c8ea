"""Turning the pages of a dialog: the page asked for last is the one that comes to be shown."""

from __future__ import annotations

from typing import Any

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.bridge.dialogs import keyboard
from pitelegram.kernel.deferring import spawn
from pitelegram.worker.asking import OPEN, Asking
from pitelegram.worker.posting import Limited, Poster


class Turner:
    """Edits the buttons of open dialogs.

    Telegram allows few edits: pages asked for meanwhile are left out, the last one is tried until
    it is there or the dialog is over.
    """

    _log = Logger()

    def __init__(self, clock: IReactorTime, poster: Poster) -> None:
        self._clock = clock
        self._poster = poster

    def turn(self, asking: Asking, message_id: int, page: int) -> None:
        """Show that page."""
        asking.page = page
        if not asking.turning:
            asking.turning = True
            spawn(self._log, "turning a page", self._work(asking, message_id))

    async def _work(self, asking: Asking, message_id: int) -> None:
        page = None
        try:
            while asking.state == OPEN and page != asking.page:
                page = asking.page
                markup: dict[str, Any] = keyboard(asking.question, asking.key, page)
                outcome = await self._poster.buttons(asking.place, message_id, markup)
                if isinstance(outcome, Limited) and asking.state == OPEN:
                    self._later(asking, message_id, outcome.seconds)
                    return
        finally:
            asking.turning = False

    def _later(self, asking: Asking, message_id: int, seconds: float) -> None:
        def again() -> None:
            self.turn(asking, message_id, asking.page)

        asking.timers = [timer for timer in asking.timers if timer.active()]
        asking.timers.append(self._clock.callLater(seconds, again))
