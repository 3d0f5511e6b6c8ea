"""Whose update is it?  A pure look at one update, before anything is stored."""

from __future__ import annotations

from enum import Enum
from typing import Any

import attrs

from pitelegram.ids import UPDATE_KINDS
from pitelegram.store.rows import Incoming

SERVICE_FIELDS = (
    "forum_topic_closed",
    "forum_topic_created",
    "forum_topic_edited",
    "forum_topic_reopened",
    "general_forum_topic_hidden",
    "general_forum_topic_unhidden",
    "message_auto_delete_timer_changed",
    "pinned_message",
)
"""A message with one of these carries nothing for a worker."""


class Sort(Enum):
    """What an update is to us."""

    ADMITTED = "admitted"
    STRANGER = "strangers"
    SERVICE = "service"
    MALFORMED = "malformed"
    UNKNOWN = "unknown"
    MEMBER = "member"
    PAIRED = "paired"


@attrs.frozen(kw_only=True)
class Seen:
    """The verdict on one update.

    @ivar row: what to store, for an admitted one.
    @ivar sender: the sender's id, where it could be read.
    @ivar private: whether it came in the sender's own private chat with the bot.
    @ivar content: the message, callback, reaction or membership change.
    """

    sort: Sort
    kind: str | None = None
    sender: int | None = None
    private: bool = False
    content: dict[str, Any] = attrs.field(factory=dict, repr=False)
    row: Incoming | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True)
class _Place:
    """Who, where and to what an update belongs, read out of it."""

    sender: int
    is_bot: bool
    chat_id: int
    chat_type: str
    thread_id: int | None
    message_id: int | None
    callback_id: str | None


def look(update: Any, owner: int | None, bot_id: int) -> Seen:
    """Judge one update as it came from Telegram.

    Only what the owner himself did in his private chat with the bot is admitted; the bot's own
    messages there are service messages.

    @return: a verdict; C{row.body} is empty and filled in by the caller.
    """
    try:
        update_id = _integer(update["update_id"])
    except (KeyError, TypeError):
        return Seen(sort=Sort.MALFORMED)
    kind = next((name for name in UPDATE_KINDS if name in update), None)
    if kind is None:
        return Seen(sort=Sort.UNKNOWN)
    content = update[kind]
    try:
        place = _place(kind, content)
    except (KeyError, TypeError, AttributeError):
        return Seen(sort=Sort.MALFORMED, kind=kind)
    sort = _sort(kind, content, place, owner, bot_id)
    private = place.chat_type == "private" and place.chat_id == place.sender and not place.is_bot
    return Seen(
        sort=sort,
        kind=kind,
        sender=place.sender,
        private=private,
        content=content,
        row=_row(update_id, kind, place) if sort is Sort.ADMITTED else None,
    )


def _sort(
    kind: str, content: dict[str, Any], place: _Place, owner: int | None, bot_id: int
) -> Sort:
    if owner is None or place.chat_id != owner or place.chat_type != "private":
        return Sort.STRANGER
    if place.sender == bot_id:
        return Sort.SERVICE
    if place.sender != owner or place.is_bot:
        return Sort.STRANGER
    if kind == "my_chat_member":
        return Sort.MEMBER
    if kind == "message" and any(field in content for field in SERVICE_FIELDS):
        return Sort.SERVICE
    return Sort.ADMITTED


def _place(kind: str, content: dict[str, Any]) -> _Place:
    sender = content["user" if kind == "message_reaction" else "from"]
    message = content.get("message") if kind == "callback_query" else content
    if message is None:
        # A button of an inline message: it stands in a chat that is not ours.
        message = {"chat": {"id": 0, "type": "inline"}, "message_id": 0}
    chat = message["chat"]
    callback_id = content["id"] if kind == "callback_query" else None
    if kind == "callback_query" and not isinstance(callback_id, str):
        raise TypeError("a callback id is a text")
    return _Place(
        sender=_integer(sender["id"]),
        is_bot=sender.get("is_bot") is True,
        chat_id=_integer(chat["id"]),
        chat_type=str(chat["type"]),
        thread_id=_optional(message.get("message_thread_id")),
        message_id=None if kind == "my_chat_member" else _integer(message["message_id"]),
        callback_id=callback_id,
    )


def _integer(value: Any) -> int:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise TypeError("an id is an integer")
    return value


def _optional(value: Any) -> int | None:
    return None if value is None else _integer(value)


def _row(update_id: int, kind: str, place: _Place) -> Incoming:
    return Incoming(
        update_id=update_id,
        kind=kind,
        chat_id=place.chat_id,
        thread_id=place.thread_id,
        message_id=place.message_id,
        callback_id=place.callback_id,
        body=b"",
    )
