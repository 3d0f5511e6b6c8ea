"""Messages of kinds that need no file of their own: the owner sends whatever members he is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pitelegram.sandbox.chat import Attachment, SandboxChat
from pitelegram.sandbox.records import Message


def post(
    chat: SandboxChat,
    members: dict[str, Any],
    thread: int | None = None,
    reply_to: int | None = None,
    album: str | None = None,
) -> Message:
    """The owner sends a message with exactly these members beside the usual ones.

    For locations, contacts, polls, forwards (C{forward_origin}), and kinds that do not exist.
    """
    return chat.world.post(
        chat.chat,
        chat.owner,
        dict(members),
        thread_id=thread,
        reply_to=reply_to,
        album=album,
    )


def send_album(
    chat: SandboxChat,
    attachments: Sequence[Attachment],
    caption: str = "",
    thread: int | None = None,
    album: str = "album",
) -> list[Message]:
    """The owner sends files as one album; the caption is on the first."""
    return [
        chat.user_sends("" if index else caption, thread, attachment=each, album=album)
        for index, each in enumerate(attachments)
    ]
