"""Whose a button is, by the beginning of its data."""

from __future__ import annotations

SENT = "Sent to Pi."

OURS = (
    "again:",
    "allmenu:",
    "compact:",
    "dlg:",
    "menu:",
    "model:",
    "newsession:",
    "ptd:",
    "queue:",
    "reroute:",
    "reroutenew:",
    "rerouterestore:",
    "section:",
    "session:",
    "sessions:",
    "settings:",
    "status:",
    "tgbtn:",
    "thinking:",
)
"""Beginnings of the data of our own buttons, those of parts that are not running included: pressed
late, they are told so, and are never a prompt."""


def is_ours(data: str) -> bool:
    """Whether a button with that data is, or once was, one of ours."""
    return not data.strip() or data.startswith(OURS)
