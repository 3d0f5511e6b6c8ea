"""How fast messages may go (botapi facts, "Limits of rate")."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from zope.interface import implementer

from pitelegram.botapi.interfaces import IBotApi, ISendGate
from pitelegram.errors import CertainlyUnsent
from pitelegram.kernel.deferring import deferred

CHAT_BURST = 8
CHAT_RATE = 1.0
EDIT_BURST = 10
EDIT_RATE = 1 / 3
DRAFT_BURST = 5
DRAFT_RATE = 1 / 2
ACTION_BURST = 20
ACTION_RATE = 5.0
GLOBAL_BURST = 30
GLOBAL_RATE = 30.0

AFTER_FLOOD = 2
"""Messages that may go at once when a flood limit is over: what was thought to be left was not."""

_ORDER = {"send": 0, "edit": 1, "minor": 2, "minor-edit": 3, "draft": 4, "action": 5}
_SPARE = {"minor": 2, "minor-edit": 2, "draft": 4}
"""Messages of a chat's burst that these leave for those before them."""

_SPARE_EDITS = 3
_SPARE_ALL = 10
_SLACK = 1e-6
_TICK = 0.001


class Bucket:
    """Tokens that come back with time.

    @param burst: the most it holds.
    @param rate: tokens a second.
    """

    def __init__(self, burst: float, rate: float, now: float) -> None:
        self._burst = burst
        self._rate = rate
        self._level = burst
        self._at = now

    def wait(self, now: float, spare: float = 0) -> float:
        """Return the seconds until there is a token beside C{spare} others."""
        self._refill(now)
        missing = 1 + spare - self._level
        return 0.0 if missing <= _SLACK else missing / self._rate + max(0.0, self._at - now)

    def take(self, now: float) -> None:
        """Take a token."""
        self._refill(now)
        self._level -= 1

    def drain(self, left: float, until: float) -> None:
        """Have what there will be at C{until}, but at most so many tokens, and no more before."""
        self._refill(until)
        self._level = min(self._level, left)

    def full(self, now: float) -> bool:
        """Whether nothing was taken lately."""
        self._refill(now)
        return self._level >= self._burst - _SLACK

    def _refill(self, now: float) -> None:
        self._level = min(self._burst, self._level + max(0.0, now - self._at) * self._rate)
        self._at = max(self._at, now)


class _Chat:
    """One chat's budget and queue."""

    def __init__(self, now: float) -> None:
        self.messages = Bucket(CHAT_BURST, CHAT_RATE, now)
        self.edits = Bucket(EDIT_BURST, EDIT_RATE, now)
        self.drafts = Bucket(DRAFT_BURST, DRAFT_RATE, now)
        self.actions = Bucket(ACTION_BURST, ACTION_RATE, now)
        self.flooded_until = 0.0
        self.queue: list[tuple[int, int, str, Deferred[None]]] = []
        self.timer: IDelayedCall | None = None

    def idle(self, now: float) -> bool:
        """Whether it may be forgotten."""
        return (
            not self.queue
            and self.flooded_until <= now
            and self.messages.full(now)
            and self.edits.full(now)
            and self.drafts.full(now)
            and self.actions.full(now)
        )


@implementer(ISendGate)
class SendGate:
    """Lets calls through, the more important ones first, each kind in order.

    A chat may have 8 messages at once and then one a second.  Edits count as messages, and only 20 a
    minute go.  What nobody waits for (activity C{minor}, its edits C{minor-edit}, then drafts) counts
    likewise, but leaves a part of the burst to answers, questions and menus, so these need not wait
    for it; drafts are 30 a minute at most.  Chat actions are no messages: five a second go.  All chats
    together have 30 calls a second.

    @param clock: timers.
    @param monotonic: seconds of a clock that nobody sets; C{clock.seconds} unless given.
    """

    def __init__(self, clock: IReactorTime, monotonic: Callable[[], float] | None = None) -> None:
        self._clock = clock
        self._now = clock.seconds if monotonic is None else monotonic
        self._all = Bucket(GLOBAL_BURST, GLOBAL_RATE, self._now())
        self._chats: dict[int, _Chat] = {}
        self._numbers = count()

    def wait(self, chat_id: int, weight: str = "send") -> Deferred[None]:
        """Fire when a call may go; cancelling gives the place up."""
        chat = self._chat(chat_id)
        if not self._ahead(chat, weight) and self._delay(chat, weight) == 0:
            self._spend(chat, weight)
            return succeed(None)
        waiter: Deferred[None] = Deferred(lambda gone: self._leave(chat_id, gone))
        heapq.heappush(chat.queue, (_ORDER[weight], next(self._numbers), weight, waiter))
        self._arm(chat_id, chat)
        return waiter

    def flood(self, chat_id: int, retry_after: float) -> None:
        """Hold everything for this chat back."""
        chat = self._chat(chat_id)
        chat.flooded_until = max(chat.flooded_until, self._now() + retry_after)
        chat.messages.drain(AFTER_FLOOD, chat.flooded_until)
        chat.drafts.drain(0, chat.flooded_until)
        chat.actions.drain(0, chat.flooded_until)
        self._arm(chat_id, chat)

    def blocked_for(self, chat_id: int, weight: str = "send") -> float:
        """Return the seconds until a call may go; with others waiting, at least theirs."""
        chat = self._chat(chat_id)
        delay = self._delay(chat, weight)
        return max(delay, 1 / CHAT_RATE) if self._ahead(chat, weight) else delay

    def _chat(self, chat_id: int) -> _Chat:
        chat = self._chats.get(chat_id)
        if chat is None:
            now = self._now()
            for other in [key for key, value in self._chats.items() if value.idle(now)]:
                del self._chats[other]
            chat = self._chats[chat_id] = _Chat(now)
        return chat

    def _ahead(self, chat: _Chat, weight: str) -> bool:
        """Whether somebody of at least this importance waits already for the same budget."""
        if weight == "action":
            return any(entry[2] == weight for entry in chat.queue)
        return bool(chat.queue) and chat.queue[0][0] <= _ORDER[weight]

    def _delay(self, chat: _Chat, weight: str) -> float:
        now = self._now()
        left = chat.flooded_until - now
        delay = left if left > _SLACK else 0.0
        delay = max(delay, self._all.wait(now, _SPARE_ALL if weight in ("draft", "action") else 0))
        if weight == "action":
            return max(delay, chat.actions.wait(now))
        delay = max(delay, chat.messages.wait(now, _SPARE.get(weight, 0)))
        if weight == "draft":
            return max(delay, chat.drafts.wait(now))
        if weight in ("edit", "minor-edit"):
            delay = max(delay, chat.edits.wait(now, _SPARE_EDITS if weight != "edit" else 0))
        return delay

    def _spend(self, chat: _Chat, weight: str) -> None:
        now = self._now()
        self._all.take(now)
        if weight == "action":
            chat.actions.take(now)
            return
        chat.messages.take(now)
        if weight == "draft":
            chat.drafts.take(now)
        elif weight in ("edit", "minor-edit"):
            chat.edits.take(now)

    def _leave(self, chat_id: int, waiter: Deferred[None]) -> None:
        chat = self._chats[chat_id]
        chat.queue = [entry for entry in chat.queue if entry[3] is not waiter]
        heapq.heapify(chat.queue)
        self._arm(chat_id, chat)

    def _arm(self, chat_id: int, chat: _Chat) -> None:
        if chat.timer is not None and chat.timer.active():
            chat.timer.cancel()
        chat.timer = None
        if chat.queue:
            delay = max(_TICK, self._delay(chat, chat.queue[0][2]))
            chat.timer = self._clock.callLater(delay, self._release, chat_id)

    def _release(self, chat_id: int) -> None:
        chat = self._chats[chat_id]
        chat.timer = None
        while chat.queue and self._delay(chat, chat.queue[0][2]) == 0:
            _, _, weight, waiter = heapq.heappop(chat.queue)
            self._spend(chat, weight)
            waiter.callback(None)
        self._arm(chat_id, chat)


@deferred
async def call_in_turn(api: IBotApi, gate: ISendGate, method: str, params: dict[str, Any]) -> Any:
    """Call a method that writes to C{params["chat_id"]} when that chat's budget allows it.

    @raise pitelegram.errors.TelegramError: as the call; a flood limit is noted for all.
    """
    chat_id = params["chat_id"]
    await gate.wait(chat_id)
    try:
        return await api.call(method, params)
    except CertainlyUnsent as error:
        if error.retry_after is not None:
            gate.flood(chat_id, error.retry_after)
        raise
