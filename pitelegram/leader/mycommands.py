"""The commands that Telegram lists for the bot."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from random import Random
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.botapi.interfaces import IBotApi
from pitelegram.bridge.menus.main import MENU_COMMANDS
from pitelegram.errors import CertainlyUnsent, Refused, StoreError, TelegramError
from pitelegram.kernel.backoff import Backoff
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.kernel.jsonio import canonical
from pitelegram.store.interfaces import ILeadership

LISTED: tuple[tuple[str, str], ...] = (
    *((name, f"{mark} {words}") for name, mark, words in MENU_COMMANDS),
    ("daemon", "🛠 Workers, Threads and status"),
)
"""Name and description of each.  Templates are left out: they are other ones in each Thread."""

FIRST_DELAY = 5.0
LAST_DELAY = 600.0
MOST = 100
_NAME = re.compile(r"[a-z0-9_]{1,32}")
_LONGEST = 256
_KEY = "my_commands"


def legal(listed: Sequence[tuple[str, str]]) -> tuple[list[dict[str, str]], list[str]]:
    """Return the commands that Telegram takes, and the names of those that it would refuse.

    One illegal command makes Telegram refuse all of them.
    """
    good: dict[str, dict[str, str]] = {}
    bad: list[str] = []
    for name, words in listed:
        fits = _NAME.fullmatch(name) and 0 < len(words.strip()) and len(words) <= _LONGEST
        if fits and name not in good and len(good) < MOST:
            good[name] = {"command": name, "description": words}
        else:
            bad.append(name)
    return list(good.values()), bad


class MyCommands(Service):
    """Tells Telegram the list at a start, if it is another one than was told last.

    While Telegram cannot be reached it is tried again, less and less often; a refusal counts until the
    next start.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        random: Random,
        api: IBotApi,
        leadership: ILeadership,
        bot_id: int,
        listed: Sequence[tuple[str, str]] = LISTED,
    ) -> None:
        self._clock = clock
        self._random = random
        self._api = api
        self._leadership = leadership
        self._bot_id = bot_id
        self._listed = listed
        self._telling: Deferred[None] | None = None

    def startService(self) -> None:
        """Begin to tell."""
        super().startService()
        self._telling = self._tell()
        self._telling.addErrback(self._failed)

    def stopService(self) -> None:
        """Stop trying."""
        super().stopService()
        telling, self._telling = self._telling, None
        if telling is not None:
            telling.cancel()

    @deferred
    async def _tell(self) -> None:
        commands, bad = legal(self._listed)
        for name in bad:
            self._log.warn("the command {name} cannot be listed in Telegram", name=name[:64])
        params: dict[str, Any] = {"commands": commands, "scope": {"type": "all_private_chats"}}
        text = canonical({"bot": self._bot_id, **params})
        digest = hashlib.sha256(text).hexdigest()
        if self._leadership.get_meta(_KEY) == digest:
            return
        backoff = Backoff(FIRST_DELAY, LAST_DELAY, self._random)
        while True:
            wait = 0.0
            try:
                await self._api.call("setMyCommands", params)
                break
            except Refused as error:
                self._log.warn("Telegram refuses the list of commands ({code})", code=error.code)
                return
            except CertainlyUnsent as error:
                wait = error.retry_after or 0.0
            except TelegramError as error:
                # Setting the same list twice is setting it once.
                self._log.info("the list of commands is told again later ({code})", code=error.code)
            await sleep(self._clock, max(wait, backoff.next()))
        await self._leadership.set_meta(_KEY, digest)

    def _failed(self, failure: Any) -> None:
        if failure.check(CancelledError, StoreError) is None:
            self._log.failure("the list of commands was not told", failure)
