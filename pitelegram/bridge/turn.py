"""What Pi said in one run: what comes before its answer, and the answer.

The same rules serve a run that was watched and one that is read from a session file afterwards.
"""

from __future__ import annotations

from typing import Any

import attrs

from pitelegram.bridge.comments import finished
from pitelegram.bridge.failures import failure_text
from pitelegram.bridge.footer import Spent

NO_TEXT = "✅ Done. Pi wrote no text."
DONE = "✅ Done."
ABORTED = "⏹ Aborted."
CUT_SHORT = "⚠️ The model's limit on the length of an answer was reached; this one is cut short."

_WHOLE = ("stop", "length")


@attrs.define
class _Stretch:
    """Everything between two messages of the user."""

    final: dict[str, Any] | None = None


class Turn:
    """Collects the messages of one run, in order.

    @ivar spent: what they cost.
    """

    def __init__(self) -> None:
        self._stretches = [_Stretch()]
        self._commented = False
        self.spent = Spent()

    def user(self) -> None:
        """A message of the user begins another stretch: what was said before it stays an answer."""
        self._stretches.append(_Stretch())

    def assistant(self, message: dict[str, Any]) -> list[str]:
        """Take one finished message of the model; return what is certainly not the answer.

        That is what it said before it used a tool, and an answer behind which it went on by itself.
        No part of the final answer repeats it.

        @param message: C{text}, C{stopReason}, C{errorMessage?}, C{usage?}.  An error that was
            followed by another message was retried, and is told nobody.
        """
        stretch = self._stretches[-1]
        self.spent.add(message.get("usage"))
        before, stretch.final = stretch.final, message
        said = [_own(before)] if before is not None and before.get("stopReason") in _WHOLE else []
        if message.get("stopReason") == "toolUse":
            stretch.final = None
            said.append(_own(message))
        comments = [text for text in said if text]
        self._commented = self._commented or bool(comments)
        return comments

    @property
    def empty(self) -> bool:
        """Whether there is nothing to answer, not even that the model failed."""
        return not self._commented and not any(stretch.final for stretch in self._stretches)

    @property
    def failure(self) -> str | None:
        """The answer where it is nothing but a failure."""
        parts = self._parts()
        last = self._stretches[-1].final
        failed = last is not None and last.get("stopReason") == "error"
        return parts[0] if failed and len(parts) == 1 and not _own(last) else None

    def answer(self, aborted: bool = False) -> str:
        """Return the final answer, never blank.

        @param aborted: the run was ended by an abort, whatever its messages say.
        """
        parts = self._parts()
        if aborted and ABORTED not in parts:
            parts.append(ABORTED)
        if len(parts) > 1:
            parts = [*(finished(part) for part in parts[:-1]), parts[-1]]
        text = "\n\n".join(part for part in parts if part.strip())
        return text or (DONE if self._commented else NO_TEXT)

    def _parts(self) -> list[str]:
        parts: list[str] = []
        for stretch in self._stretches:
            failed = (stretch.final or {}).get("stopReason") == "error"
            new = _answer_of(stretch.final)
            if failed and new == parts[-1:]:
                continue  # several prompts of one run that failed the same way
            parts += new
        return parts


def _own(message: dict[str, Any] | None) -> str:
    text = str((message or {}).get("text") or "").strip("\n")
    return text if text.strip() else ""


def _answer_of(final: dict[str, Any] | None) -> list[str]:
    if final is None:
        return []
    reason = final.get("stopReason")
    parts = [_own(final)]
    if reason == "aborted":
        parts.append(ABORTED)
    elif reason == "error":
        parts.append(failure_text(str(final.get("errorMessage") or "")))
    elif reason == "length":
        parts.append(CUT_SHORT)
    return [part for part in parts if part]
