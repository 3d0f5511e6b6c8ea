"""Menus on their way into the Thread: best effort, and never in the way of what they tell about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.bridge.answer import deliveries
from pitelegram.bridge.menus.screen import Screen
from pitelegram.bus.interfaces import ILeaderLink
from pitelegram.errors import BusError, LinkLost, Refusal
from pitelegram.kernel.deferring import spawn
from pitelegram.worker.posting import LEAST_WAIT

LONGEST_WAIT = 60.0
"""Seconds after which an edit that Telegram puts off is not worth anything any more."""
MOST_MESSAGES = 50
"""Messages whose newest screen is remembered."""

_SAME = "message is not modified"
_GONE = ("message to edit not found", "message can't be edited", "message_id_invalid")


class Shower:
    """Sends screens and edits them.

    An edit that Telegram puts off is made when it may be, with the screen that was asked for last.

    @param link: returns the registered link, None while there is none.
    @param target: returns the worker's target, None while it has none.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        link: Callable[[], ILeaderLink | None],
        target: Callable[[], dict[str, int] | None],
    ) -> None:
        self._clock = clock
        self._link = link
        self._target = target
        self._newest: dict[tuple[int, int], Screen] = {}

    async def send(self, name: str, screen: Screen, created_ms: int) -> list[dict[str, Any]]:
        """Show a screen in a new message.

        Returns it as a delivery where it certainly was not sent: then it comes later.  One of which
        nobody can tell is not sent again.

        @param name: the delivery's id.
        """
        try:
            if await self._sent(screen):
                return []
        except LinkLost:
            return []
        except Refusal as refusal:
            if refusal.code == "commit-unknown":
                return []
            self._log.info("a menu was not shown at once: {reason}", reason=str(refusal))
        except BusError as error:
            self._log.info("a menu was not shown at once: {reason}", reason=str(error))
        call = {"method": "sendMessage", "params": screen.as_params()}
        return deliveries(name, "notice", [call], created_ms)

    def edit(self, chat_id: int | None, message_id: int | None, screen: Screen) -> None:
        """Make a message that screen; where there is no such message any more, send it."""
        if chat_id is None or message_id is None:
            return
        place = chat_id, message_id
        self._newest.pop(place, None)
        self._newest[place] = screen
        while len(self._newest) > MOST_MESSAGES:
            del self._newest[next(iter(self._newest))]
        spawn(self._log, "showing a menu", self._edit(place, screen, 0.0))

    async def _edit(self, place: tuple[int, int], screen: Screen, waited: float) -> None:
        link = self._link()
        if link is None or self._newest.get(place) is not screen:
            return
        params = {"chat_id": place[0], "message_id": place[1], **screen.as_params()}
        try:
            await link.call_api("editMessageText", params)
        except Refusal as refusal:
            await self._not_edited(place, screen, waited, refusal)
        except BusError as error:
            self._log.info("a menu was not changed: {reason}", reason=str(error))

    async def _not_edited(
        self, place: tuple[int, int], screen: Screen, waited: float, refusal: Refusal
    ) -> None:
        words = str(refusal.fields.get("description") or refusal).lower()
        limited = refusal.code == "rate-limited" or refusal.fields.get("errorCode") == 429
        if limited and waited < LONGEST_WAIT:
            wait: Any = refusal.fields.get("retryAfter")
            seconds = max(float(wait) if isinstance(wait, int | float) else 0.0, LEAST_WAIT)
            self._clock.callLater(seconds, self._again, place, screen, waited + seconds)
        elif _SAME in words:
            return
        elif refusal.code == "not-allowed" or any(sign in words for sign in _GONE):
            try:
                await self._sent(screen)
            except (Refusal, BusError) as error:
                self._log.info("a menu was not shown: {reason}", reason=str(error))
        else:
            self._log.info("a menu was not changed: {reason}", reason=str(refusal))

    def _again(self, place: tuple[int, int], screen: Screen, waited: float) -> None:
        spawn(self._log, "showing a menu", self._edit(place, screen, waited))

    async def _sent(self, screen: Screen) -> bool:
        """Send it into the worker's Thread; False when there is nobody to send it through."""
        link, target = self._link(), self._target()
        if link is None or target is None:
            return False
        params = {"chat_id": target["chatId"], **screen.as_params()}
        options = {"aggregate": True}
        if "threadId" in target:
            params["message_thread_id"] = target["threadId"]
            options = {}
        await link.call_api("sendMessage", params, options)
        return True
