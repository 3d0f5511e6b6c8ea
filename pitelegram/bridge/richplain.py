"""The words of a rich message, whatever its blocks are."""

from __future__ import annotations

from typing import Any

_TEXTS = ("text", "caption", "title", "credit", "summary", "expression", "alt")
_CHILDREN = ("blocks", "items", "rows", "cells", "header", "children", "content", "media")
_DEPTH = 32
_LIMIT = 40_000


def rich_text(message: Any) -> str:
    """Return the text of C{rich_message} (or of anything like it), one line per block.

    Markdown or HTML source is taken as it stands.  What is not known is walked through for the
    members that carry text, so that a new kind of block loses its looks and not its words.
    """
    if not isinstance(message, dict):
        return ""
    for source in ("markdown", "html"):
        if isinstance(message.get(source), str):
            return str(message[source])[:_LIMIT]
    lines: list[str] = []
    _block(message, lines, 0)
    return "\n".join(lines)[:_LIMIT].strip("\n")


def _block(value: Any, lines: list[str], depth: int) -> None:
    if depth > _DEPTH or len(lines) > _LIMIT:
        return
    if isinstance(value, list):
        for each in value:
            _block(each, lines, depth + 1)
        return
    if not isinstance(value, dict):
        if isinstance(value, str) and value:
            lines.append(value)
        return
    words = [_span(value[name], depth + 1) for name in _TEXTS if name in value]
    line = " ".join(word for word in words if word)
    if line:
        lines.append(line)
    for name in _CHILDREN:
        if isinstance(value.get(name), list):
            _block(value[name], lines, depth + 1)


def _span(value: Any, depth: int) -> str:
    """Return a text that may be nested in styled spans."""
    if isinstance(value, str):
        return value
    if depth > _DEPTH:
        return ""
    if isinstance(value, list):
        return "".join(_span(each, depth + 1) for each in value)
    if isinstance(value, dict):
        inner = next((value[name] for name in ("text", "texts", "children") if name in value), "")
        text, url = _span(inner, depth + 1), value.get("url")
        return f"{text} ({url})" if isinstance(url, str) and url and url != text else text
    return ""
