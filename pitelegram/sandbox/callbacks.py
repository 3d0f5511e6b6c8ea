"""Button presses that wait for their answer."""

from __future__ import annotations

from random import Random
from typing import Any

import attrs
from twisted.internet.interfaces import IReactorTime

from pitelegram.sandbox.errors import bad_request

ANSWERABLE = 60.0
"""Seconds after which a press can no longer be answered."""


@attrs.define(eq=False)
class Press:
    """One press of a button.

    @ivar answer: what C{answerCallbackQuery} said: C{text}, C{show_alert}, C{url}; None so far.
    """

    callback_id: str
    user_id: int
    chat_id: int
    message_id: int
    pressed_at: float
    answer: dict[str, Any] | None = None


class Presses:
    """The presses of one bot by id."""

    def __init__(self, clock: IReactorTime, random: Random) -> None:
        self._clock = clock
        self._random = random
        self._presses: dict[str, Press] = {}

    def open(self, user_id: int, chat_id: int, message_id: int) -> Press:
        """Record a press and give it an id."""
        callback_id = str(self._random.randrange(10**17, 10**18))
        press = Press(callback_id, user_id, chat_id, message_id, self._clock.seconds())
        self._presses[callback_id] = press
        return press

    def get(self, callback_id: str) -> Press | None:
        """Return a press, answered or not."""
        return self._presses.get(callback_id)

    def answer(self, callback_id: str, answer: dict[str, Any]) -> Press:
        """Answer a press once.

        @raise pitelegram.sandbox.errors.ApiError: unknown, answered or too old.
        """
        press = self._presses.get(callback_id)
        now = self._clock.seconds()
        if press is None or press.answer is not None or now - press.pressed_at > ANSWERABLE:
            raise bad_request(
                "query is too old and response timeout expired or query ID is invalid"
            )
        press.answer = answer
        return press
