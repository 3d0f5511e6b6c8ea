"""Long text in pieces that Telegram takes, with nothing lost between them.

Telegram trims blanks at both ends of every message.  So a piece ends only where that loses nothing
but the break itself: at one line break or run of them before a line that is not indented, at one
space between words, or between two characters that are not blank.
"""

from __future__ import annotations

import re
import unicodedata

LIMIT = 4096
"""Most UTF-16 units of one message; never more than Telegram's own limit, whatever it counts."""

_PARAGRAPH = re.compile(r"\n{2,}(?=\S)")
_LINE = re.compile(r"(?<!\n)\n(?=\S)")
_SPACE = re.compile(r"(?<=\S) (?=\S)")
_BREAKS = (_PARAGRAPH, _LINE, _SPACE)

_JOINER = "\u200d"


def utf16_length(text: str) -> int:
    """Return the length of C{text} as Telegram counts offsets."""
    return len(text) + sum(character > "\uffff" for character in text)


def clean(text: str) -> str:
    """Return C{text} without what Telegram would change by itself.

    Line ends become LF, other control characters spaces, lone surrogates U+FFFD; blank lines around
    it and blanks behind it go.
    """
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", " ", text)
    return re.sub(r"\A(?:[^\S\n]*\n)+", "", text).rstrip()


def pieces(text: str, limit: int = LIMIT) -> list[str]:
    """Cut C{text} into non-blank pieces of at most C{limit} UTF-16 units, in order.

    @param text: any text; it is L{clean}ed first.  A blank one gives no pieces.
    """
    rest = clean(text)
    result = []
    start = 0
    while start < len(rest):
        end, following = _cut(rest, start, limit)
        piece = rest[start:end].rstrip()
        if piece:
            result.append(piece)
        start = following
    return result


def _cut(text: str, start: int, limit: int) -> tuple[int, int]:
    """Return where the piece that begins at C{start} ends, and where the next one begins."""
    room = _fitting(text, start, limit)
    if room == len(text):
        return room, room
    middle = start + (room - start) // 2
    for pattern in _BREAKS:
        best = None
        for match in pattern.finditer(text, middle, min(room + 64, len(text))):
            if match.start() > room:
                break
            best = match
        if best is not None:
            return best.start(), best.end()
    end = room
    while end > middle and not _may_part(text, end):
        end -= 1
    if end == middle:
        end = room
    return end, end


def _fitting(text: str, start: int, limit: int) -> int:
    """Return the end of the longest part from C{start} that fits into C{limit} UTF-16 units."""
    end = min(start + limit, len(text))
    while (units := utf16_length(text[start:end])) > limit:
        end -= max(1, (units - limit) // 2)
    while end < len(text) and utf16_length(text[start : end + 1]) <= limit:
        end += 1
    return end


def _may_part(text: str, index: int) -> bool:
    """Whether a cut before C{index} neither loses a blank nor tears one visible sign apart."""
    before, after = text[index - 1], text[index]
    if before.isspace() or after.isspace():
        return False
    return not (
        unicodedata.combining(after)
        or unicodedata.category(after) in ("Mn", "Me", "Mc")
        or _JOINER in (before, after)
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or "\ufe00" <= after <= "\ufe0f"
        or (_is_flag(before) and _is_flag(after))
    )


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def shorten(text: str, limit: int, mark: str = "…") -> str:
    """Return C{text} in at most C{limit} UTF-16 units, with C{mark} at its end where it was cut."""
    if utf16_length(text) <= limit:
        return text
    end = _fitting(text, 0, limit - utf16_length(mark))
    while end > 1 and not _may_part(text, end):
        end -= 1
    return text[:end].rstrip() + mark
