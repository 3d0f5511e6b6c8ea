"""How Telegram says that a Thread is not there, or was put elsewhere (botapi facts, 4.3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

NO_THREAD = "Bad Request: message thread not found"
"""The usual words; a silent landing in the main chat is passed on as these."""

_NO_THREAD = (
    "message thread not found",
    "topic_deleted",
    "topic_id_invalid",
    "not a forum",
    "not a supergroup forum",
)
_CLOSED = ("topic_closed",)
_NO_MESSAGE = ("message to delete not found", "message to edit not found", "message_id_invalid")


def says_no_thread(code: Any, description: Any) -> bool:
    """Whether a refusal says that the Thread is not there.  It may be wrong (rule D29)."""
    return code == 400 and _contains(description, _NO_THREAD)


def says_closed(code: Any, description: Any) -> bool:
    """Whether a refusal says that the user closed the Thread: it is there, and may be opened again."""
    return code == 400 and _contains(description, _CLOSED)


def says_no_message(code: Any, description: Any) -> bool:
    """Whether a refusal says that the message is not there (any more)."""
    return code == 400 and _contains(description, _NO_MESSAGE)


def misplaced(messages: Iterable[dict[str, Any]], thread_id: int | None) -> bool:
    """Whether any of the messages that a send gave is outside the Thread it was for."""
    return thread_id is not None and any(
        each.get("message_thread_id") != thread_id for each in messages
    )


def _contains(description: Any, words: tuple[str, ...]) -> bool:
    return any(each in str(description).lower() for each in words)
