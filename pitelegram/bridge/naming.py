"""What C{/name} says and shows."""

from __future__ import annotations

from typing import Any

from pitelegram.bridge.cutting import clean
from pitelegram.bridge.questions import CANCEL
from pitelegram.errors import Refusal

ASK = "✏️ What is this Thread to be called? Send the new name as a reply to this message."
CANCEL_LABEL = "✖️ Cancel"
RESET_LABEL = "♻️ Reset"

CANCELLED = "✖️ The name stays as it is."
REPLACED = "✖️ Closed: the name was settled otherwise."
MOVED = "✖️ Closed: this worker has another Thread now."
TEXT_ONLY = "✍️ A name is a plain text, as a reply to the question; nothing was changed."
HOW = "⚠️ The question could not be asked. Write the name behind the command: /name Navigator"
NO_THREADS = "⚠️ This chat has no Threads, so there is none to be named."
WRONG_PLACE = "⚠️ Write /name in the Thread that is to be named."
TOO_OLD = "⚠️ The daemon cannot rename Threads for its workers; it is older than this worker."
NOBODY_KNOWS = "⚠️ The daemon did not answer: look at the title before you try again."

_RESET = "o"
_MAX_TOAST = 200


def keyboard(key: str, with_reset: bool) -> dict[str, Any]:
    """Return the buttons of the question.

    @param key: 12 hex digits, as with the questions of Pi's extensions.
    @param with_reset: the Thread has a name that was given.
    """
    rows = [[{"text": CANCEL_LABEL, "callback_data": f"dlg:{key}:{CANCEL}"}]]
    if with_reset:
        rows.insert(0, [{"text": RESET_LABEL, "callback_data": f"dlg:{key}:{_RESET}0"}])
    return {"inline_keyboard": rows}


def wants_reset(action: str) -> bool:
    """Whether a press of the question was the one of C{♻️ Reset}."""
    return action == _RESET


def done(title: str, manual: str | None) -> str:
    """Return what is said when it was done.

    @param manual: None: the Thread has its own title again.
    """
    if manual is None:
        return f"♻️ This Thread has its own title again: “{clean(title)}”."
    return f"✏️ This Thread is called “{clean(title)}” now."


def refused(refusal: Refusal) -> str:
    """Return why it was not done."""
    wait: Any = refusal.fields.get("retryAfter")
    if refusal.code == "rate-limited":
        seconds = max(1, round(wait)) if isinstance(wait, int | float) else 10
        return f"⏳ Telegram lets no title be changed for another {seconds} s; try again then."
    return f"⚠️ The name was not changed: {refusal}"


def later(seconds: float) -> str:
    """Return what is said when the question cannot be asked now."""
    return f"⏳ Telegram is busy for another {max(1, round(seconds))} s; write /name again then."


def toast(text: str) -> str:
    """Return a text that fits above a button."""
    return text[:_MAX_TOAST]
