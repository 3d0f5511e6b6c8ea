"""What a follower's state says about its work."""

from __future__ import annotations

from typing import Any


def at_work(state: dict[str, Any]) -> bool | None:
    """Return whether a worker is at work, None before its first heartbeat."""
    if not state:
        return None
    pending = state.get("pending")
    return bool(
        state.get("streaming") is True
        or state.get("compacting") is True
        or state.get("activity") in ("active", "compacting")
        or (type(pending) is int and pending > 0)
    )
