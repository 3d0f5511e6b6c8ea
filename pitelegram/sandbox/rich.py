"""Rich messages and drafts."""

from __future__ import annotations

from typing import Any

from pitelegram.sandbox.blocks import blocks_of
from pitelegram.sandbox.errors import bad_request
from pitelegram.sandbox.formatting import MAX_TEXT, rich_text
from pitelegram.sandbox.parameters import Parameters
from pitelegram.sandbox.sending import post
from pitelegram.sandbox.targets import chat_of, destination
from pitelegram.sandbox.world import World

_KNOWN = {"markdown", "html", "is_rtl", "skip_entity_detection"}
_MOST_DRAFT_ID = 2**31 - 1


def send_rich_message(world: World, parameters: Parameters) -> dict[str, Any]:
    """C{sendRichMessage}: Markdown only; what else the service can parse is refused here."""
    content = rich_content(parameters)
    return post(world, destination(world, parameters), content)


def send_message_draft(world: World, parameters: Parameters) -> bool:
    """C{sendMessageDraft}."""
    text = parameters.text("text")
    entities = parameters.json("entities", list)
    rich = rich_text(text, parameters.text("parse_mode"), entities) if text else None
    if rich is not None and len(rich.text) > MAX_TEXT:
        raise bad_request("message is too long")
    return _draft(world, parameters, rich.as_json() if rich is not None else {"text": ""})


def send_rich_message_draft(world: World, parameters: Parameters) -> bool:
    """C{sendRichMessageDraft}."""
    return _draft(world, parameters, rich_content(parameters))


def rich_content(parameters: Parameters) -> dict[str, Any]:
    """Return what a message with the given C{rich_message} holds.

    @raise ApiError: 400, as the service might refuse it.
    """
    message = parameters.json("rich_message", dict)
    if message is None:
        raise bad_request("parameter rich_message is required")
    if set(message) - _KNOWN or ("markdown" in message) == ("html" in message):
        raise bad_request("can't parse rich message: exactly one of markdown and html is needed")
    source = message.get("markdown")
    if not isinstance(source, str):
        raise bad_request("can't parse rich message: the sandbox reads Markdown only")
    direction = {"is_rtl": True} if message.get("is_rtl") is True else {}
    return {"rich_message": {"blocks": blocks_of(source)} | direction}


def _draft(world: World, parameters: Parameters, content: dict[str, Any]) -> bool:
    number = parameters.integer("draft_id", 0)
    thread_id = parameters.integer("message_thread_id", None)
    chat = chat_of(world, parameters)
    if not chat.private:
        raise bad_request("TEXTDRAFT_PEER_INVALID")
    if not number or abs(number) > _MOST_DRAFT_ID:
        raise bad_request("wrong draft identifier specified")
    world.draft(chat, thread_id, number, content)
    return True


METHODS = {
    "sendRichMessage": send_rich_message,
    "sendMessageDraft": send_message_draft,
    "sendRichMessageDraft": send_rich_message_draft,
}
