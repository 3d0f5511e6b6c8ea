"""What a call must fulfil, and what counts as the same text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from pitelegram.bridge.rendering.links import live_url
from pitelegram.bridge.rendering.parsing import parse
from pitelegram.bridge.rendering.records import Call
from pitelegram.sandbox.formatting import message_text
from pitelegram.testing.spec import check_call

_OURS = "•◦▪☐🖼│─┼»–✂"
_AUTOMATIC = ("url", "mention", "bot_command", "hashtag")
_ENTITY = {"type", "offset", "length", "url", "language"}
_CODE = ("code", "pre")
_QUOTES = ("blockquote", "expandable_blockquote")
_BLOCKS = "Paragraph Heading BlockQuote CodeBlock HtmlBlock List Item Table TableHead TableRow"


def letters(text: str) -> str:
    """Return what must come back, in order: letters, digits, accents and pictures.

    Left out are marks of punctuation and blanks, C{<br>}, and the signs rendering puts itself; a
    ticked box counts as the C{x} it is written with.
    """
    text = re.sub(r"<br\s*/?>", "", text.replace("☑", "x"), flags=re.I)
    return "".join(
        character
        for character in unicodedata.normalize("NFC", text.casefold())
        if unicodedata.category(character)[0] in "LNM" or unicodedata.category(character) == "So"
        if character not in _OURS and character != "\ufffd"
    )


def words(text: str) -> set[str]:
    """Return the words of a text."""
    return set(re.findall(r"\w+", text.casefold()))


def shown(calls: Iterable[Call], spoken: str = "") -> str:
    """Return the text of C{sendMessage} calls, with languages and addresses where they stood.

    @param spoken: the source; the language C{math} is put in only where it is written there.
    """
    texts, going_on = [], ""
    for call in calls:
        params = call["params"]
        texts.append(_shown(params, spoken, going_on))
        end = len(params["text"].encode("utf-16-le")) // 2
        last = [e for e in params.get("entities", ()) if e["offset"] + e["length"] == end]
        going_on = last[-1].get("language", "") if last else ""
    return "\n".join(texts)


def _shown(params: dict[str, Any], source: str, going_on: str) -> str:
    units = params["text"].encode("utf-16-le")
    inserts = []
    for entity in params.get("entities", ()):
        start, end = 2 * entity["offset"], 2 * (entity["offset"] + entity["length"])
        covered = units[start:end].decode("utf-16-le")
        if entity["type"] == "text_link" and entity["url"] not in (covered, f"mailto:{covered}"):
            inserts.append((end, f" {entity['url']} "))
        again = start == 0 and entity.get("language") == going_on
        mathematics = entity.get("language") == "math" and "math" not in source
        if "language" in entity and not again and not mathematics:
            inserts.append((start, f" {entity['language']} "))
    for place, text in sorted(inserts, reverse=True):
        units = units[:place] + text.encode("utf-16-le") + units[place:]
    return units.decode("utf-16-le")


def check_message(call: Call) -> None:
    """Raise L{AssertionError} unless Telegram shows the call exactly as it was made."""
    assert call["method"] == "sendMessage", call["method"]
    params = call["params"]
    check_call("sendMessage", {"chat_id": 1, **params})
    assert params["link_preview_options"] == {"is_disabled": True}
    text, entities = params["text"], params.get("entities", [])
    assert len(text.encode("utf-16-le")) // 2 <= 4096, "too long"
    assert len(entities) <= 100, "too many entities"
    taken = message_text(text, "", entities)
    assert taken.text == text, (taken.text[:80], text[:80])
    kept = [entity for entity in taken.entities if entity["type"] not in _AUTOMATIC]
    assert kept == sorted(entities, key=lambda e: (e["offset"], -e["length"])), "entities changed"
    _check_entities(entities, len(text.encode("utf-16-le")) // 2)


def _check_entities(entities: Sequence[dict[str, Any]], end: int) -> None:
    stack: list[tuple[int, str]] = []
    for entity in entities:
        start, stop, kind = entity["offset"], entity["offset"] + entity["length"], entity["type"]
        assert set(entity) <= _ENTITY and 0 <= start < stop <= end, entity
        assert kind != "text_link" or live_url(entity["url"]), entity
        while stack and stack[-1][0] <= start:
            stack.pop()
        if stack:
            assert stop <= stack[-1][0], ("entities cross", entity, stack[-1])
        for _, outer in stack:
            assert outer not in _CODE, ("inside code", entity, outer)
            assert kind not in _QUOTES or outer not in _QUOTES, "quote inside quote"
            assert kind != outer, ("inside its own kind", entity)
            assert kind != "code" or outer in (*_QUOTES, "text_link"), ("style over code", outer)
            assert kind != "pre", ("block of code inside", outer)
        stack.append((stop, kind))


def check_rich(call: Call) -> str:
    """Raise L{AssertionError} unless the call keeps the limits of rich messages; return its text."""
    assert call["method"] == "sendRichMessage", call["method"]
    check_call("sendRichMessage", {"chat_id": 1, **call["params"]})
    message = call["params"]["rich_message"]
    assert set(message) == {"markdown", "skip_entity_detection"}
    markdown = message["markdown"]
    assert markdown.strip() and len(markdown.encode("utf-16-le")) // 2 <= 32_768
    events = parse(markdown)
    assert events is not None
    depth = blocks = 0
    for kind, name, value, _, _ in events:
        if name in _BLOCKS.split():
            depth += 1 if kind == "start" else -1
            blocks += kind == "start"
            assert depth <= 16, "nested too deep"
        if kind == "start":
            assert name != "Image", "an image would be fetched"
            assert name != "Table" or len(value) <= 20, "too many columns"
            assert name != "Link" or live_url(value["dest_url"], value["link_type"]), value
        assert name not in ("Html", "InlineHtml") or re.fullmatch(r"<br\s*/?>\n?", value, re.I), (
            value
        )
    assert blocks <= 500, blocks
    return markdown
