"""Pages of a screen."""

from __future__ import annotations

from pitelegram.panel.screens import Button


def page_of(text: str) -> int:
    """Return the page number that a button carries; what is no number is the first."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 0


def page_row(prefix: str, page: int, pages: int) -> tuple[Button, ...]:
    """Return the buttons to the page before and after, in a ring."""
    return (
        Button("⬅️", f"{prefix}{(page - 1) % pages}"),
        Button("➡️", f"{prefix}{(page + 1) % pages}"),
    )
