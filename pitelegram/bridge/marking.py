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
_UNSEEN = r"\s\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
_WORDS = "|".join(word.replace(" ", r"[\s_-]*") for word in TAGS)
_FORGED = re.compile(
    # Blanks that are no line ends: many empty lines must not cost the square of their number.
    rf"(\A|[{_LINE_END}])((?:(?![{_LINE_END}])[{_UNSEEN}])*)"
    rf"(?=[\[［【][{_UNSEEN}]*(?:{_WORDS})[{_UNSEEN}]*[\]|:］｜：】])",
    re.IGNORECASE,
)


def guard(text: str) -> str:
    """Return C{text} with a backslash before every bracket that begins a line like a tag of ours."""
    return _FORGED.sub(lambda found: f"{found[1]}{found[2]}\\", text)


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
