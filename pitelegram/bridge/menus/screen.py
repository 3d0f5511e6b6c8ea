"""What every menu is made of: text with entities, and rows of buttons with the way back first.

Text is never markup: what stands in bold or in a fixed width is told by entities, so nothing that a
user, a model or a file is called can break a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import attrs

from pitelegram.bridge.cutting import LIMIT, clean, shorten, utf16_length

MAX_BUTTONS = 100
"""Telegram's limit for one message."""
MAX_DATA = 64
"""Bytes of callback data."""
MAX_LABEL = 64
"""UTF-16 units of a label; a longer one is unreadable on a phone."""

BOLD, CODE, PRE = "bold", "code", "pre"

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Text:
    """A message's text, put together piece by piece; each piece is plain or has one style."""

    def __init__(self) -> None:
        self._pieces: list[tuple[str, str]] = []

    def plain(self, text: str) -> Text:
        """Add text as it is."""
        return self._add(text, "")

    def bold(self, text: str) -> Text:
        """Add text in bold."""
        return self._add(text, BOLD)

    def code(self, text: str) -> Text:
        """Add text in a fixed width."""
        return self._add(text, CODE)

    def pre(self, text: str) -> Text:
        """Add a block of text in a fixed width."""
        return self._add(text, PRE)

    def join(self, other: Text) -> Text:
        """Add another text."""
        self._pieces += other._pieces
        return self

    def _add(self, text: str, style: str) -> Text:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        text = _CONTROL.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n"))
        if text:
            self._pieces.append((text, style))
        return self

    def as_params(self) -> dict[str, Any]:
        """Return C{text} and C{entities}, within the limit of one message."""
        text, entities, room = "", [], LIMIT
        for piece, style in self._pieces:
            fits = utf16_length(piece) <= room
            piece = piece if fits else shorten(piece, room)
            if style and piece.strip():
                start = utf16_length(text)
                entities.append({"type": style, "offset": start, "length": utf16_length(piece)})
            text += piece
            room -= utf16_length(piece)
            if not fits or room < 2:
                break
        return {"text": text, **({"entities": entities} if entities else {})}


@attrs.frozen
class Button:
    """An inline button.

    @ivar data: callback data; the whole state that a press needs, so that it outlives any process.
    """

    label: str
    data: str = attrs.field()

    @data.validator
    def _fits(self, _: object, value: str) -> None:
        if not 0 < len(value.encode()) <= MAX_DATA:
            raise ValueError("callback data has 1 to 64 bytes")


Row = tuple[Button, ...]


@attrs.frozen
class Screen:
    """One menu.  Rows beyond Telegram's limit are left out from the end: the way back stays."""

    text: Text
    rows: tuple[Row, ...] = ()

    def as_params(self) -> dict[str, Any]:
        """Return what C{sendMessage} and C{editMessageText} take."""
        return {
            **self.text.as_params(),
            "reply_markup": {"inline_keyboard": self._keyboard()},
            "link_preview_options": {"is_disabled": True},
        }

    def _keyboard(self) -> list[list[dict[str, str]]]:
        kept, room = [], MAX_BUTTONS
        for row in self.rows:
            room -= len(row)
            if room < 0:
                break
            kept.append([{"text": label(b.label), "callback_data": b.data} for b in row])
        return kept


def label(text: str, limit: int = MAX_LABEL) -> str:
    """Return text for a button: on one line, never empty."""
    return shorten(" ".join(clean(text).split()), limit) or "…"


def marked(chosen: bool, words: str, on: str = "🟢 ", off: str = "") -> str:
    """Return a label with the mark of what is chosen in front."""
    return f"{on if chosen else off}{words}"


def in_rows(buttons: Iterable[Button], size: int) -> list[Row]:
    """Return buttons in rows of at most C{size}."""
    found = list(buttons)
    return [tuple(found[start : start + size]) for start in range(0, len(found), size)]


def page_count(items: int, size: int) -> int:
    """Return how many pages hold that many items; at least one."""
    return max(1, -(-items // size))


def pager(prefix: str, page: int, pages: int, middle: str) -> list[Row]:
    """Return the row that turns pages in a ring; none for a single page.

    @param prefix: callback data without the page's number.
    @param middle: callback data of the button that says which page this is.
    """
    if pages < 2:
        return []
    return [
        (
            Button("⬅️", f"{prefix}{(page - 1) % pages}"),
            Button(f"{page + 1}/{pages}", middle),
            Button("➡️", f"{prefix}{(page + 1) % pages}"),
        )
    ]


MAIN_MENU = Button("⬆️ Main menu", "menu:back")
