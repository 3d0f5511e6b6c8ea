"""The text of a message while it grows: line breaks, indentation, markers and spans."""

from __future__ import annotations

from pitelegram.bridge.rendering.records import Span

MAX_INDENT = 6
"""Levels of a nested list that are shown by indentation; deeper ones stand below each other."""

MAX_MARKERS = 8
"""Lists and quotes that open on one line; markers of more of them are left out."""


class Writer:
    """Collects pieces of text.  Line breaks are asked for and written before the next piece.

    @ivar size: code points so far, without breaks that wait.
    """

    def __init__(self) -> None:
        self.size = 0
        self.spans: list[Span] = []
        self.pieces: list[str] = []
        self._breaks = 0
        self._markers: list[str] = []
        self._marker_level = 0
        self._level = 0
        self._styles: dict[str, int] = {}
        self._nested: dict[str, int] = {}
        self._quotes = 0
        self._quote_start = 0
        self._quote_waits = False

    def put(self, text: str) -> None:
        """Append text that has no line break in it, or whose lines need no indentation."""
        if self._breaks or self._markers or self._quote_waits:
            self._begin()
        self.pieces.append(text)
        self.size += len(text)

    def lines(self, text: str) -> None:
        """Append text line by line."""
        for number, line in enumerate(text.split("\n")):
            if number:
                self.line()
            if line:
                self.put(line)

    def line(self) -> None:
        """The next piece begins on a new line."""
        self._breaks = self._breaks or 1

    def block(self) -> None:
        """The next piece begins a block: a blank line before it, but not inside a list."""
        if not self._markers:
            self._breaks = self._breaks or 1 if self._level else 2

    def _begin(self, indented: bool = True) -> None:
        breaks, self._breaks = self._breaks, 0
        head = "\n" * breaks if self.size else ""
        level = self._marker_level if self._markers else self._level
        if indented and (breaks or not self.size) and level:
            head += "  " * (min(level, MAX_INDENT) - bool(self._markers))
        head += "".join(self._markers)
        self._markers.clear()
        if head:
            self.pieces.append(head)
            self.size += len(head)
        if self._quote_waits:
            self._quote_waits, self._quote_start = False, self.size

    def open_style(self, kind: str) -> None:
        """Begin a style; one inside its own kind changes nothing."""
        depth = self._nested[kind] = self._nested.get(kind, 0) + 1
        if depth == 1:
            self.put("")
            self._styles[kind] = self.size

    def close_style(self, kind: str) -> None:
        """End a style."""
        self._nested[kind] -= 1
        if not self._nested[kind]:
            self.span(self._styles.pop(kind), kind)

    def span(self, start: int, kind: str, extra: str = "") -> None:
        """End a span here that began at C{start}; an empty one is dropped."""
        if self.size > start:
            self.spans.append(Span(start, self.size, kind, extra))

    def code(self, text: str, plain: bool = False) -> None:
        """Append inline code; no style lies over it, as Telegram allows none.

        @param plain: without its span, inside a link.
        """
        self.put("")
        if plain:
            self.put(text)
            return
        self._break_styles()
        start = self.size
        self.put(text)
        self.span(start, "code")
        self._resume_styles()

    def _break_styles(self) -> None:
        for kind, start in self._styles.items():
            self.span(start, kind)

    def _resume_styles(self) -> None:
        for kind in self._styles:
            self._styles[kind] = self.size

    def pre(self, text: str, language: str = "") -> int:
        """Append a block of code; a quote around it is interrupted.  Return where it begins."""
        if self._markers:
            self._begin()
            self.line()
        self.block()
        self._end_quote()
        self._break_styles()
        self._begin(indented=False)
        start = self.size
        self.pieces.append(text)
        self.size += len(text)
        self.span(start, "pre", language)
        self._resume_styles()
        self._quote_waits = self._quotes > 0
        self.block()
        return start

    def open_quote(self) -> None:
        """Begin a quote; one inside another is only marked, as Telegram nests none."""
        self.block()
        self._quotes += 1
        if self._quotes == 1:
            self._quote_waits = True
        elif len(self._markers) < MAX_MARKERS:
            self._marker_level = self._level + 1 if self._level else 0
            self._markers.append("» ")

    def close_quote(self) -> None:
        """End a quote."""
        if self._quotes == 1:
            self._end_quote()
        self._quotes -= 1
        self.block()

    def _end_quote(self) -> None:
        if self._quotes and not self._quote_waits:
            self.span(self._quote_start, "blockquote")
        self._quote_waits = False

    def open_list(self) -> None:
        """One level deeper."""
        self.block()
        self._level += 1

    def close_list(self) -> None:
        """One level back."""
        self._level -= 1
        self.block()

    def item(self, marker: str) -> None:
        """Begin an item of a list on a line of its own, or behind the marker that waits."""
        if not self._markers:
            self.line()
            self._marker_level = self._level
        if len(self._markers) < MAX_MARKERS:
            self._markers.append(marker)

    def task(self, marker: str) -> None:
        """Put a box for the bullet, or behind the number, of the item that begins."""
        if self._markers and self._markers[-1][0] in "•◦▪":
            self._markers[-1] = marker
        else:
            self._markers.append(marker)

    def end_item(self) -> None:
        """End an item; an empty one shows its marker."""
        if self._markers:
            self.put("")

    def text(self) -> str:
        """Return all of it."""
        return "".join(self.pieces)

    def since(self, piece: int) -> str:
        """Return the text from the C{piece}-th piece on."""
        return "".join(self.pieces[piece:])
