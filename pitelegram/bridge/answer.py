"""Texts as Bot API calls, packed into deliveries for the leader's outbox."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pitelegram.bridge.buttons import keyboard
from pitelegram.bridge.comments import HEADING, finished, read
from pitelegram.bridge.cutting import clean, pieces
from pitelegram.bridge.rendering.messages import visible
from pitelegram.store.rows import ButtonRow

MAX_CALLS = 64
"""Most calls of one delivery (wire contract)."""

_NOT_IN_AN_ID = re.compile(r"[^A-Za-z0-9._-]")


def text_calls(text: str) -> list[dict[str, Any]]:
    """Return the C{sendMessage} calls that show C{text}, whole and in order."""
    return [_send(piece) for piece in pieces(text)]


def answer_calls(
    text: str, mint: Callable[[], str], otherwise: str = "", footer: str | None = None
) -> tuple[list[dict[str, Any]], list[ButtonRow]]:
    """Return the calls that show what Pi said, and its buttons, which stand below the last of them.

    What is only to be spoken is shown.

    @param text: with its hidden comments.
    @param mint: as for L{keyboard}.
    @param otherwise: what is shown where nothing else is.
    @param footer: the line below it.
    """
    answer = read(text)
    spoken = "\n\n".join(speech.text for speech in answer.speeches)
    wanted = (answer.markdown, spoken, HEADING if answer.buttons else otherwise)
    shown = next((text for text in wanted if visible(clean(text))), "")
    calls = text_calls(f"{finished(shown)}\n\n{footer}" if footer else shown)
    if not answer.buttons:
        return calls, []
    markup, buttons = keyboard(answer.buttons, mint)
    calls[-1]["params"]["reply_markup"] = markup
    return calls, buttons


def button_call(text: str, label: str, data: str) -> dict[str, Any]:
    """Return a message of one piece with one button below it.

    @param data: callback data, at most 64 bytes.
    """
    call = _send(text)
    call["params"]["reply_markup"] = {"inline_keyboard": [[{"text": label, "callback_data": data}]]}
    return call


def deliveries(
    delivery_id: str, kind: str, calls: Sequence[dict[str, Any]], created_ms: int
) -> list[dict[str, Any]]:
    """Return C{{"delivery_id","kind","delivery"}} for the store, in order.

    More than L{MAX_CALLS} calls become several deliveries; the second has C{.2} behind its id.

    @param kind: C{final} or C{notice}.
    """
    base = _NOT_IN_AN_ID.sub("_", delivery_id)[:120]
    return [
        {
            "delivery_id": base if start == 0 else f"{base}.{start // MAX_CALLS + 1}",
            "kind": kind,
            "delivery": {
                "kind": kind,
                "createdAtMs": created_ms,
                "calls": list(calls[start : start + MAX_CALLS]),
            },
        }
        for start in range(0, len(calls), MAX_CALLS)
    ]


def notice(delivery_id: str, text: str, created_ms: int) -> list[dict[str, Any]]:
    """Return the deliveries of a short message of the worker itself."""
    return deliveries(delivery_id, "notice", text_calls(text), created_ms)


def _send(text: str) -> dict[str, Any]:
    return {
        "method": "sendMessage",
        "params": {"text": text, "link_preview_options": {"is_disabled": True}},
    }
