"""What Pi said in one run, and the final answer that follows from it.

The same rules serve a run that was watched and one that is read from a session file afterwards.
"""

from __future__ import annotations

from typing import Any

import attrs

from pitelegram.bridge.comments import finished

NO_TEXT = "✅ Done. Pi wrote no text."
ABORTED = "⏹ Aborted."
CUT_SHORT = "⚠️ The model's limit on the length of an answer was reached; this one is cut short."


@attrs.define
class _Stretch:
    """Everything between two messages of the user."""

    said: str = ""
    final: dict[str, Any] | None = None


class Turn:
    """Collects the messages of one run, in order."""

    def __init__(self) -> None:
        self._stretches = [_Stretch()]

    def user(self) -> None:
        """A message of the user begins another stretch: what was said before it stays an answer."""
        self._stretches.append(_Stretch())

    def assistant(self, message: dict[str, Any]) -> None:
        """Take one finished message of the model.

        @param message: C{text}, C{stopReason}, C{errorMessage?}.  One that stopped for a tool is no
            answer; an error that was followed by another message was retried, and is none either.
        """
        stretch = self._stretches[-1]
        text = str(message.get("text") or "").strip("\n")
        if text.strip():
            stretch.said = text
        stretch.final = None if message.get("stopReason") == "toolUse" else message

    @property
    def empty(self) -> bool:
        """Whether the model said nothing at all, not even that it failed."""
        return not any(stretch.said or stretch.final for stretch in self._stretches)

    def answer(self, aborted: bool = False) -> str:
        """Return the final answer as plain text, never blank.

        @param aborted: the run was ended by an abort, whatever its messages say.
        """
        parts = [part for stretch in self._stretches for part in _answer_of(stretch)]
        if aborted and ABORTED not in parts:
            parts.append(ABORTED)
        if len(parts) > 1:
            parts = [*(finished(part) for part in parts[:-1]), parts[-1]]
        return "\n\n".join(part for part in parts if part.strip()) or NO_TEXT


def _answer_of(stretch: _Stretch) -> list[str]:
    final = stretch.final
    if final is None:
        return [stretch.said] if stretch.said.strip() else []
    reason = final.get("stopReason")
    own = str(final.get("text") or "").strip("\n")
    parts = [own if own.strip() else stretch.said]
    if reason == "aborted":
        parts.append(ABORTED)
    elif reason == "error":
        parts.append(f"⚠️ {final.get('errorMessage') or 'The model failed without a reason.'}")
    elif reason == "length":
        parts.append(CUT_SHORT)
    return [part for part in parts if part.strip()]
