"""What is changed in Markdown source before Telegram parses it itself."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Any, NamedTuple

from pitelegram.bridge.rendering.links import live_url
from pitelegram.bridge.rendering.parsing import Events

_BREAK = re.compile(rb"<br\s*/?>", re.I)
_SPECIAL = re.compile(rb"[<$]")
_MATH = re.compile(r"[\\^{}]")
_QUOTED = re.compile(rb"^( {0,3}>) (?=[^\s>])", re.M)
_CODE_LEVEL = 3
_STARTS = frozenset(("List", "CodeBlock", "Item", "BlockQuote", "Link", "Image"))


class Edit(NamedTuple):
    """Bytes C{start:end} of the source become C{new}."""

    start: int
    end: int
    new: bytes


class Refused(Exception):
    """This text has no rich form."""


class Edits:
    """Collects the changes of a whole source.

    Raw HTML becomes text, images become links, links that may not be pressed show their target,
    link references become inline links (their definition may come to lie in another message),
    C{$} that is no math is escaped, display math of several lines becomes a fence, the blank behind
    C{>} goes, and markers of nested lists are set off by no-break blanks.  Code stays as it is.

    @raise Refused: by L{collect}, for code in deeply nested lists: the markers' blanks would make
        text of it.
    """

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._edits: list[Edit] = []
        self._lists = 0
        self._code = 0
        self._links = 0

    def collect(self, events: Events) -> list[Edit]:
        """Return the changes in order; they do not overlap."""
        for kind, name, value, start, end in events:
            if kind == "start":
                if name in _STARTS:
                    self._begin(name, value, start, end)
            elif kind == "end":
                self._leave(name)
            elif name == "Text":
                if not self._code:
                    self._text(start, end)
            elif name in ("Html", "InlineHtml"):
                self._html(start, end)
            elif name == "InlineMath" and not _MATH.search(value):
                self._add(start, start + 1, b"\\$")
                self._add(end - 1, end, b"\\$")
            elif name == "DisplayMath" and "\n" in value:
                self._display(start, end)
        return sorted(self._edits)

    def _add(self, start: int, end: int, new: bytes) -> None:
        self._edits.append(Edit(start, end, new))

    def _begin(self, name: str, data: Any, start: int, end: int) -> None:
        if name == "List":
            self._lists += 1
        elif name == "CodeBlock":
            self._code += 1
            if self._lists >= _CODE_LEVEL:
                raise Refused
        elif name == "Item" and self._lists > 1:
            self._nested_item(start)
        elif name == "BlockQuote":
            self._quote(start, end)
        elif name in ("Link", "Image"):
            self._links += 1
            self._link(name == "Image", data, start, end)

    def _leave(self, name: str) -> None:
        if name == "List":
            self._lists -= 1
        elif name == "CodeBlock":
            self._code -= 1
        elif name in ("Link", "Image"):
            self._links -= 1

    def _text(self, start: int, end: int) -> None:
        for match in _SPECIAL.finditer(self._source, start, end):
            at = match.start()
            if at == start and self._source[at - 1 : at] == b"\\":
                continue
            self._add(at, at + 1, b"&lt;" if match.group() == b"<" else b"\\$")

    def _html(self, start: int, end: int) -> None:
        at = start
        while (at := self._source.find(b"<", at, end)) >= 0:
            if not _BREAK.match(self._source, at, end):
                self._add(at, at + 1, b"&lt;")
            at += 1

    def _display(self, start: int, end: int) -> None:
        before = self._source.rfind(b"\n", 0, start) + 1
        after = self._source.find(b"\n", end)
        rest = self._source[end : after if after >= 0 else len(self._source)]
        if self._source[before:start].strip() or rest.strip():
            return
        inner = self._source[start + 2 : end - 2].strip(b"\n")
        if b"```" not in inner:
            self._add(start, end, b"```math\n" + inner + b"\n```")

    def _quote(self, start: int, end: int) -> None:
        line = self._source.rfind(b"\n", 0, start) + 1
        if self._source[line:start].strip():
            return
        for match in _QUOTED.finditer(self._source, line, end):
            self._add(match.end() - 1, match.end(), b"")

    def _nested_item(self, start: int) -> None:
        line = self._source.rfind(b"\n", 0, start) + 1
        blanks = self._source[line:start]
        if blanks and not blanks.strip(b" \t"):
            self._add(line, start, "\u00a0".encode() * len(blanks.expandtabs(4)))

    def _link(self, image: bool, data: Any, start: int, end: int) -> None:
        kind, target = data["link_type"], data["dest_url"]
        live = live_url(target, kind)
        if kind in ("Autolink", "Email"):
            if not live:
                self._add(start, start + 1, b"&lt;")
            return
        if image and self._links > 1:
            closing = self._source.rfind(b"](", start, end)
            self._add(start, start + 2, b"")
            self._add(closing if closing > 0 else end - 1, end, b"")
            return
        if image:
            self._add(start, start + 1, b"")
        opening = start + image
        if kind == "Inline":
            if not live:
                self._add(opening, opening + 1, b"\\[")
            return
        if kind == "Collapsed" and self._source[end : end + 2] == b"[]":
            end += 2
        address = f"({target})" if live and " " not in target else ""
        if not address:
            self._add(opening, opening + 1, b"\\[")
        last = self._source.rfind(b"[", start, end)
        if kind != "Shortcut" and last > opening:
            self._add(last, end, address.encode() or f" ({target})".encode())
        else:
            self._add(end, end, address.encode() or f" ({target})".encode())


def edited(source: bytes, edits: list[Edit], start: int, end: int) -> str:
    """Return C{source[start:end]} with the changes that lie in it."""
    pieces, at = [], start
    for index in range(bisect_left(edits, (start,)), len(edits)):
        edit = edits[index]
        if edit.start >= end and not (edit.start == edit.end == end):
            break
        if edit.start < at:
            continue
        pieces += [source[at : edit.start], edit.new]
        at = edit.end
    pieces.append(source[at:end])
    return b"".join(pieces).decode("utf-8", "replace")
