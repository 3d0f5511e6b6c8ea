"""What one hidden comment asks: buttons, or something to be spoken, in any of their forms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from pitelegram.bridge.cutting import clean, utf16_length
from pitelegram.bridge.matrix import BLANKS, Cell, Malformed, read_matrix, read_object
from pitelegram.bridge.outgoing import Button, Speech
from pitelegram.bridge.rendering.messages import visible
from pitelegram.bridge.rendering.source import safe

STYLES = ("primary", "success", "danger")
VOICE = "telegram_voice"

MAX_COMMENT = 256 * 1024
"""Characters of one comment; a longer one is malformed."""
MAX_PROMPT = 16_384
"""UTF-16 units of a button's prompt: four of the longest messages that an operator can write."""
MAX_HINT = 64
"""Characters of a language or a rate."""

_WORD = re.compile(r"\s*!?(telegram_voice|telegram_buttons?)(:|(?=\s)|\Z)")
_PAIR = r'([A-Za-z_][A-Za-z0-9_-]*)="([^"\n]*)"'
_ATTRIBUTES = re.compile(rf"\s*(?:{_PAIR}(?:\s+|\Z))*\Z")
_POSITIONS = ("label", "prompt", "selected_style")

Rows = tuple[tuple[Button, ...], ...]


@attrs.frozen(kw_only=True)
class Action:
    """What a comment asks for; nothing where it is malformed, or none of ours."""

    rows: Rows = ()
    speech: Speech | None = None


def read_action(comment: str) -> Action:
    """Return what a comment asks.

    @param comment: what stands between its marks.
    """
    word = _WORD.match(comment)
    if word is None or len(comment) > MAX_COMMENT:
        return Action()
    rest = comment[word.end() :]
    try:
        if word[1] == VOICE:
            return Action(speech=_speech(_voice_fields(rest, bool(word[2]))))
        return Action(rows=_rows(rest, bool(word[2])))
    except Malformed:
        return Action()


def _rows(rest: str, colon: bool) -> Rows:
    payload = rest.strip(BLANKS)
    if payload[:1] in ("{", "["):
        return tuple(tuple(_button(_named(c)) for c in row) for row in read_matrix(payload))
    if not colon:
        return ((_button(_fields(rest, "prompt")),),)
    if "\n" in payload:
        raise Malformed("what its label is cannot be told")
    return ((_button({"value": payload}),),)


def _voice_fields(rest: str, colon: bool) -> Mapping[str, Any]:
    payload = rest.strip(BLANKS)
    if payload[:1] == "{":
        return read_object(payload)
    return {"text": payload} if colon else _fields(rest, "text")


def _fields(rest: str, body_name: str) -> dict[str, str]:
    """Return attributes of one line, and the lines below it under a name."""
    payload = rest.strip(BLANKS)
    if payload and "\n" not in payload:
        alone = _attributes(payload)
        if alone is not None:
            return alone
    head, _, body = rest.partition("\n")
    fields = _attributes(head)
    if fields is None or body_name in fields or "value" in fields:
        raise Malformed("no attributes, or the same thing twice")
    return {**fields, body_name: body.strip(BLANKS)}


def _attributes(line: str) -> dict[str, str] | None:
    """Return C{name="value"} pairs, None when a line holds anything else."""
    if _ATTRIBUTES.match(line) is None:
        return None
    pairs = re.findall(_PAIR, line)
    if len({name for name, _ in pairs}) < len(pairs):
        raise Malformed("an attribute stands there twice")
    return dict(pairs)


def _named(cell: Cell) -> Mapping[str, Any]:
    if isinstance(cell, dict):
        return cell
    return {"value": cell[0]} if len(cell) == 1 else dict(zip(_POSITIONS, cell, strict=False))


def _button(fields: Mapping[str, Any]) -> Button:
    value = fields.get("value")
    label = safe(_text(fields.get("label", value)))
    prompt = _text(fields.get("prompt", value))
    style = fields.get("selected_style")
    if not visible(label) or utf16_length(prompt) > MAX_PROMPT:
        raise Malformed("a label of nothing, or a prompt that is too long")
    if "selected_style" in fields and style not in STYLES:
        raise Malformed("no such style")
    return Button(label=" ".join(label.split()), prompt=prompt, style=style)


def _speech(fields: Mapping[str, Any]) -> Speech:
    text = _text(fields.get("text", fields.get("value")))
    return Speech(text=text, lang=_hint(fields.get("lang")), rate=_hint(fields.get("rate")))


def _text(value: Any) -> str:
    """Return what may be shown or sent of a text."""
    text = clean(value).strip(BLANKS) if isinstance(value, str) else ""
    if not visible(text):
        raise Malformed("no text, or an empty one")
    return text


def _hint(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > MAX_HINT or not value.isprintable():
        raise Malformed("no language, or no rate")
    return value.strip() or None
