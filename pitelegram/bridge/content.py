"""What one message says and carries, as records that a prompt is made of."""

from __future__ import annotations

import re
from typing import Any

import attrs

from pitelegram.bridge.entities import with_links
from pitelegram.bridge.filerefs import FileRef, files_of
from pitelegram.bridge.kinds import notes_of, person
from pitelegram.bridge.marking import guard, plain, seen_as, shorten
from pitelegram.bridge.richplain import rich_text

Message = dict[str, Any]

REPLY_LENGTH = 1000
BOT = "bot"
"""How what this bot said is attributed; nobody else can be called so."""

_MEDIA = {
    "photo": "photo",
    "animation": "animation",
    "document": "file",
    "video": "video",
    "video_note": "video message",
    "voice": "voice message",
    "audio": "audio file",
    "sticker": "sticker",
    "contact": "contact",
    "venue": "venue",
    "location": "location",
    "poll": "poll",
    "dice": "dice",
    "game": "game",
    "story": "story",
    "checklist": "checklist",
    "paid_media": "paid media",
    "invoice": "invoice",
    "giveaway": "giveaway",
}
_ENVELOPE = frozenset(
    """message_id message_thread_id direct_messages_topic from sender_chat sender_boost_count
    sender_business_bot sender_tag date guest_query_id business_connection_id chat forward_origin
    forward_from forward_from_chat forward_sender_name forward_date forward_signature
    forward_from_message_id is_topic_message is_automatic_forward reply_to_message external_reply
    quote reply_to_story reply_to_checklist_task_id via_bot edit_date has_protected_content
    is_from_offline is_paid_post media_group_id author_signature paid_star_count text entities
    link_preview_options suggested_post_info effect_id caption caption_entities rich_message
    show_caption_above_media has_media_spoiler reply_markup""".split()
)
_KEY = re.compile(r"\A[a-z][a-z0-9_]{0,39}\Z")
_NAMED_KEYS = 3


@attrs.frozen(kw_only=True)
class Reply:
    """What a message answers.

    @ivar source: who said it, plain.
    @ivar text: guarded and bounded; what it carried stands in parentheses before it.
    """

    source: str
    text: str


@attrs.frozen(kw_only=True)
class Content:
    """Everything of one message that a prompt tells.

    @ivar typed: the text or caption exactly as it was sent.
    @ivar text: the same with what its entities hide; not guarded.
    @ivar notes: one entry for each thing that is neither text nor file; guarded.
    @ivar forward: who said it first, plain; None for the operator's own words.
    @ivar album: what the messages of one album have in common.
    """

    message_id: int = 0
    typed: str = ""
    text: str = ""
    notes: tuple[str, ...] = ()
    files: tuple[FileRef, ...] = ()
    forward: str | None = None
    reply: Reply | None = None
    album: str | None = None

    @property
    def only_text(self) -> bool:
        """Whether it is nothing but words of the operator."""
        return bool(self.text) and not (self.notes or self.files or self.forward or self.album)


def read_content(message: Message) -> Content:
    """Return what a message carries; whatever is in it, nothing is raised and nothing dropped."""
    typed, text = _words(message)
    files, notes = files_of(message), notes_of(message)
    if not text.strip() and not files and not notes:
        notes = [_unknown(message)]
    album = message.get("media_group_id")
    number = message.get("message_id")
    return Content(
        message_id=number if type(number) is int else 0,
        typed=typed,
        text=text,
        notes=tuple(notes),
        files=tuple(files),
        forward=forward_source(message),
        reply=_reply(message),
        album=album if isinstance(album, str) and album else None,
    )


def _words(message: Message) -> tuple[str, str]:
    """Return the text as typed, and with what its entities hide."""
    for name, entities in (("text", "entities"), ("caption", "caption_entities")):
        text = message.get(name)
        if isinstance(text, str) and text.strip():
            return text, with_links(text, message.get(entities))
    text = rich_text(message.get("rich_message"))
    return text, text


def _unknown(message: Message) -> str:
    """Name content that was invented after this was written."""
    keys = [key for key in message if key not in _ENVELOPE and _KEY.match(key)]
    # A member without anything in it is no content.
    named = [key.replace("_", " ") for key in sorted(keys) if message[key] not in (None, False)]
    if not named:
        return "[message] without anything that can be read"
    return f"[message] of an unknown kind: {', '.join(named[:_NAMED_KEYS])}"


# --- where it comes from -----------------------------------------------------------------------


def forward_source(message: Message) -> str | None:
    """Return who said a forwarded message first; None when it is not forwarded."""
    origin = message.get("forward_origin")
    if isinstance(origin, dict):
        return _source(origin)
    for name in ("forward_from", "forward_from_chat"):
        if isinstance(message.get(name), dict):
            return _not_the_bot(person(message[name]))
    if "forward_sender_name" in message:
        return _not_the_bot(plain(message["forward_sender_name"]))
    return "unknown" if origin is not None or "forward_date" in message else None


def _source(origin: Message) -> str:
    """Return the name in a C{MessageOrigin} of any type."""
    if "sender_user_name" in origin:
        return _not_the_bot(plain(origin["sender_user_name"]))
    for name in ("sender_user", "sender_chat", "chat"):
        if isinstance(origin.get(name), dict):
            signed = plain(origin.get("author_signature"), "")
            whole = person(origin[name])
            return _not_the_bot(f"{whole} ({signed})" if signed else whole)
    return "unknown"


def _not_the_bot(name: str) -> str:
    """Return a name that cannot be taken for the bot."""
    return f"“{name}”" if seen_as(name).strip() == BOT else name


def _reply(message: Message) -> Reply | None:
    quote = message.get("quote")
    quoted = quote.get("text") if isinstance(quote, dict) else None
    quoted = quoted if isinstance(quoted, str) and quoted.strip() else None
    external, replied = message.get("external_reply"), message.get("reply_to_message")
    if isinstance(external, dict):
        origin = external.get("origin")
        source = _source(origin) if isinstance(origin, dict) else "unknown"
        return _said(source, external, quoted)
    if isinstance(message.get("reply_to_story"), dict):
        story = message["reply_to_story"]
        return Reply(source=_not_the_bot(person(story.get("chat"))), text="(story)")
    if not isinstance(replied, dict) or any(str(k).startswith("forum_topic_") for k in replied):
        return None  # The first message of a Thread is replied to by everything in it.
    return _said(_speaker(replied), replied, quoted)


def _speaker(message: Message) -> str:
    forwarded = forward_source(message)
    if forwarded is not None:
        return forwarded
    sender = message.get("from")
    if isinstance(sender, dict) and sender.get("is_bot") is True:
        return BOT
    return _not_the_bot(person(sender if isinstance(sender, dict) else message.get("sender_chat")))


def _said(source: str, message: Message, quoted: str | None) -> Reply | None:
    rich = rich_text(message.get("rich_message"))
    text = quoted or rich or _words(message)[1]
    media = [words for key, words in _MEDIA.items() if message.get(key)]
    if "animation" in media and "file" in media:
        media.remove("file")
    if "venue" in media and "location" in media:
        media.remove("location")
    document = message.get("document")
    if "file" in media and isinstance(document, dict) and document.get("file_name"):
        media[media.index("file")] = f"file {plain(document['file_name'], '')}".strip()
    words = shorten(guard(text.strip()), REPLY_LENGTH)
    described = " ".join(each for each in (f"({', '.join(media)})" if media else "", words) if each)
    if not described and source == "unknown":
        return None
    return Reply(source=source, text=described or "(message)")
