"""Calls beside the answers whose failures matter only to what is tried next."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.interfaces import IReactorTime

from pitelegram.bus.interfaces import ILeaderLink
from pitelegram.errors import BusError, Refusal

LEAST_WAIT = 1.0


class Fate(enum.Enum):
    """What became of a call."""

    DONE = "it was made"
    LIMITED = "not now: too many calls"
    AWAY = "it was not made: Telegram or the leader is away"
    UNSURE = "nobody can tell whether it was made"
    MISSING = "there is no such method"
    REFUSED = "it will be refused each time"


@attrs.frozen
class Outcome:
    """What became of a call.

    @ivar seconds: how long to wait, where it was too soon.
    """

    fate: Fate
    result: Any = None
    seconds: float = 0.0


class Trying:
    """Makes such calls for a worker.

    Where Telegram itself said that they are too many (429) none is made before the time that it named,
    whoever wants to: typing and previews hold back together.

    @param link: returns the registered link, None while there is none.
    """

    def __init__(self, clock: IReactorTime, link: Callable[[], ILeaderLink | None]) -> None:
        self._clock = clock
        self._link = link
        self._quiet_until = 0.0

    async def call(
        self, method: str, params: dict[str, Any], options: dict[str, Any] | None = None
    ) -> Outcome:
        """Make one attempt.  Never fails."""
        link = self._link()
        if link is None:
            return Outcome(Fate.AWAY)
        left = self._quiet_until - self._clock.seconds()
        if left > 0:
            return Outcome(Fate.LIMITED, seconds=left)
        try:
            return Outcome(Fate.DONE, await link.call_api(method, params, options))
        except Refusal as refusal:
            return self._refused(refusal)
        except BusError:
            return Outcome(Fate.UNSURE)

    def _refused(self, refusal: Refusal) -> Outcome:
        code = refusal.fields.get("errorCode")
        if refusal.code == "rate-limited" or code == 429:
            wait: Any = refusal.fields.get("retryAfter")
            seconds = max(float(wait) if isinstance(wait, int | float) else 0.0, LEAST_WAIT)
            if code == 429:
                self._quiet_until = self._clock.seconds() + seconds
            return Outcome(Fate.LIMITED, seconds=seconds)
        if refusal.code in ("unavailable", "commit-unknown"):
            return Outcome(Fate.AWAY if refusal.code == "unavailable" else Fate.UNSURE)
        return Outcome(Fate.MISSING if code == 404 else Fate.REFUSED)


def place_of(
    target: dict[str, int], everywhere: bool = False
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return parameters and options for a call into a target, or into the whole chat."""
    if "threadId" in target and not everywhere:
        return {"chat_id": target["chatId"], "message_thread_id": target["threadId"]}, {}
    return {"chat_id": target["chatId"]}, {"aggregate": True}
