"""What a forwarded update asks of a worker, as plain records."""

from __future__ import annotations

import re
from typing import Any

import attrs

from pitelegram.bridge.content import read_content
from pitelegram.bridge.questions import key_of_markup

_COMMAND = re.compile(r"\A/([A-Za-z][A-Za-z0-9_]*)(?:@[A-Za-z0-9_]+)?(?:\s+|\Z)(.*)\Z", re.DOTALL)

_VARIATION = re.compile("[\ufe0e\ufe0f]")

SERVICE = frozenset(
    """forum_topic_created forum_topic_edited forum_topic_closed forum_topic_reopened
    general_forum_topic_hidden general_forum_topic_unhidden pinned_message
    message_auto_delete_timer_changed chat_background_set write_access_allowed successful_payment
    refunded_payment connected_website users_shared chat_shared web_app_data passport_data
    boost_added gift unique_gift gift_upgrade_sent new_chat_members left_chat_member new_chat_title
    new_chat_photo delete_chat_photo group_chat_created supergroup_chat_created
    channel_chat_created migrate_to_chat_id migrate_from_chat_id proximity_alert_triggered
    giveaway_created giveaway_completed video_chat_scheduled video_chat_started video_chat_ended
    video_chat_participants_invited paid_message_price_changed direct_message_price_changed
    checklist_tasks_done checklist_tasks_added suggested_post_approved
    suggested_post_approval_failed suggested_post_declined suggested_post_paid
    suggested_post_refunded""".split()
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
    """A message for Pi; L{pitelegram.bridge.content} reads all of it.

    @ivar text: its text or caption, as it was typed.
    @ivar plain: whether it is nothing but text.
    """

    text: str
    plain: bool = True


@attrs.frozen
class Command:
    """C{/name argument}."""

    name: str
    argument: str = ""


@attrs.frozen
class Edit:
    """A message was changed; C{content} is what it says now."""

    content: Prompt | Command | Nothing


@attrs.frozen
class Press:
    """A button was pressed.  C{data} may be forged: it need not be on the message at all.

    @ivar offered: whether a message of the bot has a button with that data.
    """

    callback_id: str
    data: str
    offered: bool = False


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


Asked = Prompt | Command | Edit | Press | Reaction | Nothing
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
        found: Any = body.get("message")
        message: dict[str, Any] = found if isinstance(found, dict) else {}
        data = str(body.get("data") or "")
        return Press(str(body.get("id") or ""), data, _offers(message, data)), _origin(message)
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


def _offers(message: dict[str, Any], data: str) -> bool:
    """Whether a message of the bot has a button with that data."""
    sender, markup = message.get("from"), message.get("reply_markup")
    if not (isinstance(sender, dict) and sender.get("is_bot") is True and isinstance(markup, dict)):
        return False
    rows = markup.get("inline_keyboard")
    lines = [row for row in (rows if isinstance(rows, list) else []) if isinstance(row, list)]
    buttons = [button for row in lines for button in row if isinstance(button, dict)]
    return any(button.get("callback_data") == data for button in buttons)


def _content(message: dict[str, Any]) -> Prompt | Command | Nothing:
    content = read_content(message)
    # What somebody else said is never a command, whoever forwards it.
    if content.forward is None and isinstance(message.get("text"), str):
        match = _COMMAND.match(content.typed)
        if match:
            return Command(match[1].lower(), match[2].strip())
    if not content.text.strip() and not content.files and any(key in message for key in SERVICE):
        return Nothing()
    plain = bool(content.text.strip()) and not (content.files or content.notes)
    return Prompt(content.typed, plain)


def _integer(value: Any) -> int | None:
    """Return an integer that fits into a row."""
    return value if type(value) is int and -(1 << 63) <= value < 1 << 63 else None
