"""Methods of Threads ("forum topics")."""

from __future__ import annotations

from typing import Any

from pitelegram.sandbox.errors import ApiError, bad_request
from pitelegram.sandbox.parameters import Parameters
from pitelegram.sandbox.targets import chat_of, topic_of
from pitelegram.sandbox.world import ICON_COLORS, World

MAX_NAME = 128


def clean_name(name: str) -> str:
    """Return a Thread's name as the service keeps it: blanks collapsed, cut at 128 characters."""
    return " ".join(name.split())[:MAX_NAME].rstrip()


def create(world: World, parameters: Parameters) -> dict[str, Any]:
    """C{createForumTopic}."""
    chat = chat_of(world, parameters)
    name = clean_name(parameters.text("name"))
    color = parameters.integer("icon_color", None)
    emoji = parameters.text("icon_custom_emoji_id")
    if not world.topics_enabled:
        raise bad_request("the chat is not a forum")
    if not name:
        raise bad_request("name must be non-empty")
    if color is not None and color not in ICON_COLORS:
        raise bad_request("invalid forum topic icon color specified")
    return world.open_thread(chat, world.bot, name, color, emoji).as_topic()


def edit(world: World, parameters: Parameters) -> bool:
    """C{editForumTopic}; with nothing to change it is simply true."""
    chat, thread = topic_of(world, parameters)
    changes: dict[str, str] = {}
    name = clean_name(parameters.text("name"))
    if name:
        changes["name"] = name
    if "icon_custom_emoji_id" in parameters:
        changes["icon_custom_emoji_id"] = parameters.text("icon_custom_emoji_id")
    if not changes:
        return True
    if all(getattr(thread, key) == value for key, value in changes.items()):
        raise bad_request("TOPIC_NOT_MODIFIED")
    world.change_thread(chat, world.bot, thread, changes)
    return True


def delete(world: World, parameters: Parameters) -> bool:
    """C{deleteForumTopic}: all its messages go too."""
    chat, thread = topic_of(world, parameters)
    world.drop_thread(chat, thread)
    return True


def unpin_all(world: World, parameters: Parameters) -> bool:
    """C{unpinAllForumTopicMessages}."""
    chat, thread = topic_of(world, parameters)
    chat.pinned = [
        number for number in chat.pinned if chat.messages[number].thread_id != thread.thread_id
    ]
    return True


def refuse_close(world: World, parameters: Parameters) -> ApiError:
    """C{closeForumTopic} and C{reopenForumTopic} do not exist in private chats."""
    chat_of(world, parameters)
    parameters.ignore("message_thread_id")
    raise bad_request("the chat is not a supergroup forum")


METHODS = {
    "createForumTopic": create,
    "editForumTopic": edit,
    "deleteForumTopic": delete,
    "unpinAllForumTopicMessages": unpin_all,
    "closeForumTopic": refuse_close,
    "reopenForumTopic": refuse_close,
    "getForumTopicIconStickers": lambda world, parameters: [],
}
