"""A message that shows a preview where Telegram has no drafts."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.bridge.rendering.records import Call
from pitelegram.kernel.backoff import Backoff
from pitelegram.kernel.deferring import sleep, spawn
from pitelegram.kernel.jsonio import dumps, loads
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.trying import Fate, Outcome, Trying, place_of

MARK = "✍️ …"
"""What the message says before its id is on disk: one that a kill leaves behind repeats no answer."""

Message = tuple[int, int]
"""C{(chat_id, message_id)}."""

_KEY = "preview-messages"
_GONE = (Fate.DONE, Fate.REFUSED, Fate.MISSING)
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 60.0


class StandIn:
    """A silent message for each message of Pi, edited as that grows and deleted when it is over.

    Its id is in the store before anything of an answer is in it, so that it goes after a crash too.

    @param link_up: whether there is a leader to send through.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        random: Random,
        inbox: IInbox,
        calls: Trying,
        link_up: Callable[[], bool],
    ) -> None:
        self._clock = clock
        self._inbox = inbox
        self._calls = calls
        self._link_up = link_up
        self._backoff = Backoff(_FIRST_WAIT, _LONGEST_WAIT, random)
        self._live: set[Message] = set()
        self._clearing: Deferred[Any] | None = None
        self._sleeping: Deferred[None] | None = None
        self._stopped = False

    async def begin(self, target: dict[str, int]) -> tuple[Outcome, Message | None]:
        """Send a message; it is returned when its id is on disk."""
        place, options = place_of(target)
        params = {**place, "text": MARK, "disable_notification": True}
        outcome = await self._calls.call("sendMessage", params, options)
        result = outcome.result if isinstance(outcome.result, dict) else {}
        message_id = result.get("message_id")
        if type(message_id) is not int:
            return outcome, None
        message = target["chatId"], message_id
        self._live.add(message)
        await self._store([*self._stored(), message])
        return outcome, message

    async def edit(self, message: Message, call: Call) -> Outcome:
        """Have it show a C{sendMessage}."""
        params = {**call["params"], "chat_id": message[0], "message_id": message[1]}
        return await self._calls.call("editMessageText", params)

    def over(self, message: Message | None) -> None:
        """What it shows is over: delete it."""
        if message is not None:
            self._live.discard(message)
            self.clear()

    def clear(self) -> None:
        """Delete what runs that are over left: at the start, and when there is a leader again."""
        if self._sleeping is not None:
            sleeping, self._sleeping = self._sleeping, None
            sleeping.cancel()
        elif self._clearing is None and not self._stopped and self._old():
            clearing = spawn(self._log, "deleting previews", self._clear())
            self._clearing = None if clearing.called else clearing

    def stop(self) -> None:
        """This worker ends; what is left goes at the next start."""
        self._stopped = True
        if self._sleeping is not None:
            self._sleeping.cancel()

    async def _clear(self) -> None:
        try:
            while (old := self._old()) and self._link_up() and not self._stopped:
                place = {"chat_id": old[0][0], "message_id": old[0][1]}
                outcome = await self._calls.call("deleteMessage", place)
                if outcome.fate in _GONE:
                    self._backoff.reset()
                    await self._store([each for each in self._stored() if each != old[0]])
                elif not self._stopped:
                    await self._pause(max(outcome.seconds, self._backoff.next()))
        finally:
            self._clearing = None

    async def _pause(self, seconds: float) -> None:
        self._sleeping = sleep(self._clock, seconds)
        try:
            await self._sleeping
        except CancelledError:
            pass
        finally:
            self._sleeping = None

    def _old(self) -> list[Message]:
        return [each for each in self._stored() if each not in self._live]

    def _stored(self) -> list[Message]:
        try:
            found: Any = loads(self._inbox.get_meta(_KEY) or "[]")
            return [(int(chat_id), int(message_id)) for chat_id, message_id in found]
        except (ValueError, TypeError):
            return []

    async def _store(self, messages: list[Message]) -> None:
        await self._inbox.set_meta(_KEY, dumps([list(each) for each in messages]).decode())
