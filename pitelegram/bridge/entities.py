"""Text of a message with what its entities hide."""

from __future__ import annotations

import re
from typing import Any

_MAX_URL = 2048
_HIGH = tuple(bytes([byte]) for byte in range(0xD8, 0xDC))
_LOW = tuple(bytes([byte]) for byte in range(0xDC, 0xE0))
_UNSAFE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+")


def units(text: str) -> int:
    """Return the length of a text as Telegram counts it, in UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def with_links(text: str, entities: Any) -> str:
    """Return C{text} with the address behind each linked word in parentheses after it.

    Entities that make no sense are left out: they are Telegram's, but may be of a newer kind.
    """
    links = _links(entities)
    if not links:
        return text
    raw = text.encode("utf-16-le", "surrogatepass")
    for offset, length, url in sorted(links, reverse=True):
        start, end = 2 * offset, 2 * (offset + length)
        if end > len(raw) or _parts_a_pair(raw, start) or _parts_a_pair(raw, end):
            continue
        if _text(raw[start:end]).strip() in (url, url.rstrip("/")):
            continue
        raw = raw[:end] + f" ({url})".encode("utf-16-le") + raw[end:]
    return _text(raw)


def _links(entities: Any) -> list[tuple[int, int, str]]:
    found = []
    for entity in entities if isinstance(entities, list) else ():
        if not isinstance(entity, dict) or entity.get("type") != "text_link":
            continue
        offset, length, url = entity.get("offset"), entity.get("length"), entity.get("url")
        if type(offset) is int and type(length) is int and isinstance(url, str):
            address = _UNSAFE.sub("", url).encode("utf-8", "ignore").decode()[:_MAX_URL]
            if offset >= 0 and length > 0 and address:
                found.append((offset, length, address))
    return found


def _parts_a_pair(raw: bytes, place: int) -> bool:
    """Whether a place is within a character of two code units."""
    high, low = raw[place - 2 : place], raw[place : place + 2]
    return high[1:] in _HIGH and low[1:] in _LOW and bool(high and low)


def _text(raw: bytes) -> str:
    return raw.decode("utf-16-le", "replace")
