"""Short lines about a run: retries, compactions, and the end of a process in the middle of it."""

from __future__ import annotations

from typing import Any

from pitelegram.bridge.cutting import shorten
from pitelegram.bridge.failures import reason_of
from pitelegram.bridge.menus.status import amount
from pitelegram.pi.observing import CompactionStep, Retry

INTERRUPTED = "⚠️ Interrupted: this worker's process ended here."
COMPACTING = "🗜 The context is nearly full; Pi compacts it…"

_MOST = 4000
"""UTF-16 units of a message before a line is added."""


def retry_line(retry: Retry) -> str:
    """Return what is shown while Pi waits to ask the model again."""
    seconds = max(1, round(retry.delay))
    return f"🔁 Retry {retry.attempt} of {retry.of} in {seconds} s: {reason_of(retry.reason, 200)}"


def compaction_line(step: CompactionStep) -> str:
    """Return what is shown of an automatic compaction."""
    if not step.over:
        return COMPACTING
    if step.aborted:
        return "🗜 Compaction cancelled."
    if step.error:
        reason = reason_of(step.error, 400)
        return f"🗜 Compaction failed: {reason}\n/compact tries again, /new begins afresh."
    if step.before and step.after:
        before, after = amount(step.before), amount(step.after)
        return f"🗜 Pi compacted the context: {before} → {after} tokens."
    return "🗜 Pi compacted the context."


def interrupted(params: dict[str, Any]) -> dict[str, Any]:
    """Return a message with the word that its process ended; its style stays."""
    text = str(params.get("text", ""))
    short = shorten(text, _MOST)
    kept = params if short == text else {**params, "entities": []}
    return {**kept, "text": f"{short}\n{INTERRUPTED}"}
