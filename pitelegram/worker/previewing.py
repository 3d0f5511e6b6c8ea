"""Typing and previews of one worker, composed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from twisted.internet.interfaces import IReactorTime

from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.chataction import ChatAction
from pitelegram.worker.previews import Canvas, Previews
from pitelegram.worker.registration import Registration
from pitelegram.worker.standin import StandIn
from pitelegram.worker.trying import Trying


def make_previews(
    clock: IReactorTime,
    random: Random,
    inbox: IInbox,
    registration: Registration,
    setting: Callable[[str], Any],
    asked: Callable[[], bool],
) -> tuple[ChatAction, Previews]:
    """Make both; they hold back together when Telegram says that there are too many calls.

    @param setting: returns a setting of the operator.
    @param asked: whether prompts from the chat are in Pi's hands; what Pi does by itself is shown only
        where its answer is.
    """

    def target() -> dict[str, int] | None:
        return registration.target

    def wanted() -> bool:
        return asked() or bool(setting("proactivePush"))

    calls = Trying(clock, registration.current_link)
    stand_in = StandIn(clock, random, inbox, calls, lambda: registration.link is not None)
    previews = Previews(clock, random, Canvas(calls, stand_in, target), setting, wanted)
    return ChatAction(clock, calls, target), previews
