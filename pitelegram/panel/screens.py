"""The panel's screens as data.  Pure functions: a view in, a L{Screen} out.

Callback data is C{ptd:<verb>[:<argument>]}, well under Telegram's 64 bytes.  Every screen but the
closed one offers a way back, in its last row.
"""

from __future__ import annotations

from typing import Any

import attrs

MAX_TEXT = 4096
"""Telegram's limit for a text message, counted in UTF-16 units here (never more than its own)."""

MAX_BUTTONS = 100
"""More buttons than this are dropped by clients."""

LABEL_LIMIT = 64
"""UTF-16 units of a button's label; a longer one is unreadable on a phone."""


@attrs.frozen
class Button:
    """An inline button."""

    label: str
    data: str


@attrs.frozen
class Screen:
    """Plain text and rows of buttons; the way back stands in the last row.

    Too many buttons are cut before that row, so that nobody is left without a way back.

    @ivar family: what an action that ends later may replace: the screens of its own family.
    """

    text: str
    rows: tuple[tuple[Button, ...], ...] = ()
    family: str = ""

    def as_params(self) -> dict[str, Any]:
        """Return C{text} and C{reply_markup} as the Bot API wants them, within its limits."""
        kept = [[_inline(button) for button in row] for row in self._fitting()]
        return {"text": clip(self.text), "reply_markup": {"inline_keyboard": kept}}

    def _fitting(self) -> list[tuple[Button, ...]]:
        if not self.rows:
            return []
        *rows, last = self.rows
        kept, room = [], MAX_BUTTONS - len(last)
        for row in rows:
            room -= len(row)
            if room < 0:
                break
            kept.append(row)
        return [*kept, last]


def _inline(button: Button) -> dict[str, str]:
    return {"text": clip(button.label, LABEL_LIMIT), "callback_data": button.data}


MENU_BUTTON = Button("↩️ Menu", "ptd:m")
BACK_BUTTON = Button("↩️ Back", "ptd:w:0")


def clip(text: str, limit: int = MAX_TEXT) -> str:
    """Return C{text}, cut with an ellipsis to C{limit} UTF-16 units; broken characters become C{?}."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text.encode("utf-16-le")) // 2 <= limit:
        return text
    cut = text.encode("utf-16-le")[: (limit - 1) * 2].decode("utf-16-le", "ignore")
    return cut + "…"


def menu(note: str = "") -> Screen:
    """The root screen of C{/daemon}."""
    return Screen(
        noted("🛠️ Daemon control", note),
        (
            (Button("👷 Workers", "ptd:w:0"), Button("📁 New worker…", "ptd:b")),
            (Button("ℹ️ Status", "ptd:t"), Button("🧹 Threads", "ptd:th")),
            (Button("✖️ Close", "ptd:x"),),
        ),
    )


def closed() -> Screen:
    """What stays of a panel that was closed."""
    return Screen("✖️ Control panel closed.")


def closing(text: str) -> Screen:
    """A short answer, with the way to the menu."""
    return Screen(text, ((MENU_BUTTON,),))


def status(document: dict[str, Any], own: int = 0) -> Screen:
    """The Status screen from the public status document.

    @param own: how many of the waiting updates are those that asked for the screen.
    """
    polling, outbox, journal = document["polling"], document["outbox"], document["journal"]
    attached = document["attached"]["count"]
    lines = [
        f"ℹ️ Status: {document['health']}",
        "",
        f"Profile: {document['profile']}",
        f"Receiving: {'yes' if polling['receiving'] else 'no'} ({polling['phase']})",
        f"Workers: {len(document['workers'])}"
        + (f" · attached Pis {attached}" if attached else ""),
        f"Waiting updates: {max(0, journal['pending'] - own)} · held {journal['held']}"
        f" · failed {journal['failed']}",
        f"Answers: {outbox['pending']} on their way · {outbox['uncertain']} uncertain"
        f" · {outbox['dead_letter']} refused",
        *(f"⚠️ {problem}" for problem in document["problems"]),
    ]
    return Screen("\n".join(lines), ((MENU_BUTTON,),))


def noted(text: str, note: str) -> str:
    """Return a text with a note above it, if there is one."""
    return f"{note}\n\n{text}" if note else text
