"""From the parser's events to a text with spans."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import attrs

from pitelegram.bridge.rendering.links import live_url
from pitelegram.bridge.rendering.parsing import Events
from pitelegram.bridge.rendering.records import Span
from pitelegram.bridge.rendering.tables import Cell, write_table
from pitelegram.bridge.rendering.writing import Writer

RULE = "─" * 12
_BULLETS = "•◦▪"
_BREAK = re.compile(r"<br\s*/?>\n?", re.I)
_SPOILER = re.compile(r"(?<![\w|])\|\|(?=[^\s|])([^|\n]+?)(?<!\s)\|\|(?![\w|])")
_MATH = re.compile(r"[\\^{}]")
_NUMBER = re.compile(rb"\d{1,9}")
_LANGUAGE = re.compile(r"[\w+#.-]{1,40}")
_STYLES = {"Strong": "bold", "Emphasis": "italic", "Strikethrough": "strikethrough"}
_LONG_QUOTE, _MANY_LINES = 500, 8


@attrs.frozen
class Document:
    """A whole answer as text.

    @ivar spans: sorted; nothing lies over code, a quote never over a block of code.
    @ivar marks: for places of the source (bytes) where it may be cut, where that is in the text.
    """

    text: str
    spans: tuple[Span, ...]
    marks: dict[int, int]


@attrs.define
class _Link:
    url: str
    target: str
    start: int
    piece: int
    image: bool


class Converter:
    """One conversion: L{run} once.

    @param source: what was parsed, as UTF-8.
    @param columns: see L{pitelegram.bridge.rendering.records.RenderOptions}.
    """

    def __init__(self, source: bytes, columns: int) -> None:
        self._source = source
        self._columns = columns
        self._out = Writer()
        self._page = self._out
        self._marks: dict[int, int] = {}
        self._lists: list[int | None] = []
        self._firsts: list[int | None] = []
        self._links: list[_Link] = []
        self._code: list[str] | None = None
        self._code_places: list[tuple[int, int]] = []
        self._code_size = 0
        self._language = ""
        self._alignments: tuple[str, ...] = ()
        self._rows: list[tuple[int, list[Cell]]] = []
        self._depth = 0
        self._start: dict[str, Callable[[Any, int], None]] = {
            "Paragraph": self._paragraph,
            "Heading": self._heading,
            "BlockQuote": self._quote,
            "CodeBlock": self._code_block,
            "HtmlBlock": self._paragraph,
            "List": self._list,
            "Item": self._item,
            "Table": self._table,
            "TableHead": self._row,
            "TableRow": self._row,
            "TableCell": self._cell,
            "Link": self._link,
            "Image": self._image,
        }
        self._end: dict[str, Callable[[], None]] = {
            "Paragraph": self._end_paragraph,
            "Heading": self._end_heading,
            "BlockQuote": self._end_quote,
            "CodeBlock": self._end_code,
            "HtmlBlock": self._end_paragraph,
            "List": self._end_list,
            "Item": self._end_item,
            "Table": self._end_table,
            "TableHead": self._end_block,
            "TableRow": self._end_block,
            "TableCell": self._end_cell,
            "Link": self._end_link,
            "Image": self._end_link,
        }
        self._leaf: dict[str, Callable[[str], None]] = {
            "Code": self._inline_code,
            "InlineHtml": self._html,
            "Html": self._html,
            "InlineMath": self._inline_math,
            "DisplayMath": self._display_math,
            "TaskListMarker": self._task,
            "SoftBreak": self._break,
            "HardBreak": self._break,
        }

    def run(self, events: Events) -> Document:
        """Convert all events of a source."""
        for kind, name, value, place, _ in events:
            if kind == "leaf":
                if name == "Text":
                    self._text(value, place)
                elif name == "Rule":
                    self._rule(place)
                else:
                    self._leaf[name](value)
            elif name in _STYLES:
                if kind == "start":
                    self._out.open_style(_STYLES[name])
                else:
                    self._out.close_style(_STYLES[name])
            elif kind == "start":
                self._start[name](value, place)
            else:
                self._end[name]()
        text = self._page.text()
        spans = [
            _folded(span, text) if span.kind == "blockquote" else span for span in self._page.spans
        ]
        spans.sort(key=lambda span: (span.start, -span.end))
        return Document(text, tuple(spans), self._marks)

    # Blocks

    def _block(self, place: int) -> None:
        if self._depth < 2:
            self._marks.setdefault(place, self._page.size)
        self._depth += 1

    def _end_block(self) -> None:
        self._depth -= 1

    def _paragraph(self, _: Any, place: int) -> None:
        self._block(place)
        self._out.block()

    def _end_paragraph(self) -> None:
        self._depth -= 1
        self._out.block()

    def _heading(self, _: Any, place: int) -> None:
        self._paragraph(None, place)
        self._out.open_style("bold")

    def _end_heading(self) -> None:
        self._out.close_style("bold")
        self._end_paragraph()

    def _quote(self, kind: str | None, place: int) -> None:
        self._block(place)
        self._out.open_quote()
        if kind:
            self._out.open_style("bold")
            self._out.put(kind)
            self._out.close_style("bold")
            self._out.line()

    def _end_quote(self) -> None:
        self._depth -= 1
        self._out.close_quote()

    def _list(self, first: int | None, place: int) -> None:
        self._block(place)
        self._lists.append(first)
        self._firsts.append(first)
        self._out.open_list()

    def _end_list(self) -> None:
        self._depth -= 1
        self._lists.pop()
        self._firsts.pop()
        self._out.close_list()

    def _item(self, _: Any, place: int) -> None:
        self._block(place)
        number = self._lists[-1]
        if number is None:
            self._out.item(_BULLETS[(len(self._lists) - 1) % 3] + " ")
        else:
            self._out.item(f"{self._number(place, number)}. ")

    def _number(self, place: int, counted: int) -> int:
        """Return the number as it is written; where each says the same, they are counted."""
        match = _NUMBER.match(self._source, place)
        written = int(match.group()) if match else counted
        number = counted if written in self._firsts[-1:] else written
        self._lists[-1] = number + 1
        return number

    def _end_item(self) -> None:
        self._depth -= 1
        self._out.end_item()

    def _task(self, done: Any) -> None:
        self._out.task("☑ " if done else "☐ ")

    def _code_block(self, kind: Any, place: int) -> None:
        self._block(place)
        info = kind["Fenced"] if type(kind) is dict else ""
        self._language = info
        self._code, self._code_places, self._code_size = [], [], 0

    def _end_code(self) -> None:
        self._depth -= 1
        text, self._code = "".join(self._code or ()), None
        words = self._language.split(None, 1)
        language = words[0].lstrip("{.").rstrip("}") if words else ""
        if not _LANGUAGE.fullmatch(language):
            language = ""
        if words and self._language.strip() != language:
            self._out.block()
            self._out.put(self._language.strip())
            self._out.line()
        body = text.removesuffix("\n")
        if not body.strip():
            return
        start = self._out.pre(body, language)
        for place, offset in self._code_places:
            self._marks[place] = start + min(offset, len(body))

    def _table(self, alignments: Any, place: int) -> None:
        self._block(place)
        self._alignments = tuple(alignments)
        self._rows = []

    def _row(self, _: Any, place: int) -> None:
        self._depth += 1
        self._rows.append((place, []))

    def _cell(self, _: Any, place: int) -> None:
        self._out = Writer()

    def _end_cell(self) -> None:
        self._rows[-1][1].append(Cell.of(self._out))
        self._out = self._page

    def _end_table(self) -> None:
        self._depth -= 1
        places = write_table(self._out, self._alignments, self._rows, self._columns)
        if self._depth == 0:
            self._marks.update(places)

    # What stands in a line

    def _rule(self, place: int) -> None:
        if self._depth < 2:
            self._marks.setdefault(place, self._page.size)
        self._out.block()
        self._out.put(RULE)
        self._out.block()

    def _break(self, _: str) -> None:
        self._out.line()

    def _text(self, text: str, place: int) -> None:
        if self._code is not None:
            if self._depth == 1:
                self._code_places.append((place, self._code_size))
            self._code.append(text)
            self._code_size += len(text)
            return
        if self._depth == 1 and self._out is self._page and not self._links:
            self._marks.setdefault(place, self._out.size)
        if "||" in text:
            self._spoilers(text)
        else:
            self._out.put(text)

    def _spoilers(self, text: str) -> None:
        at = 0
        for match in _SPOILER.finditer(text):
            self._out.put(text[at : match.start()])
            self._out.open_style("spoiler")
            self._out.put(match.group(1))
            self._out.close_style("spoiler")
            at = match.end()
        self._out.put(text[at:])

    def _inline_code(self, text: str) -> None:
        self._out.code(text, plain=bool(self._links))

    def _html(self, text: str) -> None:
        parts = _BREAK.split(text)
        for number, part in enumerate(parts):
            if number:
                self._out.line()
            self._out.lines(part)
            if part.endswith("\n"):
                self._out.line()

    def _inline_math(self, text: str) -> None:
        if _MATH.search(text):
            self._out.code(text, plain=bool(self._links))
        else:
            self._out.put(f"${text}$")

    def _display_math(self, text: str) -> None:
        if self._out is not self._page or self._links or not text.strip():
            self._out.code(text.strip() or "$$$$", plain=bool(self._links))
        else:
            self._out.pre(text.strip("\n"), "math")

    # Links

    def _link(self, data: Any, place: int) -> None:
        self._open(data, image=False)

    def _image(self, data: Any, place: int) -> None:
        self._open(data, image=True)
        self._out.put("🖼 ")

    def _open(self, data: Any, image: bool) -> None:
        self._out.put("")
        target = data["dest_url"]
        url = live_url(target, data["link_type"])
        self._links.append(_Link(url, target, self._out.size, len(self._out.pieces), image))

    def _end_link(self) -> None:
        link = self._links.pop()
        if self._links and link.image:
            return
        shown = self._out.since(link.piece).removeprefix("🖼 ").strip()
        if not shown and link.url:
            self._out.put(link.target)
        if link.url and not self._links:
            self._out.span(link.start, "text_link", link.url)
        elif link.target and link.target != shown:
            self._out.put(f" ({link.target})" if shown else link.target)


def _folded(span: Span, text: str) -> Span:
    lines = text.count("\n", span.start, span.end) + 1
    if lines > _MANY_LINES or span.end - span.start > _LONG_QUOTE:
        return span._replace(kind="expandable_blockquote")
    return span
