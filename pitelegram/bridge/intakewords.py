"""What is said about messages that cannot be given to Pi as they are."""

from __future__ import annotations

from pitelegram.bridge.marking import plain
from pitelegram.errors import Refusal

EDIT_TOO_LATE = (
    "✏️ Pi had that message already: the edit changes nothing. Send a new message instead."
)
EDIT_TO_COMMAND = (
    "✏️ An edit never runs a command, and the prompt stays as it was. "
    "Send the command as a new message."
)
EDIT_OF_COMMAND = (
    "✏️ That command was done as it was sent; an edit never runs one. Send it as a new message."
)
EDIT_OF_ANSWER = (
    "✏️ That message answered a question, and the answer stays as it was sent. "
    "An edit does not change it."
)
EDIT_EMPTY = "✏️ The edit left nothing, so the prompt stays as it was. 👎 on the message drops it."


def megabytes(size: float) -> str:
    """Return a size as people read it."""
    return f"{size / 1_000_000:.1f}".removesuffix(".0") + " MB"


def refused_file(name: str, refusal: Refusal) -> str:
    """Return why a file is not there: its limit, or Telegram's own reason."""
    limit = refusal.fields.get("limit")
    if refusal.code == "too-large" and type(limit) is int:
        return f"{name}: larger than {megabytes(limit)}, which is all that a bot may fetch here"
    return f"{name}: Telegram does not give it ({plain(str(refusal), 'no reason', 200)})"


def file_given_up(name: str, seconds: float) -> str:
    """Return why a prompt went without a file."""
    return f"{name}: it could not be fetched within {seconds / 60:.0f} minutes"


def file_gone(name: str) -> str:
    """Return what is said of a file of a prompt that is sent again, and is nowhere any more."""
    return f"{name}: it is gone from the disk, and cannot be fetched again"


def file_failed(name: str) -> str:
    """Return what is said of a file that an error of this program cost."""
    return f"{name}: it could not be stored here; the worker's log has the reason"


def not_fetched(lines: list[str]) -> str:
    """Return the notice about files that Pi did not get."""
    listed = "\n".join(f"- {line}" for line in lines)
    return f"📎 Pi did not get everything of that message:\n{listed}"
