"""A text with spans in parts of a message's size, with nothing lost between them.

Telegram trims blanks at both ends of a message.  What lies between two parts is therefore only the
break they were cut at: blank lines, a line's end, or one blank; a cut inside a word loses nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

import attrs

from pitelegram.bridge.rendering.graphemes import may_part
from pitelegram.bridge.rendering.records import Span

LIMIT = 4096
"""UTF-16 units of one message."""

MAX_SPANS = 100
"""Entities that Telegram keeps in one message."""

_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_PARAGRAPH = re.compile(r"\n{2,}(?=\S)")
_LINE = re.compile(r"\n+(?=\S)")
_INDENTED = re.compile(r"\n")
_SPACE = re.compile(r"(?<=\S) (?=\S)")
_BREAKS = (_PARAGRAPH, _LINE, _INDENTED, _SPACE)

_DECORATION = ("italic", "underline", "strikethrough", "bold", "code")
"""Left out in this order where a part would have too many spans; the others carry content."""


@attrs.frozen
class Part:
    """One message's worth.

    @ivar start: where it begins in the whole text, C{end} where it ends (code points).
    @ivar spans: relative to the part's own text.
    """

    start: int
    end: int
    text: str
    spans: tuple[Span, ...]


def units(text: str) -> int:
    """Return the length of a text as Telegram counts it."""
    return len(text) if text.isascii() else len(text) + len(_ASTRAL.findall(text))


class Measure:
    """Counts UTF-16 units of stretches of one text, without reading them again."""

    def __init__(self, text: str) -> None:
        self._astral = [match.start() for match in _ASTRAL.finditer(text)]
        self._size = len(text)

    def units(self, start: int, end: int) -> int:
        """Return the length of C{text[start:end]} as Telegram counts it."""
        if not self._astral:
            return end - start
        return end - start + bisect_left(self._astral, end) - bisect_left(self._astral, start)

    def room(self, start: int, limit: int) -> int:
        """Return the end of the longest stretch from C{start} within C{limit} units."""
        low, high = start + limit // 2, min(start + limit, self._size)
        low = min(low, high)
        while low < high:
            middle = (low + high + 1) // 2
            if self.units(start, middle) <= limit:
                low = middle
            else:
                high = middle - 1
        return low


def split(
    text: str,
    spans: Sequence[Span],
    limit: int = LIMIT,
    bounds: tuple[int, int] | None = None,
    measure: Measure | None = None,
) -> list[Part]:
    """Cut a text, formatting is closed at a cut and opened again behind it.

    A part has at most L{MAX_SPANS} spans: it ends earlier where that leaves it half full or where
    content hangs on the spans (links, code blocks, quotes, spoilers); else decoration is left out.

    @param spans: sorted by start.
    @param bounds: the stretch of the text to be cut, instead of all of it.
    @param measure: of this text, if it exists already.
    """
    start, stop = bounds or (0, len(text))
    measure = measure or Measure(text)
    active = _Active(spans)
    result: list[Part] = []
    while True:
        while start < stop and text[start] == "\n":
            start += 1
        if start >= stop:
            return result
        room = min(measure.room(start, limit), stop)
        inside, room = active.window(start, room)
        end, following = (stop, stop) if room >= stop else _cut(text, start, room)
        part = _part(text, start, end, inside)
        if part is not None:
            result.append(part)
        start = following


def _cut(text: str, start: int, room: int) -> tuple[int, int]:
    """Return where a part ends that may reach C{room}, and where the next one begins."""
    middle = start + (room - start) // 2
    for pattern in _BREAKS:
        best = None
        for match in pattern.finditer(text, middle, min(room + 64, len(text))):
            if match.start() > room:
                break
            if match.start() > start:
                best = match
        if best is not None:
            return best.start(), best.end()
    end = room
    while end > middle and not (may_part(text, end) and _visible(text, end)):
        end -= 1
    if end == middle:
        end = room
        while end > middle and not may_part(text, end):
            end -= 1
    if end == middle:
        end = room
    return end, end


def _visible(text: str, index: int) -> bool:
    return not text[index - 1].isspace() and not text[index].isspace()


class _Active:
    """The spans of the stretches of a text, which come in order."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = spans
        self._next = 0
        self._open: list[Span] = []

    def window(self, start: int, room: int) -> tuple[list[Span], int]:
        """Return the spans that touch a stretch, and its end, earlier where they are too many."""
        while self._next < len(self._spans) and self._spans[self._next].start < room:
            self._open.append(self._spans[self._next])
            self._next += 1
        self._open = [span for span in self._open if span.end > start]
        inside = [span for span in self._open if span.start < room]
        if len(inside) <= MAX_SPANS:
            return inside, room
        earlier = inside[MAX_SPANS].start
        if earlier < start + (room - start) // 2:
            needed = [span for span in inside if span.kind not in _DECORATION]
            earlier = needed[MAX_SPANS].start if len(needed) > MAX_SPANS else room
        earlier = max(earlier, start + 1)
        return [span for span in inside if span.start < earlier], earlier


def _part(text: str, start: int, end: int, spans: Iterable[Span]) -> Part | None:
    piece = text[start:end].rstrip()
    if not piece:
        return None
    end = start + len(piece)
    clipped = [
        Span(max(span.start, start) - start, min(span.end, end) - start, span.kind, span.extra)
        for span in spans
        if span.start < end and span.end > start
    ]
    return Part(start, end, piece, tuple(_fewer(clipped)))


def _fewer(spans: list[Span]) -> list[Span]:
    for kind in _DECORATION:
        surplus = len(spans) - MAX_SPANS
        if surplus <= 0:
            break
        spans = list(_without(spans, kind, surplus))
    return spans[:MAX_SPANS]


def _without(spans: Iterable[Span], kind: str, surplus: int) -> Iterator[Span]:
    for span in spans:
        if surplus and span.kind == kind:
            surplus -= 1
        else:
            yield span
