"""Methods about the bot itself, its commands, its files and its chats."""

from __future__ import annotations

import re
from typing import Any

from pitelegram.kernel.jsonio import canonical
from pitelegram.sandbox.errors import bad_request
from pitelegram.sandbox.parameters import Parameters
from pitelegram.sandbox.targets import chat_of
from pitelegram.sandbox.world import World

MAX_COMMANDS = 100


def get_me(world: World, parameters: Parameters) -> dict[str, Any]:
    """C{getMe}, with what threaded mode allows now."""
    return world.bot | {
        "can_join_groups": True,
        "can_read_all_group_messages": False,
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
        "has_topics_enabled": world.topics_enabled,
        "allows_users_to_create_topics": world.topics_enabled and world.users_create_topics,
    }


def get_chat(world: World, parameters: Parameters) -> dict[str, Any]:
    """C{getChat}; nothing about Threads."""
    chat = chat_of(world, parameters, writes=False)
    about = chat.about | {
        "accent_color_id": 1,
        "max_reaction_count": 11,
        "accepted_gift_types": {},
    }
    if chat.pinned:
        message = chat.messages[chat.pinned[-1]]
        about["pinned_message"] = chat.render(message, world.topics_enabled, nested=False)
    return about


def get_file(world: World, parameters: Parameters) -> dict[str, Any]:
    """C{getFile}."""
    return world.files.link(parameters.text("file_id"))


def _scope(parameters: Parameters) -> str:
    scope = parameters.json("scope", dict) or {"type": "default"}
    return canonical([scope, parameters.text("language_code")]).decode()


def set_commands(world: World, parameters: Parameters) -> bool:
    """C{setMyCommands}."""
    commands = parameters.json("commands", list)
    scope = _scope(parameters)
    if commands is None:
        raise bad_request('parameter "commands" is required')
    if len(commands) > MAX_COMMANDS:
        raise bad_request("too much commands")
    for command in commands:
        name = command.get("command") if isinstance(command, dict) else None
        if not isinstance(name, str) or not re.fullmatch(r"/?[a-z0-9_]{1,32}", name):
            raise bad_request("BOT_COMMAND_INVALID")
        description = command.get("description")
        if not isinstance(description, str) or not 1 <= len(description.strip()) <= 256:
            raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
    world.commands[scope] = [
        {"command": c["command"].lstrip("/"), "description": c["description"].strip()}
        for c in commands
    ]
    world.emit("commands")
    return True


def get_commands(world: World, parameters: Parameters) -> list[dict[str, str]]:
    """C{getMyCommands} of exactly that scope."""
    return world.commands.get(_scope(parameters), [])


def delete_commands(world: World, parameters: Parameters) -> bool:
    """C{deleteMyCommands}."""
    world.commands.pop(_scope(parameters), None)
    return True


METHODS = {
    "getMe": get_me,
    "getChat": get_chat,
    "getFile": get_file,
    "setMyCommands": set_commands,
    "getMyCommands": get_commands,
    "deleteMyCommands": delete_commands,
}
