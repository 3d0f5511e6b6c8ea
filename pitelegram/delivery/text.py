"""Text within Telegram's limit, and text without markup."""

from __future__ import annotations

import html
import re
from typing import Any

LIMIT = 4096
"""Most UTF-16 units of one message."""

_TAG = re.compile(r"</?[A-Za-z!][^<>]*>")
_BREAK = re.compile(r"<(?:br|/p|/div|/h[1-6]|/li|/tr|/pre|/blockquote)\b[^<>]*>", re.IGNORECASE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def fits(text: str, limit: int = LIMIT) -> int:
    """Return how many characters from the start of C{text} fit into C{limit} UTF-16 units."""
    units = 0
    for index, character in enumerate(text):
        units += 2 if character > "\uffff" else 1
        if units > limit:
            return index
    return len(text)


def shortened(text: str, limit: int = LIMIT) -> str:
    """Return C{text}, cut with an ellipsis where it is too long."""
    if fits(text, limit) == len(text):
        return text
    return text[: fits(text, limit - 1)] + "…"


def pieces(text: str, limit: int = LIMIT) -> list[str]:
    """Cut C{text} into messages, at line ends or blanks where there are any; blank ones are left out."""
    result, rest = [], text.strip()
    while rest:
        end = fits(rest, limit)
        if end < len(rest):
            at = max(rest.rfind("\n", end // 2, end + 1), rest.rfind(" ", end // 2, end + 1))
            end = at if at > 0 else end
        result.append(rest[:end].rstrip())
        rest = rest[end:].strip()
    return result


def without_markup(text: str, parse_mode: str | None) -> str:
    """Return what a reader should see of text in C{HTML} or C{MarkdownV2}; other text as it is."""
    mode = (parse_mode or "").lower()
    if mode == "html":
        return html.unescape(_TAG.sub("", _BREAK.sub("\n", text)))
    if mode == "markdownv2":
        return _ESCAPED.sub(r"\1", text)
    return text


def rich_text(rich: Any) -> str:
    """Return the text of a rich message, whichever of its forms it has."""
    if not isinstance(rich, dict):
        return ""
    if isinstance(rich.get("markdown"), str):
        return str(rich["markdown"])
    if isinstance(rich.get("html"), str):
        return without_markup(rich["html"], "html")
    return "\n".join(_texts(rich.get("blocks")))


def _texts(value: Any) -> list[str]:
    """Return every C{text} string in a tree of blocks, in order."""
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    if not isinstance(value, dict):
        return []
    found = []
    for name, item in value.items():
        if name == "text" and isinstance(item, str):
            found.append(item)
        elif isinstance(item, (dict, list)):
            found += _texts(item)
    return found
