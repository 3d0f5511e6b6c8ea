"""Methods that change or remove messages, answer presses, react and pin."""

from __future__ import annotations

from typing import Any

from pitelegram.sandbox.errors import bad_request
from pitelegram.sandbox.formatting import MAX_CAPTION, MAX_TEXT, message_text, rich_text
from pitelegram.sandbox.parameters import Parameters
from pitelegram.sandbox.records import Chat, Message
from pitelegram.sandbox.rich import rich_content
from pitelegram.sandbox.targets import chat_of, markup_of
from pitelegram.sandbox.world import World

NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same "
    "as a current content and reply markup of the message"
)
DELETABLE = 48 * 3600
REACTIONS = frozenset(
    "❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤\u200d🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 "
    "🍾 💋 🖕 😈 😴 😭 🤓 👻 👨\u200d💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 "
    "🤷\u200d♂ 🤷 🤷\u200d♀ 😡".split()
)


def _editable(world: World, parameters: Parameters) -> tuple[Chat, Message]:
    chat = chat_of(world, parameters)
    message = chat.messages.get(parameters.integer("message_id", 0))
    if message is None:
        raise bad_request("message to edit not found")
    other_keyboard = bool(message.markup) and not message.keyboard
    if message.service or message.sender["id"] != world.bot["id"] or other_keyboard:
        raise bad_request("message can't be edited")
    return chat, message


def _apply(
    world: World,
    chat: Chat,
    message: Message,
    content: dict[str, Any],
    markup: dict[str, Any] | None,
) -> dict[str, Any]:
    if content == message.content and (markup or None) == (message.markup or None):
        raise bad_request(NOT_MODIFIED)
    message.content, message.markup = content, markup
    world.changed(chat, message)
    return world.render(chat, message)


def edit_text(world: World, parameters: Parameters) -> dict[str, Any]:
    """C{editMessageText}; plain and rich text can replace each other."""
    parameters.ignore("link_preview_options", "disable_web_page_preview")
    content, length = _new_text(parameters)
    markup = markup_of(parameters)
    chat, message = _editable(world, parameters)
    if not _has_text(message):
        raise bad_request("there is no text in the message to edit")
    if length > MAX_TEXT:
        raise bad_request("MESSAGE_TOO_LONG")
    return _apply(world, chat, message, content, markup)


def _has_text(message: Message) -> bool:
    return "text" in message.content or "rich_message" in message.content


def _new_text(parameters: Parameters) -> tuple[dict[str, Any], int]:
    """Return the new content, and its characters as far as the limit of plain texts is for it."""
    if "rich_message" in parameters:
        if parameters.text("text"):
            raise bad_request("exactly one of text and rich_message is needed")
        return rich_content(parameters), 0
    rich = message_text(
        parameters.text("text"),
        parameters.text("parse_mode"),
        parameters.json("entities", list),
    )
    return rich.as_json(), len(rich.text)


def edit_caption(world: World, parameters: Parameters) -> dict[str, Any]:
    """C{editMessageCaption}."""
    parameters.ignore("show_caption_above_media")
    rich = rich_text(
        parameters.text("caption"),
        parameters.text("parse_mode"),
        parameters.json("caption_entities", list),
    )
    markup = markup_of(parameters)
    chat, message = _editable(world, parameters)
    if _has_text(message):
        raise bad_request("there is no caption in the message to edit")
    if len(rich.text) > MAX_CAPTION:
        raise bad_request("MEDIA_CAPTION_TOO_LONG")
    kept = {k: v for k, v in message.content.items() if not k.startswith("caption")}
    caption = rich.as_json("caption", "caption_entities") if rich.text else {}
    return _apply(world, chat, message, kept | caption, markup)


def edit_markup(world: World, parameters: Parameters) -> dict[str, Any]:
    """C{editMessageReplyMarkup}."""
    markup = markup_of(parameters)
    chat, message = _editable(world, parameters)
    return _apply(world, chat, message, message.content, markup)


def _check_deletable(world: World, message: Message) -> None:
    if "forum_topic_created" in message.content:
        raise bad_request("message can't be deleted")
    if world.now() - message.date > DELETABLE:
        raise bad_request("message can't be deleted for everyone")


def delete_message(world: World, parameters: Parameters) -> bool:
    """C{deleteMessage}."""
    chat = chat_of(world, parameters)
    message = chat.messages.get(parameters.integer("message_id", 0))
    if message is None:
        raise bad_request("message to delete not found")
    _check_deletable(world, message)
    world.remove(chat, [message.message_id])
    return True


def delete_messages(world: World, parameters: Parameters) -> bool:
    """C{deleteMessages}: unknown ones are skipped."""
    chat = chat_of(world, parameters)
    numbers = parameters.json("message_ids", list) or []
    if not numbers:
        raise bad_request("message identifiers are not specified")
    if len(numbers) > 100:
        raise bad_request("too many message identifiers specified")
    found = [chat.messages[n] for n in numbers if type(n) is int and n in chat.messages]
    for message in found:
        _check_deletable(world, message)
    world.remove(chat, [message.message_id for message in found])
    return True


def answer_callback(world: World, parameters: Parameters) -> bool:
    """C{answerCallbackQuery}."""
    parameters.ignore("cache_time")
    text = parameters.text("text")
    if len(text) > 200:
        raise bad_request("MESSAGE_TOO_LONG")
    answer = {
        "text": text,
        "show_alert": parameters.boolean("show_alert"),
        "url": parameters.text("url"),
    }
    press = world.presses.answer(parameters.text("callback_query_id"), answer)
    world.emit("answer", chat_id=press.chat_id, callback_id=press.callback_id, **answer)
    return True


def set_reaction(world: World, parameters: Parameters) -> bool:
    """C{setMessageReaction}."""
    parameters.ignore("is_big")
    reactions = parameters.json("reaction", list) or []
    for reaction in reactions:
        if not isinstance(reaction, dict) or reaction.get("type") not in ("emoji", "custom_emoji"):
            raise bad_request("can't parse ReactionType: unknown type")
        if reaction["type"] == "emoji" and reaction.get("emoji") not in REACTIONS:
            raise bad_request("REACTION_INVALID")
    if len(reactions) > 1:
        raise bad_request("REACTIONS_TOO_MANY")
    chat = chat_of(world, parameters)
    message = chat.messages.get(parameters.integer("message_id", 0))
    if message is None:
        raise bad_request("message to react not found")
    world.react(chat, message, world.bot, reactions)
    return True


def pin(world: World, parameters: Parameters) -> bool:
    """C{pinChatMessage}: leaves a service message."""
    parameters.ignore("disable_notification")
    chat = chat_of(world, parameters)
    message = chat.messages.get(parameters.integer("message_id", 0))
    if message is None:
        raise bad_request("message to pin not found")
    if message.service:
        raise bad_request("message can't be pinned")
    if message.message_id not in chat.pinned:
        chat.pinned.append(message.message_id)
        content = {"pinned_message": chat.render(message, world.topics_enabled, nested=False)}
        world.post(chat, world.bot, content, thread_id=message.thread_id, service=True)
    return True


def unpin(world: World, parameters: Parameters) -> bool:
    """C{unpinChatMessage}: without an id, the latest pin."""
    chat = chat_of(world, parameters)
    number = parameters.integer("message_id", None) or (chat.pinned[-1] if chat.pinned else 0)
    if number not in chat.pinned:
        raise bad_request("message to unpin not found")
    chat.pinned.remove(number)
    world.emit("unpin", chat_id=chat.chat_id, message_id=number)
    return True


def unpin_all(world: World, parameters: Parameters) -> bool:
    """C{unpinAllChatMessages}."""
    chat_of(world, parameters).pinned.clear()
    return True


METHODS = {
    "editMessageText": edit_text,
    "editMessageCaption": edit_caption,
    "editMessageReplyMarkup": edit_markup,
    "deleteMessage": delete_message,
    "deleteMessages": delete_messages,
    "answerCallbackQuery": answer_callback,
    "setMessageReaction": set_reaction,
    "pinChatMessage": pin,
    "unpinChatMessage": unpin,
    "unpinAllChatMessages": unpin_all,
}
