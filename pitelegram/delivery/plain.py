"""The same content once more, as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pitelegram.delivery.text import pieces, rich_text, without_markup

Call = dict[str, Any]

_FIRST = ("reply_parameters",)
_LAST = ("reply_markup",)
_EVERY = ("disable_notification", "protect_content")


def plain_calls(call: Call) -> Sequence[Call]:
    """Return calls that show C{call}'s content without markup; none when it has none.

    A rich message becomes as many plain ones as its text needs; its media are left out.
    """
    method, params = call["method"], call["params"]
    if method == "sendRichMessage":
        return _messages(rich_text(params.get("rich_message")), params)
    if method == "sendMediaGroup":
        return _media_group(call)
    if method == "sendMessage":
        if not {"parse_mode", "entities"} & set(params):
            return []
        return _messages(
            without_markup(str(params.get("text", "")), params.get("parse_mode")), params
        )
    if not {"parse_mode", "caption_entities"} & set(params):
        return []
    return [{**call, "params": _captioned(params)}]


def bare_calls(call: Call) -> Sequence[Call]:
    """Return a call without its keyboard, in each of its forms; none when it has none."""
    return [_bare(call)] if "reply_markup" in call["params"] else []


def _bare(call: Call) -> Call:
    params = {name: value for name, value in call["params"].items() if name != "reply_markup"}
    bare = {**call, "params": params}
    if "otherwise" in call:
        bare["otherwise"] = [_bare(each) for each in call["otherwise"]]
    return bare


def _messages(text: str, params: dict[str, Any]) -> Sequence[Call]:
    parts = pieces(text)
    calls: list[Call] = []
    for number, part in enumerate(parts):
        names = (
            *_EVERY,
            *(_FIRST if number == 0 else ()),
            *(_LAST if number == len(parts) - 1 else ()),
        )
        kept = {name: params[name] for name in names if name in params}
        preview = {
            "link_preview_options": params.get("link_preview_options", {"is_disabled": True})
        }
        calls.append({"method": "sendMessage", "params": {"text": part, **preview, **kept}})
    return calls


def _media_group(call: Call) -> Sequence[Call]:
    media = call["params"].get("media")
    if not isinstance(media, list) or not all(isinstance(item, dict) for item in media):
        return []
    plain = [_captioned(item) for item in media]
    return [] if plain == media else [{**call, "params": {**call["params"], "media": plain}}]


def _captioned(params: dict[str, Any]) -> dict[str, Any]:
    dropped = ("parse_mode", "caption_entities")
    plain = {name: value for name, value in params.items() if name not in dropped}
    if isinstance(plain.get("caption"), str):
        plain["caption"] = without_markup(plain["caption"], params.get("parse_mode"))
    return plain
