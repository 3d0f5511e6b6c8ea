"""What the chat page and other processes can make people do: named actions with JSON arguments."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from pitelegram.sandbox.chat import STRANGER_ID, Attachment, SandboxChat
from pitelegram.sandbox.posting import post

Arguments = dict[str, Any]


class BadArguments(ValueError):
    """An action was asked for with arguments that make no sense."""


def _integer(arguments: Arguments, name: str, required: bool = True) -> Any:
    value = arguments.get(name)
    if type(value) is int or (value is None and not required):
        return value
    raise BadArguments(f"{name} must be an integer")


def _text(arguments: Arguments, name: str, default: str | None = None) -> str:
    value = arguments.get(name, default)
    if isinstance(value, str) and (value or default is not None):
        return value
    raise BadArguments(f"{name} must be a text")


def _sent(message: Any) -> Any:
    return {"message_id": message.message_id, "thread_id": message.thread_id}


def send(chat: SandboxChat, arguments: Arguments) -> Any:
    """C{text}, C{thread?}, C{reply_to?}, C{outside?}: the owner writes."""
    text = _text(arguments, "text")
    thread = _integer(arguments, "thread", required=False)
    reply_to = _integer(arguments, "reply_to", required=False)
    return _sent(chat.user_sends(text, thread, reply_to, outside=arguments.get("outside") is True))


def send_file(chat: SandboxChat, arguments: Arguments) -> Any:
    """C{kind}, C{base64}, C{name?}, C{mime_type?}, C{text?}, C{thread?}, C{album?}: the owner sends a file."""
    attachment = Attachment(
        kind=_text(arguments, "kind", "document"),
        data=base64.b64decode(_text(arguments, "base64")),
        name=_text(arguments, "name", ""),
        mime_type=_text(arguments, "mime_type", "application/octet-stream"),
    )
    thread = _integer(arguments, "thread", required=False)
    caption = _text(arguments, "text", "")
    album = _text(arguments, "album", "") or None
    return _sent(chat.user_sends(caption, thread, attachment=attachment, album=album))


def post_members(chat: SandboxChat, arguments: Arguments) -> Any:
    """C{members}, C{thread?}, C{reply_to?}, C{album?}: the owner sends a message of any kind."""
    members = arguments.get("members")
    if not isinstance(members, dict):
        raise BadArguments("members must be an object")
    thread = _integer(arguments, "thread", required=False)
    reply_to = _integer(arguments, "reply_to", required=False)
    return _sent(post(chat, members, thread, reply_to, _text(arguments, "album", "") or None))


def press(chat: SandboxChat, arguments: Arguments) -> Any:
    """C{message_id} and C{data} or C{label}: the owner presses a button."""
    number = _integer(arguments, "message_id")
    if "data" in arguments:
        return {"callback_id": chat.user_presses(number, _text(arguments, "data"))}
    return {"callback_id": chat.user_presses(number, label=_text(arguments, "label"))}


def edit(chat: SandboxChat, arguments: Arguments) -> Any:
    """C{message_id}, C{text}: the owner edits his message."""
    chat.user_edits(_integer(arguments, "message_id"), _text(arguments, "text"))


def react(chat: SandboxChat, arguments: Arguments) -> Any:
    """C{message_id}, C{emoji}: the owner reacts; an empty one takes it back."""
    emoji = _text(arguments, "emoji", "")
    chat.user_reacts(_integer(arguments, "message_id"), *([emoji] if emoji else []))


def delete(chat: SandboxChat, arguments: Arguments) -> Any:
    """C{message_id}: the owner deletes a message."""
    chat.user_deletes(_integer(arguments, "message_id"))


def create_thread(chat: SandboxChat, arguments: Arguments) -> Any:
    """C{name}: the owner opens a Thread."""
    return {"thread_id": chat.user_creates_thread(_text(arguments, "name")).thread_id}


def rename_thread(chat: SandboxChat, arguments: Arguments) -> Any:
    """C{thread}, C{name}: the owner renames a Thread."""
    chat.user_renames_thread(_integer(arguments, "thread"), _text(arguments, "name"))


def close_thread(chat: SandboxChat, arguments: Arguments) -> Any:
    """C{thread}: the owner closes a Thread."""
    chat.user_closes_thread(_integer(arguments, "thread"))


def reopen_thread(chat: SandboxChat, arguments: Arguments) -> Any:
    """C{thread}: the owner opens a closed Thread again."""
    chat.user_reopens_thread(_integer(arguments, "thread"))


def delete_thread(chat: SandboxChat, arguments: Arguments) -> Any:
    """C{thread}, C{sends?}: the owner deletes a Thread."""
    sends = _text(arguments, "sends", "not-found")
    chat.user_deletes_thread(_integer(arguments, "thread"), sends)


def block(chat: SandboxChat, arguments: Arguments) -> Any:
    """C{blocked}: the owner blocks the bot or lets it in."""
    chat.user_blocks(bool(arguments.get("blocked", True)))


def threads(chat: SandboxChat, arguments: Arguments) -> Any:
    """C{enabled}: threaded mode on or off."""
    chat.switch_threads(bool(arguments.get("enabled", True)))


def stranger(chat: SandboxChat, arguments: Arguments) -> Any:
    """C{text}, C{user_id?}: somebody else writes in his own chat."""
    user_id = _integer(arguments, "user_id", required=False) or STRANGER_ID
    return _sent(chat.stranger_sends(_text(arguments, "text"), user_id))


def stranger_press(chat: SandboxChat, arguments: Arguments) -> Any:
    """C{message_id}, C{data}: somebody else forges a press on the owner's message."""
    number, data = _integer(arguments, "message_id"), _text(arguments, "data")
    return {"callback_id": chat.stranger_presses(number, data)}


def group(chat: SandboxChat, arguments: Arguments) -> Any:
    """C{text}: the owner writes in a group."""
    return _sent(chat.group_sends(_text(arguments, "text")))


Action = Callable[[SandboxChat, Arguments], Any]

ACTIONS: dict[str, Action] = {
    "send": send,
    "send_file": send_file,
    "post": post_members,
    "press": press,
    "edit": edit,
    "react": react,
    "delete": delete,
    "create_thread": create_thread,
    "rename_thread": rename_thread,
    "close_thread": close_thread,
    "reopen_thread": reopen_thread,
    "delete_thread": delete_thread,
    "block": block,
    "threads": threads,
    "stranger": stranger,
    "stranger_press": stranger_press,
    "group": group,
}

PAGE_ACTIONS = frozenset(
    {"send", "send_file", "edit", "press", "react"}
    | {f"{act}_thread" for act in ("create", "rename", "close", "reopen", "delete")}
)
"""What the chat page may ask for."""


def perform(chat: SandboxChat, name: str, arguments: Any, allowed: Any = ACTIONS) -> Any:
    """Run one action.

    @raise BadArguments: unknown action, wrong arguments, or no such message or Thread.
    """
    if name not in ACTIONS or name not in allowed:
        raise BadArguments("there is no such action")
    if not isinstance(arguments, dict):
        raise BadArguments("arguments must be an object")
    try:
        return ACTIONS[name](chat, arguments)
    except LookupError:
        raise BadArguments("there is no such message, Thread or button")
