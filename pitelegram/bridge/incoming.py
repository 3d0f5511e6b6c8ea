"""What a forwarded update asks of a worker, as plain records."""

from __future__ import annotations

import re
from typing import Any

import attrs

from pitelegram.bridge.questions import key_of_markup

_COMMAND = re.compile(r"\A/([A-Za-z][A-Za-z0-9_]*)(?:@[A-Za-z0-9_]+)?(?:\s+|\Z)(.*)\Z", re.DOTALL)

_VARIATION = re.compile("[\ufe0e\ufe0f]")

ATTACHMENTS = {
    "photo": "photo",
    "animation": "animation",
    "document": "document",
    "video": "video",
    "video_note": "video message",
    "voice": "voice message",
    "audio": "audio file",
    "sticker": "sticker",
    "contact": "contact",
    "location": "location",
    "venue": "venue",
    "poll": "poll",
    "dice": "dice",
    "game": "game",
    "story": "story",
    "checklist": "checklist",
    "paid_media": "paid media",
    "invoice": "invoice",
}
"""What a message can carry beside text, in words."""

SERVICE = frozenset(
    {
        "forum_topic_created",
        "forum_topic_edited",
        "forum_topic_closed",
        "forum_topic_reopened",
        "general_forum_topic_hidden",
        "general_forum_topic_unhidden",
        "pinned_message",
        "message_auto_delete_timer_changed",
        "chat_background_set",
        "write_access_allowed",
        "successful_payment",
        "refunded_payment",
        "connected_website",
        "users_shared",
        "chat_shared",
        "web_app_data",
        "passport_data",
        "boost_added",
        "gift",
        "unique_gift",
    }
)
"""Messages that Telegram wrote about an action: nobody said anything."""


@attrs.frozen(kw_only=True)
class Origin:
    """Where an update came from, as far as it says so.

    @ivar reply_to: the message that it is a reply to.
    @ivar reply_key: the key of the dialog whose buttons that message has.
    """

    chat_id: int | None = None
    thread_id: int | None = None
    message_id: int | None = None
    reply_to: int | None = None
    reply_key: str | None = None


@attrs.frozen
class Prompt:
    """Text for Pi.

    @ivar missing: what else the message carried, in words; None for plain text.
    """

    text: str
    missing: str | None = None


@attrs.frozen
class Command:
    """C{/name argument}."""

    name: str
    argument: str = ""


@attrs.frozen
class Unsupported:
    """A message without any text.

    @ivar what: its content, in words.
    """

    what: str


@attrs.frozen
class Edit:
    """A message was changed; C{content} is what it says now."""

    content: Prompt | Command | Unsupported | Nothing


@attrs.frozen
class Press:
    """A button was pressed.  C{data} may be forged: it need not be on the message at all."""

    callback_id: str
    data: str


@attrs.frozen
class Reaction:
    """The reactions of the operator on a message became others.

    Only emoji count, without their variation selectors; custom and paid ones are left out.

    @ivar old: before.
    @ivar new: now.
    """

    old: frozenset[str] = frozenset()
    new: frozenset[str] = frozenset()


@attrs.frozen
class Nothing:
    """Nothing to do for a worker."""


Asked = Prompt | Command | Unsupported | Edit | Press | Reaction | Nothing
"""Everything that an update can ask."""


def read_update(kind: str, update: dict[str, Any]) -> tuple[Asked, Origin]:
    """Return what an update asks, and where it came from.

    @param kind: C{message}, C{edited_message}, C{callback_query} or C{message_reaction}.
    @raise ValueError: the update does not hold what its kind promises.
    """
    body = update.get(kind)
    if not isinstance(body, dict):
        raise ValueError(f"an update of kind {kind} without its {kind}")
    if kind == "callback_query":
        message = body.get("message")
        press = Press(str(body.get("id") or ""), str(body.get("data") or ""))
        return press, _origin(message if isinstance(message, dict) else {})
    if kind == "message":
        return _content(body), _origin(body)
    if kind == "edited_message":
        return Edit(_content(body)), _origin(body)
    if kind == "message_reaction":
        reaction = Reaction(_emoji(body.get("old_reaction")), _emoji(body.get("new_reaction")))
        return reaction, _origin(body)
    return Nothing(), _origin(body)


def _emoji(reactions: Any) -> frozenset[str]:
    """Return the emoji of a list of C{ReactionType}."""
    found = [
        each.get("emoji")
        for each in (reactions if isinstance(reactions, list) else ())
        if isinstance(each, dict) and each.get("type") == "emoji"
    ]
    return frozenset(_VARIATION.sub("", one) for one in found if isinstance(one, str) and one)


def _origin(message: dict[str, Any]) -> Origin:
    chat = message.get("chat")
    replied: Any = message.get("reply_to_message")
    replied = replied if isinstance(replied, dict) else {}
    return Origin(
        chat_id=_integer(chat.get("id")) if isinstance(chat, dict) else None,
        thread_id=_integer(message.get("message_thread_id")),
        message_id=_integer(message.get("message_id")),
        reply_to=_integer(replied.get("message_id")),
        reply_key=key_of_markup(replied.get("reply_markup")),
    )


def _content(message: dict[str, Any]) -> Prompt | Command | Unsupported | Nothing:
    text = message.get("text")
    if isinstance(text, str) and text.strip():
        match = _COMMAND.match(text)
        return Command(match[1].lower(), match[2].strip()) if match else Prompt(text)
    carried = [words for key, words in ATTACHMENTS.items() if message.get(key)]
    if "animation" in carried and "document" in carried:
        carried.remove("document")
    if "venue" in carried and "location" in carried:
        carried.remove("location")
    what = ", ".join(carried)
    caption = message.get("caption")
    if isinstance(caption, str) and caption.strip():
        return Prompt(caption, what or "attachment")
    if not what and any(key in message for key in SERVICE):
        return Nothing()
    return Unsupported(what or "message of this kind")


def _integer(value: Any) -> int | None:
    return value if type(value) is int else None
