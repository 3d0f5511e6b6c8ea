"""Bot API calls that nothing depends on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.logger import Logger

from pitelegram.bus.interfaces import ILeaderLink
from pitelegram.errors import BusError, Refusal


class BestEffort:
    """Sends small calls through the leader; a failure is noted and forgotten.

    @param link: returns the registered link, None while there is none.
    """

    _log = Logger()

    def __init__(self, link: Callable[[], ILeaderLink | None]) -> None:
        self._link = link

    def answer_callback(self, callback_id: str, text: str) -> None:
        """End the progress bar of a pressed button with a short word."""
        self.call("answerCallbackQuery", {"callback_query_id": callback_id, "text": text})

    def remove_buttons(self, chat_id: int | None, message_id: int | None) -> None:
        """Take the buttons off a message, where it is known."""
        if chat_id is not None and message_id is not None:
            markup: dict[str, Any] = {"inline_keyboard": []}
            self.call(
                "editMessageReplyMarkup",
                {"chat_id": chat_id, "message_id": message_id, "reply_markup": markup},
            )

    def action(self, action: str, target: dict[str, int] | None) -> None:
        """Show for some seconds what the worker is doing, where it has a Thread."""
        if target is None:
            return
        params: dict[str, Any] = {"chat_id": target["chatId"], "action": action}
        options = {"aggregate": True}
        if "threadId" in target:
            params["message_thread_id"] = target["threadId"]
            options = {}
        self.call("sendChatAction", params, options)

    def call(
        self, method: str, params: dict[str, Any], options: dict[str, Any] | None = None
    ) -> None:
        """Send one call; without a link it is dropped."""
        link = self._link()
        if link is None:
            return
        sending = link.call_api(method, params, options)
        sending.addErrback(lambda failure: failure.trap(BusError, Refusal) and None)
        sending.addErrback(
            lambda failure: self._log.failure("{method} failed", failure, method=method)
        )
