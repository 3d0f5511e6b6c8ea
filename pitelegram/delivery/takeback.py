"""Takes back what Telegram put outside its Thread (rule D29)."""

from __future__ import annotations

import enum
from random import Random
from typing import Any

import attrs
from twisted.internet.interfaces import IReactorTime

from pitelegram.botapi.interfaces import IBotApi
from pitelegram.botapi.missing import says_no_message
from pitelegram.errors import CertainlyUnsent, Conflict, Refused, TelegramError, Unauthorized
from pitelegram.kernel.backoff import Backoff
from pitelegram.kernel.deferring import sleep
from pitelegram.targets import TelegramTarget

TRIES = 6
"""Deletions that are tried before it is settled what is not known: about a minute."""


class Taken(enum.Enum):
    """What became of a message that landed elsewhere."""

    BACK = "it is gone"
    NOT = "it stays where it landed"
    UNKNOWN = "nobody can tell"


@attrs.define(eq=False)
class TakeBack:
    """Deletes messages; a deletion whose answer was lost is repeated, which harms nothing.

    To take a message for delivered that was deleted would lose it without a word.
    """

    _api: IBotApi
    _clock: IReactorTime
    _random: Random

    async def take(self, target: TelegramTarget, ids: list[int]) -> Taken:
        """Delete these messages of a chat."""
        several = len(ids) > 1
        method = "deleteMessages" if several else "deleteMessage"
        params: dict[str, Any] = {"chat_id": target.chat_id}
        params |= {"message_ids": ids} if several else {"message_id": ids[0]}
        backoff, doubt = Backoff(1.0, 30.0, self._random), False
        for left in reversed(range(TRIES)):
            try:
                await self._api.call(method, params)
                return Taken.BACK
            except TelegramError as error:
                if isinstance(error, Refused) and not isinstance(error, Unauthorized | Conflict):
                    missing = says_no_message(error.code, error.description)
                    return Taken.BACK if missing else Taken.NOT
                doubt = doubt or not isinstance(error, CertainlyUnsent | Refused)
                wait = error.retry_after if isinstance(error, CertainlyUnsent) else None
            if left:
                await sleep(self._clock, max(backoff.next(), wait or 0.0))
        return Taken.UNKNOWN if doubt else Taken.NOT
