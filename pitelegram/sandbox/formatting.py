"""From the parameters of a send to a text with entities, with the limits of the Bot API."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pitelegram.sandbox.errors import bad_request
from pitelegram.sandbox.htmltext import MarkupError, parse_html
from pitelegram.sandbox.markdowntext import parse_markdown, parse_markdown_v2
from pitelegram.sandbox.richtext import RichText, trimmed, utf16_length, with_automatic_entities

MAX_TEXT = 4096
"""Characters of a message after parsing: code points, as the service counts for bots."""

MAX_CAPTION = 1024
MAX_RAW_BYTES = 32768

_PARSERS = {
    "html": parse_html,
    "markdownv2": parse_markdown_v2,
    "markdown": parse_markdown,
}
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")


def rich_text(text: str, mode: str, entities: Sequence[Any] | None) -> RichText:
    """Clean, parse and trim C{text}; it may come out empty.

    @raise pitelegram.sandbox.errors.ApiError: 400 for what cannot be parsed.
    """
    if len(text.encode("utf-8", "replace")) > MAX_RAW_BYTES:
        raise bad_request("text is too long")
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = _CONTROL.sub(" ", text.replace("\r", ""))
    if entities and not mode:
        return with_automatic_entities(trimmed(RichText(text, _checked(entities, text))))
    if not mode:
        return with_automatic_entities(trimmed(RichText(text)))
    parser = _PARSERS.get(mode.lower())
    if parser is None:
        raise bad_request("unsupported parse_mode")
    try:
        parsed = parser(text)
    except MarkupError as error:
        raise bad_request(f"can't parse entities: {error}")
    return with_automatic_entities(trimmed(parsed))


def message_text(text: str, mode: str, entities: Sequence[Any] | None) -> RichText:
    """Like L{rich_text}, for a message, which cannot be empty."""
    if not text:
        raise bad_request("message text is empty")
    rich = rich_text(text, mode, entities)
    if not rich.text:
        raise bad_request("text must be non-empty")
    return rich


def _checked(entities: Sequence[Any], text: str) -> tuple[dict[str, Any], ...]:
    end = utf16_length(text)
    result = []
    for entity in entities:
        if not isinstance(entity, dict) or not isinstance(entity.get("type"), str):
            raise bad_request("can't parse MessageEntity: Can't find field \"type\"")
        offset, length = entity.get("offset"), entity.get("length")
        if type(offset) is not int or type(length) is not int:
            raise bad_request('can\'t parse MessageEntity: Field "offset" must be a number')
        if 0 <= offset < end and length > 0:
            result.append({**entity, "length": min(length, end - offset)})
    return tuple(sorted(result, key=lambda e: (e["offset"], -e["length"])))
