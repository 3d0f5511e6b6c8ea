"""Texts as Bot API calls, packed into deliveries for the leader's outbox."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pitelegram.bridge.cutting import pieces
from pitelegram.kernel.alarms import is_alarm
from pitelegram.kernel.jsonio import dumps

MAX_CALLS = 64
"""Most calls of one delivery (wire contract)."""

MAX_BYTES = 4 * 1024 * 1024
"""Of one delivery as JSON; a leader takes twice as much."""

_NOT_IN_AN_ID = re.compile(r"[^A-Za-z0-9._-]")


def text_calls(text: str) -> list[dict[str, Any]]:
    """Return the C{sendMessage} calls that show C{text}, whole and in order."""
    return [_send(piece) for piece in pieces(text)]


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

    More than L{MAX_CALLS} calls, or L{MAX_BYTES}, become several deliveries; the second has C{.2}
    behind its id.

    @param kind: C{final} or C{notice}.
    """
    base = _NOT_IN_AN_ID.sub("_", delivery_id)[:120]
    return [
        {
            "delivery_id": base if number == 1 else f"{base}.{number}",
            "kind": kind,
            "delivery": {"kind": kind, "createdAtMs": created_ms, "calls": packed},
        }
        for number, packed in enumerate(_packed(calls), 1)
    ]


def _packed(calls: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the calls in portions that a leader takes."""
    portions: list[list[dict[str, Any]]] = []
    size = 0
    for call in calls:
        weight = len(dumps(call))
        if not portions or len(portions[-1]) == MAX_CALLS or size + weight > MAX_BYTES:
            portions.append([])
            size = 0
        portions[-1].append(call)
        size += weight
    return portions


def notice(delivery_id: str, text: str, created_ms: int) -> list[dict[str, Any]]:
    """Return the deliveries of a short message of the worker itself, silent unless it is an alarm."""
    calls = text_calls(text)
    if not is_alarm(text):
        for call in calls:
            call["params"]["disable_notification"] = True
    return deliveries(delivery_id, "notice", calls, created_ms)


def _send(text: str) -> dict[str, Any]:
    return {
        "method": "sendMessage",
        "params": {"text": text, "link_preview_options": {"is_disabled": True}},
    }
