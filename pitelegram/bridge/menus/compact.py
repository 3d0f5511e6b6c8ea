"""Compacting the session: the question before it, and what is told of it."""

from __future__ import annotations

from pitelegram.bridge.cutting import shorten
from pitelegram.bridge.menus.screen import Button, Screen, Text

STARTED = "🗜 Compaction started."
COMPLETED = "✅ Compaction completed."
CANCELLED = "Compaction cancelled."
BUSY = (
    "Cannot compact while Pi or the Telegram queue is busy. "
    "Wait for queued turns to finish or send /abort first."
)
SHOWN = 500
"""UTF-16 units of the instructions that are shown."""


def failed(reason: str) -> str:
    """Return the notice of a compaction that did not work."""
    return f"Compaction failed: {shorten(reason, 1000)}"


def question(instructions: str, seq: int) -> Screen:
    """Return the confirmation.

    @param seq: the row of the command; it stands for instructions, which do not fit into a button.
    """
    text = Text().bold("Compact session?")
    if instructions:
        text.plain("\n").pre(shorten(instructions, SHOWN))
    data = f"compact:confirm:{seq}"
    return Screen(
        text,
        ((Button("🗜 Yes, compact", data),), (Button("❌ No", "compact:cancel"),)),
    )
