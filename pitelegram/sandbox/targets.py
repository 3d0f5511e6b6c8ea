"""Finding what a call speaks of: its chat, Thread, reply target, markup."""

from __future__ import annotations

import re
from typing import Any

import attrs

from pitelegram.sandbox.errors import ApiError, bad_request
from pitelegram.sandbox.keyboards import checked_markup
from pitelegram.sandbox.parameters import Parameters
from pitelegram.sandbox.records import Chat, Message, Thread
from pitelegram.sandbox.richtext import utf16_slice
from pitelegram.sandbox.world import World


@attrs.frozen(kw_only=True)
class Destination:
    """Where and how a message goes.

    @ivar extra: members that a reply adds to the message.
    """

    chat: Chat
    thread_id: int | None
    reply_to: int | None
    markup: dict[str, Any] | None
    extra: dict[str, Any]


def chat_of(world: World, parameters: Parameters, writes: bool = True) -> Chat:
    """Return the chat of C{chat_id}.

    @param writes: whether a user who blocked the bot is a reason to refuse.
    """
    chat = world.chats.get(parameters.integer("chat_id", 0))
    if chat is None:
        raise bad_request("chat not found")
    if writes and chat.blocked:
        raise ApiError(403, "Forbidden: bot was blocked by the user")
    return chat


def markup_of(parameters: Parameters) -> dict[str, Any] | None:
    """Return the checked C{reply_markup}."""
    return checked_markup(parameters.json("reply_markup"))


def destination(world: World, parameters: Parameters) -> Destination:
    """Check markup, chat, Thread and reply target, in the order of the real server."""
    parameters.ignore(
        "disable_notification",
        "protect_content",
        "link_preview_options",
        "disable_web_page_preview",
        "message_effect_id",
        "allow_paid_broadcast",
    )
    markup = markup_of(parameters)
    chat = chat_of(world, parameters)
    thread_id = living_thread(world, chat, parameters.integer("message_thread_id", None))
    reply = parameters.json("reply_parameters", dict) or {}
    legacy = parameters.integer("reply_to_message_id", None)
    if legacy is not None and not reply:
        reply = {
            "message_id": legacy,
            "allow_sending_without_reply": parameters.boolean("allow_sending_without_reply"),
        }
    target, extra = _reply_target(chat, reply)
    if target is not None:
        if thread_id is None:
            thread_id = target.thread_id
        elif target.thread_id != thread_id:
            extra["external_reply"] = _external(chat, target)
    return Destination(
        chat=chat,
        thread_id=thread_id,
        reply_to=target.message_id if target else None,
        markup=markup,
        extra=extra,
    )


def living_thread(world: World, chat: Chat, thread_id: int | None) -> int | None:
    """Return the Thread that a send lands in.

    @raise ApiError: when it is not there, as the state of the Thread demands.
    """
    if not thread_id:
        return None
    thread = chat.threads.get(thread_id)
    if thread is None or (chat.private and not world.topics_enabled):
        raise bad_request("message thread not found")
    if thread.dead == "main":
        return None
    if thread.dead:
        text = "TOPIC_DELETED" if thread.dead == "deleted" else "message thread not found"
        raise bad_request(text)
    if thread.closed:
        raise bad_request("TOPIC_CLOSED")
    return thread_id


def topic_of(world: World, parameters: Parameters) -> tuple[Chat, Thread]:
    """Return the chat and the living Thread that a topic method speaks of."""
    chat = chat_of(world, parameters)
    thread_id = parameters.integer("message_thread_id", 0)
    if chat.private and not world.topics_enabled:
        raise bad_request("the chat is not a forum")
    thread = chat.threads.get(thread_id)
    if thread is None or thread.dead:
        raise bad_request("TOPIC_ID_INVALID")
    return chat, thread


def _reply_target(chat: Chat, reply: dict[str, Any]) -> tuple[Message | None, dict[str, Any]]:
    if not reply:
        return None, {}
    number = str(reply.get("message_id"))
    target = chat.messages.get(int(number) if re.fullmatch("[0-9]{1,19}", number) else 0)
    if target is None:
        if reply.get("allow_sending_without_reply"):
            return None, {}
        raise bad_request("message to be replied not found")
    quote = reply.get("quote")
    if not quote:
        return target, {}
    at = target.text.find(str(quote))
    if at < 0:
        raise bad_request("QUOTE_TEXT_INVALID")
    before = target.text[:at].encode("utf-16-le", "replace")
    position = len(before) // 2
    text = utf16_slice(target.text, position, len(str(quote).encode("utf-16-le", "replace")) // 2)
    return target, {"quote": {"text": text, "position": position, "is_manual": True}}


def _external(chat: Chat, target: Message) -> dict[str, Any]:
    origin = {"type": "user", "sender_user": target.sender, "date": target.date}
    return {"origin": origin, "chat": chat.about, "message_id": target.message_id}
