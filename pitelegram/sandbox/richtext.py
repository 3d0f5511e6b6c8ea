"""Text with entities, while it is being made: offsets in UTF-16 units, as Telegram counts them."""

from __future__ import annotations

import re
from typing import Any

import attrs

MAX_ENTITIES = 100

_AUTOMATIC = (
    (
        "url",
        re.compile(
            r"(?<![\w@.])(?:https?://[^\s<>\"']*[^\s<>\"'.,;:!?)\]}]|(?:[\w-]+\.)+(?:com|org|net|io|dev|me)(?:/[^\s<>\"']*[^\s<>\"'.,;:!?)\]}])?(?![\w@]))"
        ),
    ),  # noqa: E501
    ("mention", re.compile(r"(?<![\w@/])@[A-Za-z]\w{3,31}(?!\w)")),
    (
        "bot_command",
        re.compile(r"(?<![\w@/<>#])/[A-Za-z0-9_]{1,64}(?:@[A-Za-z]\w{3,31})?(?![\w/])"),
    ),
    ("hashtag", re.compile(r"(?<![\w#])#(?!\d+\b)\w{1,256}")),
)


def utf16_length(text: str) -> int:
    """Return the number of UTF-16 code units of C{text}."""
    return len(text) + sum(1 for character in text if character > "\uffff")


def utf16_slice(text: str, offset: int, length: int) -> str:
    """Return the part of C{text} that an entity names."""
    units = text.encode("utf-16-le", "surrogatepass")
    return units[2 * offset : 2 * (offset + length)].decode("utf-16-le", "replace")


@attrs.frozen
class RichText:
    """A text and its entities in Bot API form."""

    text: str
    entities: tuple[dict[str, Any], ...] = ()

    def as_json(self, text_key: str = "text", entities_key: str = "entities") -> dict[str, Any]:
        """Return the message members; no entities, no member."""
        members: dict[str, Any] = {text_key: self.text}
        if self.entities:
            members[entities_key] = [dict(entity) for entity in self.entities]
        return members


class TextBuilder:
    """Collects characters and finished entities of a parsed text."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._entities: list[dict[str, Any]] = []
        self.offset = 0

    def add(self, text: str) -> None:
        """Append C{text}."""
        self._parts.append(text)
        self.offset += utf16_length(text)

    def text_since(self, offset: int) -> str:
        """Return what was added after C{offset} (UTF-16 units)."""
        return utf16_slice("".join(self._parts), offset, self.offset - offset)

    def entity(self, kind: str, start: int, **members: Any) -> None:
        """End an entity here that began at C{start}; an empty one is dropped."""
        if self.offset > start:
            self._entities.append(
                {"type": kind, "offset": start, "length": self.offset - start, **members}
            )

    def result(self) -> RichText:
        """Return the text; nothing stays inside code."""
        entities = sorted(self._entities, key=lambda e: (e["offset"], -e["length"]))
        return RichText("".join(self._parts), tuple(_without_styles_in_code(entities)))


def _without_styles_in_code(entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    code = [entity for entity in entities if entity["type"] in ("code", "pre")]
    return [
        entity
        for entity in entities
        if not any(other is not entity and _inside(entity, other) for other in code)
    ]


def _inside(inner: dict[str, Any], outer: dict[str, Any]) -> bool:
    return (
        inner["offset"] >= outer["offset"]
        and inner["offset"] + inner["length"] <= outer["offset"] + outer["length"]
    )


def trimmed(rich: RichText) -> RichText:
    """Cut leading and trailing blanks and move the entities along."""
    body = rich.text.lstrip(" \n")
    cut = utf16_length(rich.text) - utf16_length(body)
    body = body.rstrip()
    end = utf16_length(body)
    entities = []
    for entity in rich.entities:
        start = max(0, entity["offset"] - cut)
        stop = min(end, entity["offset"] + entity["length"] - cut)
        if stop > start:
            entities.append({**entity, "offset": start, "length": stop - start})
    return RichText(body, tuple(entities[:MAX_ENTITIES]))


def with_automatic_entities(rich: RichText) -> RichText:
    """Add links, mentions, commands and hashtags where no other entity lies."""
    taken = [(e["offset"], e["offset"] + e["length"]) for e in rich.entities]
    found = list(rich.entities)
    for kind, pattern in _AUTOMATIC:
        for match in pattern.finditer(rich.text):
            start = utf16_length(rich.text[: match.start()])
            stop = start + utf16_length(match.group())
            if all(stop <= a or start >= b for a, b in taken):
                taken.append((start, stop))
                found.append({"type": kind, "offset": start, "length": stop - start})
    found.sort(key=lambda e: (e["offset"], -e["length"]))
    return RichText(rich.text, tuple(found[:MAX_ENTITIES]))
