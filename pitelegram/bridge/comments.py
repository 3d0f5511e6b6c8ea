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
    shown, comments = _scan(text, final=True)
    rows: list[tuple[Button, ...]] = []
    speeches: list[Speech] = []
    for comment in comments:
        action = read_action(comment)
        rows += action.rows
        if action.speech is not None:
            speeches.append(action.speech)
    if rows and not visible(shown):
        shown = HEADING
    return Answer(markdown=shown, buttons=tuple(rows), speeches=_with_defaults(speeches))


def visible_prefix(text: str) -> str:
    """Return what may be shown of an answer that is still being written.

    It ends where a comment is open, or may be beginning.
    """
    return _scan(text, final=False)[0]


def _with_defaults(speeches: list[Speech]) -> tuple[Speech, ...]:
    """What one leaves open is as the last one that says it has it."""
    lang = next((each.lang for each in reversed(speeches) if each.lang), None)
    rate = next((each.rate for each in reversed(speeches) if each.rate), None)
    return tuple(
        attrs.evolve(each, lang=each.lang or lang, rate=each.rate or rate) for each in speeches
    )


def _scan(text: str, final: bool) -> tuple[str, list[str]]:
    """Return a text without its comments, and those.

    Each mark is looked at once, and the search for the end of a comment goes on behind it, so the time
    is linear whatever the text is.
    """
    pieces: list[tuple[bool, str]] = []
    comments: list[str] = []
    kept, fence = 0, ""
    mark = _MARK.search(text)
    while mark is not None:
        at = mark.end()
        if fence:
            if _closes(fence, mark):
                pieces.append((True, text[kept:at]))
                kept, fence = at, ""
        elif mark[0] == _OPEN:
            pieces.append((False, text[kept : mark.start()]))
            end = text.find(_CLOSE, mark.start() + 2)
            if end < 0:
                return _shown(pieces), comments
            comments.append(text[at:end])
            at = kept = _behind(text, end + len(_CLOSE))
        elif mark[1][0] != "`" or "`" not in mark[2]:
            pieces.append((False, text[kept : mark.start()]))
            kept, fence = mark.start(), mark[1]
        mark = _MARK.search(text, at)
    rest = text[kept:] if final or fence else _without_beginning(text, kept)
    return _shown([*pieces, (bool(fence), rest)]), comments


def _closes(fence: str, mark: re.Match[str]) -> bool:
    found = mark[1] or ""
    return found[:1] == fence[0] and len(found) >= len(fence) and not mark[2].strip(" \t\r")


def _behind(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    return place if found is None else found.end()


def _without_beginning(text: str, start: int) -> str:
    """Return the rest of a text without a last line that may become a comment."""
    line = text.rfind("\n") + 1
    cut = line >= start and text[line:] in _BEGINNINGS
    return text[start : line if cut else len(text)]


def _shown(pieces: list[tuple[bool, str]]) -> str:
    """Put a text together; blank lines in a row become one, but in code."""
    parts = []
    for code, group in groupby(pieces, key=lambda piece: piece[0]):
        part = "".join(text for _, text in group)
        parts.append(part if code else _MANY_LINES.sub("\n\n", part))
    shown = "".join(parts)
    blank = _BLANK_LINES.match(shown)
    return shown[blank.end() if blank else 0 :].rstrip()
