"""Markdown source in chunks that Telegram takes as rich messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from pitelegram.bridge.rendering.parsing import Events
from pitelegram.bridge.rendering.richedits import Edits, Refused, edited
from pitelegram.bridge.rendering.splitting import units

MAX_CHARACTERS = 32_768
MAX_BLOCKS = 500
MAX_NESTING = 16
MAX_COLUMNS = 20

_ROOM = 64
"""Characters left free for a fence that is closed at the end of a chunk."""

_CONTAINERS = 8
"""Blocks left free for the list, quote or table that goes on in a chunk."""

_LONG = 8192
_STRIDE = 512
"""Prose is cut about every so many bytes, in paragraphs that are longer than the former."""

_WORD = re.compile(rb"(?<=\S) (?=[A-Za-z\x80-\xff])")

_BLOCKS = frozenset(
    "Paragraph Heading BlockQuote CodeBlock HtmlBlock List Item Table TableHead TableRow".split()
)


@attrs.define
class _Piece:
    """A stretch of source that is not cut again.

    @ivar mark: where it begins for the conversion to text; C{start} is the same or before it, at
        the beginning of the line.
    @ivar base: see L{Chunk}.
    """

    start: int
    mark: int
    base: int
    end: int
    blocks: int
    opening: str = ""
    closing: str = ""


@attrs.frozen
class Chunk:
    """One rich message.

    @ivar mark: the place of the source (bytes) where it begins.
    @ivar base: an element of the source that begins here or before; what lies between is verbatim.
    """

    markdown: str
    mark: int
    base: int


@attrs.define
class _Block:
    kind: str
    data: Any
    start: int
    mark: int
    end: int
    blocks: int = 1
    inner: list[tuple[int, int, int]] = attrs.Factory(list)
    """Where it may be cut: (place, blocks before it, base)."""


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
            for block in blocks
            for piece in _pieces(raw, block, limit - _ROOM, most - _CONTAINERS)
        ]
        return [
            _chunk(raw, edits, group)
            for group in _packed(raw, edits, pieces, limit - _ROOM, most - _CONTAINERS)
        ]
    except Refused:
        return []


def _line(raw: bytes, place: int) -> int:
    return raw.rfind(b"\n", 0, place) + 1


def _blocks(raw: bytes, events: Events) -> list[_Block]:
    result: list[_Block] = []
    depth = inline = 0
    for kind, name, data, start, end in events:
        if kind == "leaf":
            if depth == 0 and name == "Rule":
                result.append(_Block("Rule", None, _line(raw, start), start, end))
            elif depth == 1 and not inline and name == "Text":
                _text(raw, result[-1], start, end)
            continue
        if name not in _BLOCKS:
            inline += (1 if kind == "start" else -1) if name != "TableCell" else 0
            continue
        if kind == "end":
            depth -= 1
            continue
        depth += 1
        if depth > MAX_NESTING or name == "Table" and len(data) > MAX_COLUMNS:
            raise Refused
        if depth == 1:
            result.append(_Block(name, data, _line(raw, start), start, end))
            continue
        block = result[-1]
        if depth == 2 and (block.kind != "Table" or name == "TableRow"):
            block.inner.append((start, block.blocks, start))
        block.blocks += 1
    return result


def _text(raw: bytes, block: _Block, start: int, end: int) -> None:
    """Note where a text may be cut: code at its lines, prose before words that begin nothing."""
    if block.kind == "CodeBlock":
        place = start
        while 0 < place < end:
            block.inner.append((place, 1, start))
            place = raw.find(b"\n", place, end) + 1
    elif block.kind == "Paragraph" and block.end - block.start > _LONG:
        place = start if raw.find(b"||", start, end) < 0 else end
        while (match := _WORD.search(raw, place, end)) is not None:
            block.inner.append((match.end(), 1, start))
            place = match.end() + _STRIDE


def _pieces(raw: bytes, block: _Block, limit: int, most: int) -> Iterable[_Piece]:
    if block.blocks <= most and _fits(raw[block.start : block.end], limit):
        return [_Piece(block.start, block.mark, block.mark, block.end, block.blocks)]
    if not block.inner:
        raise Refused
    return _sentences(block) if block.kind == "Paragraph" else _parts(raw, block)


def _fits(raw: bytes, limit: int) -> bool:
    return len(raw) <= limit or units(raw.decode("utf-8", "replace")) <= limit


def _parts(raw: bytes, block: _Block) -> Iterator[_Piece]:
    """Cut at code lines, items, rows or the blocks of a quote."""
    opening = closing = ""
    if block.kind == "CodeBlock":
        if type(block.data) is not dict:
            raise Refused
        head = raw[block.mark : block.inner[0][0]].decode().strip().split("\n", 1)[0]
        fence = head[: len(head) - len(head.lstrip(head[0]))]
        opening, closing = head + "\n", "\n" + fence
    elif block.kind == "Table":
        opening = raw[block.start : _line(raw, block.inner[0][0])].decode()
    places = block.inner
    for number, (place, before, base) in enumerate(places):
        last = number + 1 == len(places)
        following = block.blocks if last else places[number + 1][1]
        yield _Piece(
            _line(raw, place) if number else block.start,
            place if number else block.mark,
            base if number else block.mark,
            block.end if last else _line(raw, places[number + 1][0]),
            following - (before if number else 0),
            opening if number else "",
            "" if last else closing,
        )


def _sentences(block: _Block) -> Iterator[_Piece]:
    """Cut a paragraph between words that no style lies over."""
    places = [(block.mark, 1, block.mark), *block.inner]
    ends = [*(place for place, _, _ in block.inner), block.end]
    for (start, _, base), end in zip(places, ends, strict=True):
        yield _Piece(start, start, base, end, 1)


def _packed(
    raw: bytes, edits: list[Any], pieces: Iterable[_Piece], limit: int, most: int
) -> Iterator[list[_Piece]]:
    group: list[_Piece] = []
    size = blocks = 0
    for piece in pieces:
        length = units(edited(raw, edits, piece.start, piece.end)) + 2
        extra = units(piece.opening)
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
    return Chunk(first.opening + body + last.closing, first.mark, first.base)
