"""Where a message goes: a chat, and perhaps a Thread in it."""

from __future__ import annotations

from typing import Any

import attrs


@attrs.frozen
class TelegramTarget:
    """A chat and an optional Thread; without one it is the chat's *All*.

    @ivar chat_id: Bot API C{chat.id}.
    @ivar thread_id: Bot API C{message_thread_id}, or None.
    """

    chat_id: int
    thread_id: int | None = None

    @property
    def key(self) -> str:
        """A stable text key, C{<chat>} or C{<chat>:<thread>}."""
        return str(self.chat_id) if self.thread_id is None else f"{self.chat_id}:{self.thread_id}"

    def as_json(self) -> dict[str, int]:
        """Return C{{"chatId", "threadId"?}}, the form of the bus."""
        if self.thread_id is None:
            return {"chatId": self.chat_id}
        return {"chatId": self.chat_id, "threadId": self.thread_id}

    @classmethod
    def from_json(cls, value: Any) -> TelegramTarget | None:
        """Read the form of the bus; None for null.

        @raise ValueError: if it is neither null nor a target.
        """
        if value is None:
            return None
        if not isinstance(value, dict) or type(value.get("chatId")) is not int:
            raise ValueError("a target needs an integer chatId")
        thread = value.get("threadId")
        if thread is not None and type(thread) is not int:
            raise ValueError("threadId must be an integer")
        return cls(value["chatId"], thread)
