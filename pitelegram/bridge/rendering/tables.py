"""Tables on a phone: aligned columns where they fit, else a list of each row's cells."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from pitelegram.bridge.rendering.records import Span
from pitelegram.bridge.rendering.width import columns, padded
from pitelegram.bridge.rendering.writing import Writer

_GAP = " │ "
_CROSS = "─┼─"
_EMPTY = "–"


@attrs.frozen
class Cell:
    """A cell's text and the spans in it."""

    text: str
    spans: tuple[Span, ...]

    @classmethod
    def of(cls, writer: Writer) -> Cell:
        """Take what was written into a cell; it is one line."""
        return cls(writer.text().replace("\n", " "), tuple(writer.spans))


def write_table(
    writer: Writer, alignments: Sequence[str], rows: Sequence[tuple[int, list[Cell]]], fitting: int
) -> list[tuple[int, int]]:
    """Append a table.

    @param rows: each with the place of the row in the source; the first is the header.
    @param fitting: most columns of an aligned table.
    @return: for each row after the header its place in the source and in the text.
    """
    cells = [row for _, row in rows]
    count = max(map(len, cells))
    widths = [
        max(columns(row[index].text) if index < len(row) else 0 for row in cells)
        for index in range(count)
    ]
    linked = any(span.kind == "text_link" for row in cells for cell in row for span in cell.spans)
    if not linked and sum(widths) + len(_GAP) * (count - 1) <= fitting:
        return _aligned(writer, alignments, rows, widths)
    return _listed(writer, rows)


def _aligned(
    writer: Writer,
    alignments: Sequence[str],
    rows: Sequence[tuple[int, list[Cell]]],
    widths: Sequence[int],
) -> list[tuple[int, int]]:
    lines, places, size = [], [], 0
    for number, (place, row) in enumerate(rows):
        texts = [cell.text for cell in row] + [""] * (len(widths) - len(row))
        line = _GAP.join(map(padded, texts, widths, alignments)).rstrip()
        if number:
            places.append((place, size))
        lines.append(line)
        size += len(line) + 1
        if not number:
            lines.append(_CROSS.join("─" * width for width in widths))
            size += len(lines[-1]) + 1
    start = writer.pre("\n".join(lines))
    return [(place, start + offset) for place, offset in places]


def _listed(writer: Writer, rows: Sequence[tuple[int, list[Cell]]]) -> list[tuple[int, int]]:
    (_, header), *body = rows
    places = []
    if not body:
        writer.block()
        for cell in header:
            _put(writer, cell)
            writer.line()
    for place, row in body:
        places.append((place, writer.size))
        writer.block()
        first = True
        for index, cell in enumerate(row):
            title = header[index] if index < len(header) else None
            named = title is not None and title.text.strip()
            if not named and not cell.text.strip():
                continue
            if first:
                writer.open_style("bold")
            else:
                writer.line()
                writer.put("• ")
            if title is not None and named:
                _put(writer, title, styled=False)
                writer.put(": ")
            _put(writer, cell) if cell.text.strip() else writer.put(_EMPTY)
            if first:
                writer.close_style("bold")
                first = False
    writer.block()
    return places


def _put(writer: Writer, cell: Cell, styled: bool = True) -> None:
    writer.put("")
    start = writer.size
    code = False
    if styled:
        code = any(span.kind == "code" for span in cell.spans)
    if code:
        _put_with_code(writer, cell)
        return
    writer.put(cell.text)
    for span in cell.spans if styled else ():
        writer.spans.append(span._replace(start=start + span.start, end=start + span.end))


def _put_with_code(writer: Writer, cell: Cell) -> None:
    """Append a cell piece by piece, so that a style around it ends before its code."""
    at, base = 0, 0
    for span in sorted(cell.spans):
        if span.kind == "code":
            writer.put(cell.text[at : span.start])
            writer.code(cell.text[span.start : span.end])
            at = span.end
    writer.put(cell.text[at:])
    base = writer.size - len(cell.text)
    for span in cell.spans:
        if span.kind != "code":
            writer.spans.append(span._replace(start=base + span.start, end=base + span.end))
