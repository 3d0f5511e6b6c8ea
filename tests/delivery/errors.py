"""Answers that are failures."""

from __future__ import annotations

from pitelegram.errors import CertainlyUnsent, Refused, Uncertain

SEND = "sendMessage"


def unreachable() -> CertainlyUnsent:
    """Return the error of a call that never left."""
    return CertainlyUnsent(SEND, 0, "the connection was refused")


def refused(description: str, code: int = 400) -> Refused:
    """Return Telegram's definite refusal."""
    return Refused(SEND, code, f"Bad Request: {description}")


def lost_answer() -> Uncertain:
    """Return the error of a call whose answer never came."""
    return Uncertain(SEND, 0, "no complete answer in time")
