"""Parts as calls of the Bot API."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pitelegram.bridge.rendering.records import Call, Span
from pitelegram.bridge.rendering.splitting import Measure, Part, split

_VISIBLE = re.compile(r"[^\s\x00-\x1f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
                      r"\u200b-\u200f\u2028-\u202f\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff"
                      r"\uffa0\U000e0000-\U000e0fff]")  # fmt: skip


def visible(text: str) -> bool:
    """Whether there is anything to see; Telegram refuses a message without."""
    return _VISIBLE.search(text) is not None


def entity_calls(parts: Sequence[Part]) -> list[Call]:
    """Return a C{sendMessage} with entities for each part that shows anything."""
    return [_send(part) for part in parts if visible(part.text)]


def plain_calls(text: str, spans: Sequence[Span]) -> list[Call]:
    """Return the same as C{sendMessage} without entities; hidden addresses stand in the text."""
    pieces, at = [], 0
    for span in spans:
        shown = text[span.start : span.end]
        if span.kind == "text_link" and span.extra not in (shown, f"mailto:{shown}"):
            pieces += [text[at : span.end], f" ({span.extra})"]
            at = span.end
    pieces.append(text[at:])
    return entity_calls(split("".join(pieces), ()))


def rich_call(markdown: str) -> Call:
    """Return a C{sendRichMessage} with Markdown source."""
    message = {"markdown": markdown, "skip_entity_detection": True}
    return {"method": "sendRichMessage", "params": {"rich_message": message}}


def _send(part: Part) -> Call:
    params: dict[str, Any] = {
        "text": _kept(part.text),
        "link_preview_options": {"is_disabled": True},
    }
    if part.spans:
        params["entities"] = entities(part)
    return {"method": "sendMessage", "params": params}


def _kept(text: str) -> str:
    """Return the text with blanks at its beginning that Telegram does not trim."""
    bare = text.lstrip(" \t")
    return text if len(bare) == len(text) else "\u00a0" * (len(text) - len(bare)) + bare


def entities(part: Part) -> list[dict[str, Any]]:
    """Return a part's spans as C{MessageEntity} objects: offsets in UTF-16 units."""
    measure = Measure(part.text)
    result = []
    for start, end, kind, extra in part.spans:
        entity: dict[str, Any] = {
            "type": kind,
            "offset": measure.units(0, start),
            "length": measure.units(start, end),
        }
        if extra:
            entity["url" if kind == "text_link" else "language"] = extra
        result.append(entity)
    return result
