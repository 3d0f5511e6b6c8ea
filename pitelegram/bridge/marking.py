"""What others wrote, made safe to stand in a prompt beside our own tags.

A prompt's structure is told by tags at the beginning of lines (L{pitelegram.bridge.prompt}).  Two
rules keep them ours: names are made plain (no brackets, bars, line ends, direction marks), and a line
of text that begins like a tag gets a backslash before its bracket.  Nothing else in a text changes.
"""

from __future__ import annotations

import re
import unicodedata

TAGS = (
    "telegram",
    "attachments",
    "not delivered",
    "outputs",
    "forward",
    "reply",
    "voice",
    "time",
    "callback",
    "sticker",
    "location",
    "venue",
    "contact",
    "poll",
    "dice",
    "story",
    "checklist",
    "paid media",
    "game",
    "invoice",
    "giveaway",
    "message",
)
"""Every word that a tag of ours begins with."""

NAME_LENGTH = 64
OUTPUT_LENGTH = 12_000

_JOINER = "\u200d"
_DROPPED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_BRACKETS = re.compile(r"[\[\]|［］｜【】]+")
_LINE_END = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_INVISIBLE = (
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
)
"""Characters that nobody sees, whatever Unicode calls them."""
_UNSEEN = rf"\s\x00-\x1f\x7f-\x9f{_INVISIBLE}"
_HIDDEN = re.compile(rf"[\x00-\x08\x0e-\x1b\x7f-\x9f{_INVISIBLE}]")
_WORDS = "|".join(word.replace(" ", r"[\s_-]*") for word in TAGS)
_OPENS = re.compile(
    # Blanks that are no line ends: many empty lines must not cost the square of their number.
    rf"(?:\A|[{_LINE_END}])(?:(?![{_LINE_END}])[{_UNSEEN}])*(?=[\[［【〔〖⟦❲⁅])"
)
_TAG = re.compile(rf".\s*(?:{_WORDS})\s*[\]|:】〕〗⟧❳⁆]")
_LONGEST_TAG = 64


def guard(text: str) -> str:
    """Return C{text} with a backslash before every bracket that begins a line like a tag of ours."""

    def escaped(found: re.Match[str]) -> str:
        return f"{found[0]}\\" if _TAG.match(_line_at(text, found.end())) else found[0]

    return _OPENS.sub(escaped, text)


def seen_as(text: str) -> str:
    """Return what a text looks like: nothing invisible, no wide or styled letters, no case."""
    return unicodedata.normalize("NFKC", _HIDDEN.sub("", text)).casefold()


def _line_at(text: str, start: int) -> str:
    """Return the beginning of a line as it looks, long enough for any tag."""
    seen = ""
    for place in range(start, len(text)):
        if text[place] in _LINE_END or len(seen) >= _LONGEST_TAG:
            break
        seen += seen_as(text[place])
    return seen


def plain(name: object, default: str = "unknown", limit: int = NAME_LENGTH) -> str:
    """Return a name as one short line that cannot close a tag or turn the reading direction.

    @param default: for what is no text or has nothing left.
    """
    if not isinstance(name, str):
        return default
    kept = "".join(
        " " if char in _LINE_END or char == "\t" else char
        for char in name[: limit * 8]
        if char in _LINE_END
        or char in ("\t", _JOINER)
        or unicodedata.category(char) not in _DROPPED
    )
    words = " ".join(_BRACKETS.sub(" ", kept).split()).strip(_JOINER + " ")
    return shorten(words, limit) or default


def shorten(text: str, limit: int) -> str:
    """Return C{text}, cut to C{limit} characters and an ellipsis where it is longer."""
    return text if len(text) <= limit else text[:limit].rstrip() + "…"


def bounded(output: str) -> str:
    """Return an output within its bound; what was cut is counted."""
    if len(output) <= OUTPUT_LENGTH:
        return output
    return f"{output[:OUTPUT_LENGTH]}… [truncated {len(output) - OUTPUT_LENGTH} chars]"
