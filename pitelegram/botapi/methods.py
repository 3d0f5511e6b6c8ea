"""Facts about Bot API methods: which may be repeated, and how long and how big an answer may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pitelegram.botapi.interfaces import Upload

REPEATABLE = frozenset(
    {
        "answerCallbackQuery",
        "closeForumTopic",
        "deleteForumTopic",
        "deleteMessage",
        "deleteMessages",
        "deleteWebhook",
        "editForumTopic",
        "editMessageCaption",
        "editMessageMedia",
        "editMessageReplyMarkup",
        "editMessageText",
        "getChat",
        "getFile",
        "getForumTopicIconStickers",
        "getMe",
        "getMyCommands",
        "getUpdates",
        "getWebhookInfo",
        "reopenForumTopic",
        "sendChatAction",
        "sendMessageDraft",
        "sendRichMessageDraft",
        "setChatMenuButton",
        "setMessageReaction",
        "setMyCommands",
        "unpinChatMessage",
    }
)
"""Methods whose second call does no more than the first."""

BODY_LIMIT = 8 * 1024 * 1024
"""Bytes of an answer that are read; twice the largest batch a server gives."""

CALL_TIMEOUT = 30.0
UPLOAD_TIMEOUT = 60.0
UPLOAD_RATE = 100_000
POLL_MARGIN = 15.0


def deadline_for(method: str, params: dict[str, Any], files: Sequence[Upload]) -> float:
    """Return the seconds that headers and body of an answer may take together."""
    if method == "getUpdates":
        return float(params.get("timeout", 0)) + POLL_MARGIN
    if files:
        size = sum(_size(upload) for upload in files)
        return UPLOAD_TIMEOUT + size / UPLOAD_RATE
    return CALL_TIMEOUT


def _size(upload: Upload) -> int:
    try:
        return upload.path.stat().st_size
    except OSError:
        return 0
