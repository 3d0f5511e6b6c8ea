"""What a follower may call through the leader.

A follower speaks into its own Thread, edits and deletes what it sent itself, and nothing more.  The
check is made for each call against the target that the follower has at that moment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pitelegram.errors import Refusal
from pitelegram.targets import TelegramTarget

Owns = Callable[[int, int], bool]
"""C{owns(chat_id, message_id)}: whether this follower sent that message."""

SENDS = frozenset(
    {
        "sendAudio",
        "sendDocument",
        "sendMediaGroup",
        "sendMessage",
        "sendPhoto",
        "sendRichMessage",
        "sendVoice",
    }
)
"""Calls that leave a message behind."""

DRAFTS = frozenset({"sendMessageDraft", "sendRichMessageDraft"})
EDITS = frozenset({"editMessageReplyMarkup", "editMessageText"})
DELETES = frozenset({"deleteMessage"})
FREE = frozenset({"answerCallbackQuery", "answerGuestQuery", "getMe"})

WITH_FILES = SENDS - {"sendMessage"}

_ELSEWHERE = (
    "business_connection_id",
    "direct_messages_topic_id",
    "ephemeral_message_id",
    "inline_message_id",
    "receiver_user_id",
)
"""Parameters that would carry a call past the chat and Thread that were checked."""

_FILE_PARAMETERS = (
    "animation",
    "audio",
    "document",
    "media",
    "photo",
    "thumbnail",
    "video",
    "voice",
)
_COMMAND = re.compile(r"[a-z0-9_]{1,32}")
_MOST_COMMANDS = 100
_LONGEST_DESCRIPTION = 256


def check_call(
    method: str,
    params: dict[str, Any],
    options: dict[str, Any],
    files: Sequence[dict[str, Any]],
    target: TelegramTarget | None,
    owns_message: Owns,
) -> tuple[dict[str, Any], str]:
    """Check one call.

    @param target: the follower's target now, None while it has none.
    @return: the parameters to send, and C{send}, C{draft}, C{edit}, C{delete}, C{action} or C{free}.
    @raise Refusal: C{not-allowed}.
    """
    if files and method not in WITH_FILES:
        raise _no("this method takes no files")
    clean = {name: value for name, value in params.items() if not name.startswith("__")}
    for name in _ELSEWHERE:
        if name in clean:
            raise _no(f"{name} leads out of the worker's chat")
    if method in FREE:
        return clean, "free"
    if method == "setMyCommands":
        _check_commands(clean, target)
        return clean, "free"
    if method in SENDS | DRAFTS:
        _check_place(clean, options, target)
        _check_contents(clean, target)
        return clean, "send" if method in SENDS else "draft"
    if method == "sendChatAction":
        _check_place(clean, {**options, "aggregate": True}, target)
        return clean, "action"
    if method in EDITS | DELETES:
        _check_own(clean, target, owns_message)
        return clean, "edit" if method in EDITS else "delete"
    raise _no("this method is not open to workers")


def _no(reason: str) -> Refusal:
    return Refusal("not-allowed", reason)


def _check_chat(params: dict[str, Any], target: TelegramTarget | None) -> TelegramTarget:
    if target is None:
        raise _no("this worker has no chat yet")
    chat_id = params.get("chat_id")
    if type(chat_id) is not int or chat_id != target.chat_id:
        raise _no("this is not the worker's chat")
    return target


def _check_place(
    params: dict[str, Any], options: dict[str, Any], target: TelegramTarget | None
) -> None:
    own = _check_chat(params, target)
    thread_id = params.get("message_thread_id")
    if thread_id is None:
        params.pop("message_thread_id", None)
    elif type(thread_id) is not int:
        raise _no("message_thread_id must be an integer")
    if thread_id == own.thread_id:
        return
    if thread_id is None and options.get("aggregate") is not True:
        raise _no("a message without its Thread needs the aggregate option")
    if thread_id is not None and options.get("crossTarget") is not True:
        raise _no("another Thread needs the crossTarget option")


def _check_contents(params: dict[str, Any], target: TelegramTarget | None) -> None:
    reply = params.get("reply_parameters")
    if isinstance(reply, dict) and target is not None:
        if reply.get("chat_id", target.chat_id) != target.chat_id:
            raise _no("a reply must stay in the worker's chat")
    for name in _FILE_PARAMETERS:
        _check_no_local_file(params.get(name))


def _check_no_local_file(value: Any) -> None:
    if isinstance(value, str) and value.lstrip()[:5].lower() == "file:":
        raise _no("files go by upload only")
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            _check_no_local_file(item)


def _check_own(params: dict[str, Any], target: TelegramTarget | None, owns: Owns) -> None:
    own = _check_chat(params, target)
    message_id = params.get("message_id")
    if type(message_id) is not int:
        raise _no("message_id must be an integer")
    if not owns(own.chat_id, message_id):
        raise _no("this worker did not send that message")


def _check_commands(params: dict[str, Any], target: TelegramTarget | None) -> None:
    commands = params.get("commands")
    if not isinstance(commands, list) or len(commands) > _MOST_COMMANDS:
        raise _no("commands must be a list of at most 100")
    for command in commands:
        if not isinstance(command, dict):
            raise _no("a command must be an object")
        name, description = command.get("command"), command.get("description")
        if not isinstance(name, str) or _COMMAND.fullmatch(name) is None:
            raise _no("a command's name is 1 to 32 of a-z 0-9 _")
        if not isinstance(description, str) or not 0 < len(description) <= _LONGEST_DESCRIPTION:
            raise _no("a command's description is 1 to 256 characters")
    scope = params.get("scope")
    if scope is not None:
        kind = scope.get("type") if isinstance(scope, dict) else None
        if kind == "chat":
            _check_chat(scope, target)
        elif kind not in ("default", "all_private_chats"):
            raise _no("this scope is not the worker's")
