"""The Markdown of a rich message as the blocks that clients show (Bot API C{RichBlock}).

The real parser is not public.  This one is pulldown-cmark with the extensions that the Bot API names;
where it cannot know what the service would do with a source, it refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from pitelegram.sandbox.errors import ApiError, bad_request

MAX_CHARACTERS = 32_768
MAX_BLOCKS = 500
MAX_DEPTH = 16
MAX_COLUMNS = 20

Block = dict[str, Any]

_STYLES = {"Strong": "bold", "Emphasis": "italic", "Strikethrough": "strikethrough"}
_ALIGN = {"Left": "left", "None": "left", "Center": "center", "Right": "right"}
_BREAKS = ("SoftBreak", "HardBreak")
_LEVELS = ("BlockQuote", "List")
_CHILDREN = ("blocks", "items")


def blocks_of(markdown: str) -> list[Block]:
    """Return the blocks of a source.

    @raise ApiError: 400: there is nothing to show, a limit is exceeded, or it cannot be parsed.
    """
    found = _Builder().run(markdown)
    text = visible_text(found)
    if not text.strip() and not any(block.get("type") == "divider" for block in found):
        raise bad_request("message text is empty")
    if len(text) > MAX_CHARACTERS:
        raise bad_request("message is too long")
    if sum(1 for _ in _all(found)) > MAX_BLOCKS:
        raise bad_request("rich message has too many blocks")
    return found


def visible_text(value: Any) -> str:
    """Return the words of blocks, a line each, or of a C{RichText}."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        blocks = any(isinstance(each, dict) and _is_block(each) for each in value)
        return ("\n" if blocks else "").join(map(visible_text, value))
    if "cells" in value:
        rows = [[visible_text(cell.get("text", "")) for cell in row] for row in value["cells"]]
        return "\n".join("\t".join(row) for row in rows)
    if "label" in value:
        return f"{value['label']} {visible_text(value['blocks'])}"
    for name in ("text", "expression", *_CHILDREN):
        if name in value:
            return visible_text(value[name])
    return ""


def _is_block(value: Block) -> bool:
    return value.get("type") in _BLOCKS or "blocks" in value or "label" in value


_BLOCKS = frozenset("paragraph heading pre divider list blockquote table".split())


def _all(blocks: list[Block]) -> Iterator[Block]:
    """Blocks, items and rows; the words of an item are not counted beside it."""
    for block in blocks:
        yield block
        for name in _CHILDREN:
            inner = block.get(name, [])
            yield from _all(inner[1:] if "label" in block and name == "blocks" else inner)
        yield from ({"row": row} for row in block.get("cells", ()))


class _Builder:
    """Builds the tree from the parser's events; C{_open} holds what is not finished."""

    def __init__(self) -> None:
        self._root: list[Block] = []
        self._places: list[list[Any]] = [self._root]
        self._open: list[tuple[str, Any]] = []

    def run(self, markdown: str) -> list[Block]:
        """Return the blocks."""
        for event, _ in _parser().events_with_range(markdown):
            if isinstance(event, str):
                self._leaf(event, "")
                continue
            [(kind, value)] = event.items()
            if kind == "Start":
                self._start(*_named(value))
            elif kind == "End":
                self._end(_named(value)[0])
            else:
                self._leaf(kind, value)
        return self._root

    def _start(self, name: str, data: Any) -> None:
        levels = [each for each, _ in self._open if each in _LEVELS]
        if name in _LEVELS and len(levels) >= MAX_DEPTH:
            raise bad_request("rich message is nested too deep")
        if name == "Table" and len(data) > MAX_COLUMNS:
            raise bad_request("rich message table has too many columns")
        if name in ("HtmlBlock", "FootnoteDefinition"):
            raise _unparsable(name)
        inner: list[Any] = []
        self._open.append((name, data))
        self._places.append(inner)

    def _end(self, name: str) -> None:
        _, data = self._open.pop()
        inner = self._places.pop()
        maker: Callable[[list[Any], Any], Any] | None = getattr(self, f"_{name.lower()}", None)
        made = {"type": _STYLES[name], "text": _joined(inner)} if name in _STYLES else None
        if made is None:
            if maker is None:
                raise _unparsable(name)
            made = maker(inner, data)
        self._places[-1].append(made)

    def _leaf(self, name: str, value: Any) -> None:
        place = self._places[-1]
        if name == "Text":
            place.append(value)
        elif name in _BREAKS:
            place.append("\n")
        elif name == "Code":
            place.append({"type": "code", "text": value})
        elif name in ("InlineMath", "DisplayMath"):
            place.append({"type": "mathematical_expression", "expression": value})
        elif name == "Rule":
            place.append({"type": "divider"})
        elif name == "TaskListMarker":
            place.append(value)
        elif name == "InlineHtml" and value.lower().replace(" ", "") in ("<br>", "<br/>"):
            place.append("\n")
        else:
            raise _unparsable(name)

    # --- blocks: what is inside, and what the parser says about them ----------------------------

    def _paragraph(self, inner: list[Any], _: Any) -> Block:
        return {"type": "paragraph", "text": _joined(inner)}

    def _heading(self, inner: list[Any], data: Any) -> Block:
        return {"type": "heading", "text": _joined(inner), "size": int(data["level"][1])}

    def _codeblock(self, inner: list[Any], data: Any) -> Block:
        block: Block = {"type": "pre", "text": "".join(inner).removesuffix("\n")}
        words = data["Fenced"].split() if isinstance(data, dict) else []
        return block | ({"language": words[0]} if words else {})

    def _blockquote(self, inner: list[Any], _: Any) -> Block:
        return {"type": "blockquote", "blocks": _as_blocks(inner)}

    def _list(self, inner: list[Any], first: Any) -> Block:
        for number, item in enumerate(inner):
            ordered = type(first) is int
            item["label"] = f"{first + number}." if ordered else "•"
            if ordered:
                item["value"] = first + number
        return {"type": "list", "items": inner}

    def _item(self, inner: list[Any], _: Any) -> Block:
        marks = [each for each in inner if isinstance(each, bool)]
        item: Block = {
            "label": "",
            "blocks": _as_blocks([e for e in inner if e is not True and e is not False]),
        }
        return item | ({"has_checkbox": True, "is_checked": marks[0]} if marks else {})

    def _table(self, inner: list[Any], columns: Any) -> Block:
        for row in inner:
            for cell, align in zip(row, columns, strict=False):
                cell["align"] = _ALIGN[align]
        return {"type": "table", "cells": inner}

    def _tablehead(self, inner: list[Any], _: Any) -> list[Block]:
        return [{**cell, "is_header": True} for cell in inner]

    def _tablerow(self, inner: list[Any], _: Any) -> list[Any]:
        return inner

    def _tablecell(self, inner: list[Any], _: Any) -> Block:
        return {"text": _joined(inner), "align": "left", "valign": "middle"}

    def _link(self, inner: list[Any], data: Any) -> Any:
        address = data["dest_url"]
        if data["link_type"] == "Email" or address.startswith("mailto:"):
            address = address.removeprefix("mailto:")
            return {"type": "email_address", "text": _joined(inner), "email_address": address}
        if not address.startswith(("http://", "https://", "tg://")):
            return _joined(inner)
        return {"type": "url", "text": _joined(inner), "url": address}

    def _image(self, inner: list[Any], _: Any) -> Any:
        raise bad_request("failed to get HTTP URL content")


def _named(value: Any) -> tuple[str, Any]:
    if isinstance(value, str):
        return value, None
    [(name, data)] = value.items()
    return name, data


def _unparsable(name: str) -> ApiError:
    return bad_request(f"can't parse rich message: unsupported {name.lower()}")


def _joined(parts: list[Any]) -> Any:
    """Return a C{RichText}: a string where nothing has a style."""
    merged: list[Any] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    if len(merged) == 1:
        return merged[0]
    return merged or ""


def _as_blocks(parts: list[Any]) -> list[Block]:
    """Return blocks; words that stand in a tight item or quote by themselves are a paragraph."""
    blocks: list[Block] = []
    words: list[Any] = []
    for part in [*parts, None]:
        if part is not None and not (isinstance(part, dict) and _is_block(part)):
            words.append(part)
            continue
        if words:
            blocks.append({"type": "paragraph", "text": _joined(words)})
            words = []
        if part is not None:
            blocks.append(part)
    return blocks


@lru_cache(maxsize=1)
def _parser() -> Any:
    from pyromark import Markdown, Options

    return Markdown(
        options=Options.ENABLE_TABLES
        | Options.ENABLE_STRIKETHROUGH
        | Options.ENABLE_TASKLISTS
        | Options.ENABLE_MATH
        | Options.ENABLE_FOOTNOTES
    )
