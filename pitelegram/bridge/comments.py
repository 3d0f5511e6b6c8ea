"""Hidden comments of an answer: what they ask, and the text without them.

A comment is one whose C{<!--} begins a line, outside fenced code; it ends at the first C{-->},
behind which nothing more is looked for on that line.  The forms of those that ask for something stand
in C{docs/buttons.md}.
"""

from __future__ import annotations

import re
from itertools import groupby

import attrs

from pitelegram.bridge.actions import read_action
from pitelegram.bridge.cutting import clean
from pitelegram.bridge.outgoing import Answer, Button, Speech
from pitelegram.bridge.rendering.messages import visible

HEADING = "☑️ **Choose an option:**"
"""What stands above buttons that have no text of their own."""

_OPEN, _CLOSE = "<!--", "-->"
_BEGINNINGS = ("<", "<!", "<!-")
_MARK = re.compile(r"^(?:<!--| {0,3}(`{3,}|~{3,})([^\n]*))", re.M)
_BLANKS = re.compile(r"[ \t]*")
_MANY_LINES = re.compile(r"\n{3,}")
_BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)+")


def read(text: str) -> Answer:
    """Return what an answer shows and asks for.  Never fails.

    A comment that is malformed is taken out like any other, and none of its buttons is used.

    @param text: Pi's words.
    """
    found = _scan(text)
    shown = _rest(text, found)
    rows: list[tuple[Button, ...]] = []
    speeches: list[Speech] = []
    for comment in found.comments:
        action = read_action(comment)
        rows += action.rows
        if action.speech is not None:
            speeches.append(action.speech)
    if rows and not visible(clean(shown)):
        shown = HEADING
    return Answer(markdown=shown, buttons=tuple(rows), speeches=_with_defaults(speeches))


def visible_prefix(text: str) -> str:
    """Return what may be shown of an answer that is still being written.

    It ends where a comment is open, or may be beginning.
    """
    found = _scan(text)
    line = text.rfind("\n") + 1
    beginning = not found.fence and line >= found.kept and text[line:] in _BEGINNINGS
    return _rest(text[:line] if beginning else text, found)


def finished(text: str) -> str:
    """Return a text in a shape in which nothing that is put behind it belongs to it.

    A comment without an end goes, code without an end is closed.
    """
    found = _scan(text)
    if found.unclosed is not None:
        return text[: found.unclosed]
    return f"{text}\n{found.fence}" if found.fence else text


def _with_defaults(speeches: list[Speech]) -> tuple[Speech, ...]:
    """What one leaves open is as the last one that says it has it."""
    lang = next((each.lang for each in reversed(speeches) if each.lang), None)
    rate = next((each.rate for each in reversed(speeches) if each.rate), None)
    return tuple(
        attrs.evolve(each, lang=each.lang or lang, rate=each.rate or rate) for each in speeches
    )


@attrs.define
class _Scan:
    """A text as far as it was looked at.

    @ivar pieces: C{(is fenced code, text)} of what is shown.
    @ivar kept: where what belongs to no piece yet begins.
    @ivar fence: the marks of the fence that is open.
    @ivar unclosed: where a comment without an end begins.
    """

    pieces: list[tuple[bool, str]] = attrs.Factory(list)
    comments: list[str] = attrs.Factory(list)
    kept: int = 0
    fence: str = ""
    unclosed: int | None = None


def _scan(text: str) -> _Scan:
    """Look for comments and code.

    Each mark is looked at once, and the search for the end of a comment goes on behind it, so the time
    is linear whatever the text is.
    """
    found = _Scan()
    mark = _MARK.search(text)
    while mark is not None:
        at = mark.end()
        if found.fence:
            if _closes(found.fence, mark):
                found.pieces.append((True, text[found.kept : at]))
                found.kept, found.fence = at, ""
        elif mark[0] == _OPEN:
            found.pieces.append((False, text[found.kept : mark.start()]))
            end = text.find(_CLOSE, mark.start() + 2)
            if end < 0:
                found.kept, found.unclosed = len(text), mark.start()
                return found
            found.comments.append(text[at:end])
            at = found.kept = _behind(text, end + len(_CLOSE))
        elif mark[1][0] != "`" or "`" not in mark[2]:
            found.pieces.append((False, text[found.kept : mark.start()]))
            found.kept, found.fence = mark.start(), mark[1]
        mark = _MARK.search(text, at)
    return found


def _rest(text: str, found: _Scan) -> str:
    """Return what is shown of a text."""
    return _shown([*found.pieces, (bool(found.fence), text[found.kept :])])


def _closes(fence: str, mark: re.Match[str]) -> bool:
    found = mark[1] or ""
    return found[:1] == fence[0] and len(found) >= len(fence) and not mark[2].strip(" \t\r")


def _behind(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    return place if found is None else found.end()


def _shown(pieces: list[tuple[bool, str]]) -> str:
    """Put a text together; blank lines in a row become one, but in code."""
    parts = []
    for code, group in groupby(pieces, key=lambda piece: piece[0]):
        part = "".join(text for _, text in group)
        parts.append(part if code else _MANY_LINES.sub("\n\n", part))
    shown = "".join(parts)
    blank = _BLANK_LINES.match(shown)
    return shown[blank.end() if blank else 0 :].rstrip()
