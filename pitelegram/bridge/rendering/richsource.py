"""Markdown source in chunks that Telegram takes as rich messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from pitelegram.bridge.cutting import utf16_length
from pitelegram.bridge.rendering.parsing import Events
from pitelegram.bridge.rendering.richedits import Edits, Refused, edited

MAX_CHARACTERS = 32_768
MAX_BLOCKS = 500
MAX_NESTING = 16
MAX_COLUMNS = 20

_ROOM = 64
"""Characters left free for a fence that is closed at the end of a chunk."""

_BLOCKS = frozenset(
    "Paragraph Heading BlockQuote CodeBlock HtmlBlock List Item Table TableHead TableRow".split()
)


@attrs.define
class _Piece:
    """A stretch of source that is not cut again.

    @ivar mark: where it begins for the conversion to text; C{start} is the same or before it, at
        the beginning of the line.
    @ivar family: pieces of one block that was too big have the same number; 0: a whole block.
    """

    start: int
    mark: int
    end: int
    blocks: int
    family: int = 0
    opening: str = ""
    closing: str = ""


@attrs.frozen
class Chunk:
    """One rich message.

    @ivar mark: the place of the source where it begins.
    """

    markdown: str
    mark: int


@attrs.define
class _Block:
    kind: str
    data: Any
    start: int
    mark: int
    end: int
    blocks: int = 1
    inner: list[tuple[int, int]] = attrs.Factory(list)
    """Where it may be cut: (place, blocks before the next one)."""


def chunks(
    source: str, events: Events, limit: int = MAX_CHARACTERS, most: int = MAX_BLOCKS
) -> list[Chunk]:
    """Return the source in chunks; none when it cannot be shown as rich messages.

    Cut between blocks; a block that is too big is cut at its lines (code, with its fence closed
    and opened again), items, rows (with the header again) or sentences.  Tables of more than 20
    columns, more than 16 levels, and a block that cannot be cut have no rich form.
    """
    raw = source.encode("utf-8")
    try:
        edits = Edits(raw).collect(events)
        blocks = _blocks(raw, events)
        pieces = [
            piece
            for number, block in enumerate(blocks, 1)
            for piece in _pieces(raw, block, number, limit - _ROOM, most)
        ]
        return [
            _chunk(raw, edits, group) for group in _packed(raw, edits, pieces, limit - _ROOM, most)
        ]
    except Refused:
        return []


def _line(raw: bytes, place: int) -> int:
    return raw.rfind(b"\n", 0, place) + 1


def _blocks(raw: bytes, events: Events) -> list[_Block]:
    result: list[_Block] = []
    depth = inline = 0
    for event, place in events:
        if type(event) is str:
            if event == "Rule" and depth == 0:
                start = place["start"]
                result.append(_Block("Rule", None, _line(raw, start), start, place["end"]))
            continue
        [(kind, value)] = event.items()
        if kind == "Text":
            if depth == 1 and not inline and result[-1].kind in ("Paragraph", "CodeBlock"):
                result[-1].inner.append((place["start"], result[-1].blocks))
            continue
        if kind not in ("Start", "End"):
            continue
        name, data = (value, None) if type(value) is str else next(iter(value.items()))
        if name not in _BLOCKS:
            inline += (1 if kind == "Start" else -1) if name != "TableCell" else 0
            continue
        if kind == "End":
            depth -= 1
            continue
        depth += 1
        if depth > MAX_NESTING or name == "Table" and len(data) > MAX_COLUMNS:
            raise Refused
        start = place["start"]
        if depth == 1:
            result.append(_Block(name, data, _line(raw, start), start, place["end"]))
            continue
        block = result[-1]
        if depth == 2 and (block.kind != "Table" or name == "TableRow"):
            block.inner.append((start, block.blocks))
        block.blocks += 1
    return result


def _pieces(raw: bytes, block: _Block, family: int, limit: int, most: int) -> Iterable[_Piece]:
    size = utf16_length(raw[block.start : block.end].decode("utf-8", "replace"))
    if size <= limit and block.blocks <= most:
        return [_Piece(block.start, block.mark, block.end, block.blocks)]
    if block.kind == "Paragraph":
        return _sentences(raw, block, family)
    if not block.inner:
        raise Refused
    return _parts(raw, block, family)


def _parts(raw: bytes, block: _Block, family: int) -> Iterator[_Piece]:
    """Cut at code lines, items, rows or the blocks of a quote."""
    opening = closing = ""
    first = block.start
    if block.kind == "CodeBlock":
        if type(block.data) is not dict:
            raise Refused
        head = raw[block.mark : block.inner[0][0]].decode().strip().split("\n", 1)[0]
        fence = head[: len(head) - len(head.lstrip(head[0]))]
        opening, closing = head + "\n", "\n" + fence
    elif block.kind == "Table":
        opening = raw[block.start : _line(raw, block.inner[0][0])].decode()
    places = block.inner
    for number, (place, before) in enumerate(places):
        start = first if number == 0 else _line(raw, place)
        last = number + 1 == len(places)
        end = block.end if last else _line(raw, places[number + 1][0])
        count = (block.blocks if last else places[number + 1][1]) - before
        yield _Piece(
            start,
            block.mark if number == 0 else place,
            end,
            count + (before if number == 0 else 0),
            family,
            "" if number == 0 else opening,
            "" if last else closing,
        )


def _sentences(raw: bytes, block: _Block, family: int) -> Iterator[_Piece]:
    """Cut a paragraph where a text between its styles begins."""
    places = [place for place, _ in block.inner if place > block.mark]
    starts = [block.start, *places]
    for start, end in zip(starts, [*places, block.end], strict=True):
        mark = block.mark if start == block.start else start
        yield _Piece(start, mark, end, 1, family)


def _packed(
    raw: bytes, edits: list[Any], pieces: Iterable[_Piece], limit: int, most: int
) -> Iterator[list[_Piece]]:
    group: list[_Piece] = []
    size = blocks = 0
    for piece in pieces:
        length = utf16_length(edited(raw, edits, piece.start, piece.end)) + 2
        extra = utf16_length(piece.opening)
        if length + extra > limit or piece.blocks > most:
            raise Refused
        if group and (size + length > limit or blocks + piece.blocks > most):
            yield group
            group, size, blocks = [], extra, 0
        group.append(piece)
        size += length
        blocks += piece.blocks
    if group:
        yield group


def _chunk(raw: bytes, edits: list[Any], group: list[_Piece]) -> Chunk:
    first, last = group[0], group[-1]
    body = edited(raw, edits, first.start, last.end).strip("\n")
    closing = last.closing if last.closing else ""
    return Chunk(first.opening + body + closing, first.mark)
