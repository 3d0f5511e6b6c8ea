"""What a sandbox Telegram remembers: chats, Threads, messages."""

from __future__ import annotations

from typing import Any

import attrs

from pitelegram.sandbox.blocks import visible_text

INLINE = "inline_keyboard"


@attrs.define(eq=False)
class Thread:
    """A Thread ("forum topic") of a chat.

    @ivar thread_id: the id of the service message that created it.
    @ivar dead: what a send into it gets after its deletion: C{not-found}, C{deleted} (the text
        C{TOPIC_DELETED}) or C{main} (the message lands in the main chat); empty while it lives.
    @ivar closed: whether the user closed it: the bot's sends are refused until it is open again.
    """

    thread_id: int
    name: str
    icon_color: int
    icon_custom_emoji_id: str = ""
    implicit: bool = False
    dead: str = ""
    closed: bool = False

    def as_topic(self) -> dict[str, Any]:
        """Return the Bot API's C{ForumTopic}."""
        return {"message_thread_id": self.thread_id, **self.created()}

    def seen(self) -> dict[str, Any]:
        """Return it as people see it."""
        return self.as_topic() | {"closed": self.closed}

    def created(self) -> dict[str, Any]:
        """Return the content of C{forum_topic_created}."""
        content: dict[str, Any] = {"name": self.name, "icon_color": self.icon_color}
        if self.icon_custom_emoji_id:
            content["icon_custom_emoji_id"] = self.icon_custom_emoji_id
        if self.implicit:
            content["is_name_implicit"] = True
        return content


@attrs.define(eq=False)
class Message:
    """A message.

    @ivar sender: Bot API C{User}.
    @ivar content: the members that make up its content (C{text}, C{entities}, C{photo} …).
    @ivar markup: C{reply_markup}, or None.
    @ivar extra: further members (C{forward_origin}, C{quote}, C{external_reply} …).
    @ivar reactions: who reacted how: user id to a list of C{ReactionType}.
    @ivar service: whether it is a notice that nobody wrote.
    """

    message_id: int
    sender: dict[str, Any]
    date: int
    content: dict[str, Any]
    thread_id: int | None = None
    reply_to: int | None = None
    markup: dict[str, Any] | None = None
    album: str | None = None
    extra: dict[str, Any] = attrs.Factory(dict)
    reactions: dict[int, list[dict[str, Any]]] = attrs.Factory(dict)
    service: bool = False
    edit_date: int | None = None

    @property
    def text(self) -> str:
        """Its text, caption or the words of its blocks, empty for none."""
        words = self.content.get("text") or self.content.get("caption")
        rich = self.content.get("rich_message")
        return str(words or (visible_text(rich["blocks"]) if rich else ""))

    @property
    def keyboard(self) -> list[list[dict[str, Any]]]:
        """The rows of its inline keyboard."""
        return list((self.markup or {}).get(INLINE, []))

    def button(self, label: str) -> dict[str, Any]:
        """Return the inline button with that text.

        @raise LookupError: if it has none.
        """
        for row in self.keyboard:
            for button in row:
                if button["text"] == label:
                    return button
        raise LookupError(f"no button {label!r} on message {self.message_id}")


@attrs.define(eq=False)
class Chat:
    """A chat with its messages; ids count from 1 in each."""

    about: dict[str, Any]
    messages: dict[int, Message] = attrs.Factory(dict)
    threads: dict[int, Thread] = attrs.Factory(dict)
    pinned: list[int] = attrs.Factory(list)
    last_id: int = 0
    blocked: bool = False

    @property
    def chat_id(self) -> int:
        """Bot API C{chat.id}."""
        return int(self.about["id"])

    @property
    def private(self) -> bool:
        """Whether it is a chat with one user."""
        return bool(self.about["type"] == "private")

    def render(self, message: Message, threads: bool = True, nested: bool = True) -> dict[str, Any]:
        """Return the Bot API's C{Message}.

        @param threads: False leaves the Thread members out (threaded mode is off).
        @param nested: whether C{reply_to_message} is put in (one level only).
        """
        answer: dict[str, Any] = {
            "message_id": message.message_id,
            "from": message.sender,
            "chat": self.about,
            "date": message.date,
        }
        if message.thread_id is not None and threads:
            answer |= {"message_thread_id": message.thread_id, "is_topic_message": True}
        if message.edit_date is not None:
            answer["edit_date"] = message.edit_date
        if message.album is not None:
            answer["media_group_id"] = message.album
        answer |= message.extra | message.content
        target = self.messages.get(message.reply_to or 0)
        if nested and target is not None and "external_reply" not in message.extra:
            answer["reply_to_message"] = self.render(target, threads, nested=False)
        if message.keyboard:
            answer["reply_markup"] = message.markup
        return answer
