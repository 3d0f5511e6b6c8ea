"""Places in a chat's queue that followers keep between a refusal and their next try."""

from __future__ import annotations

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from pitelegram.botapi.interfaces import ISendGate

HELD = 10.0
"""Seconds that a turn that has come waits for its follower, who asks about once a second."""

_Where = tuple[str, int]


@attrs.define(eq=False)
class Turns:
    """One place for each follower and chat.

    A follower's call is never slept through, it is refused and tried again.  While answers wait in
    the queue it would be refused each time; with a place in the queue its turn comes like theirs.
    """

    _gate: ISendGate
    _clock: IReactorTime
    _waiting: dict[_Where, Deferred[None]] = attrs.field(factory=dict, init=False)
    _come: dict[_Where, float] = attrs.field(factory=dict, init=False)

    def take(self, binding_key: str, chat_id: int) -> bool:
        """Whether the follower's turn has come; it is used up by that."""
        since = self._come.pop((binding_key, chat_id), None)
        return since is not None and self._clock.seconds() - since <= HELD

    def keep(self, binding_key: str, chat_id: int) -> None:
        """Give the follower a place, unless it has one."""
        where = binding_key, chat_id
        if where not in self._waiting and where not in self._come:
            waiting = self._waiting[where] = self._gate.wait(chat_id)
            waiting.addCallback(self._turn, where)

    def _turn(self, _: None, where: _Where) -> None:
        del self._waiting[where]
        self._come[where] = self._clock.seconds()
