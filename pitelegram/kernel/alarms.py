"""Which words need somebody: they make a sound, all others are there to be read when one looks."""

from __future__ import annotations

SIGNS = ("⚠️", "💥", "❌")
"""What goes wrong begins with one of these; progress and confirmations do not."""


def is_alarm(text: str) -> bool:
    """Whether a notice should be heard."""
    return text.startswith(SIGNS)
