"""Asking the Bot API from a command: one reactor run, then back."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import attrs
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from pitelegram.botapi.interfaces import IBotApi
from pitelegram.errors import TelegramError

T = TypeVar("T")

THREADS_ON = (
    "open the mini app of @BotFather (not its text menu), choose the bot, Bot Settings, and switch"
    " Threaded Mode on"
)


@attrs.frozen(kw_only=True)
class BotFacts:
    """What Telegram says about a bot.

    @ivar webhook: a webhook is set, so nobody can poll.
    """

    bot_id: int
    username: str
    threads: bool
    users_make_threads: bool
    webhook: bool

    def switches_off(self) -> list[str]:
        """Return a sentence for each switch at BotFather that should be on."""
        found = []
        if not self.threads:
            found.append(f"Threaded Mode is off, so one worker is served at a time: {THREADS_ON}")
        elif not self.users_make_threads:
            found.append(
                "users may not create Threads; that is fine, workers get theirs from the bot"
            )
        return found


async def ask_bot(api: IBotApi) -> BotFacts:
    """Return what Telegram says.

    @raise TelegramError: it says nothing, or refuses the token.
    """
    me = await api.call("getMe", {})
    if not isinstance(me, dict) or type(me.get("id")) is not int or not me.get("is_bot"):
        raise TelegramError("getMe", 0, "the answer is not about a bot")
    webhook = await api.call("getWebhookInfo", {})
    return BotFacts(
        bot_id=me["id"],
        username=str(me.get("username") or ""),
        threads=bool(me.get("has_topics_enabled")),
        users_make_threads=bool(me.get("allows_users_to_create_topics")),
        webhook=isinstance(webhook, dict) and bool(webhook.get("url")),
    )


def ask_telegram(token: str, api_root: str, proxy: str | None, family: str) -> BotFacts:
    """Run the reactor until Telegram has answered about a bot.

    @raise TelegramError: see L{ask_bot}.
    """

    async def work(reactor: Any) -> BotFacts:
        from pitelegram.botapi.client import BotApi
        from pitelegram.botapi.network import Network

        api = BotApi(token, api_root, reactor, endpoints=Network(reactor, proxy, family))
        try:
            return await ask_bot(api)
        finally:
            await api.close()

    return in_reactor(work)


def in_reactor(work: Callable[[Any], Coroutine[Deferred[Any], Any, T]]) -> T:
    """Run the reactor for one coroutine and return its result; once per process."""
    from twisted.internet import reactor

    outcome: list[Any] = []

    def begin() -> None:
        running = Deferred.fromCoroutine(work(reactor))
        running.addBoth(outcome.append)
        running.addBoth(lambda _: reactor.stop())  # type: ignore[attr-defined]

    reactor.callWhenRunning(begin)  # type: ignore[attr-defined]
    reactor.run()  # type: ignore[attr-defined]
    if not outcome:
        raise KeyboardInterrupt
    if isinstance(outcome[0], Failure):
        outcome[0].raiseException()
    return outcome[0]  # type: ignore[no-any-return]
