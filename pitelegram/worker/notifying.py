"""What Pi's extensions tell, and lines about questions that were not asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from twisted.internet.interfaces import IReactorTime

from pitelegram.bridge.cutting import shorten
from pitelegram.bridge.dialogs import duration
from pitelegram.bridge.questions import Question, notice_text
from pitelegram.worker.mentions import Mentions

PER_MINUTE = 20
"""Notices of extensions that are passed on within a minute."""

_LINES = {
    "crowd": ("⚠️ Pi asked more than 8 questions at once; ", " cancelled."),
    "malformed": ("⚠️ Pi asked something that cannot be shown; ", " cancelled."),
    "unsent": ("⚠️ Pi asked while its question could not be brought here; ", " cancelled."),
    "gone": (
        "⚠️ Pi asked something, and its message was gone before anybody could answer; ",
        " cancelled.",
    ),
    "notices": ("⚠️ Pi's extensions said a lot at once; ", " left out."),
}


class Notifier:
    """Says durable lines in the Thread, as soon as there is one, and never floods it.

    @param say: posts a notice C{(id, text)}.
    """

    def __init__(self, clock: IReactorTime, say: Callable[[str, str], object]) -> None:
        self._clock = clock
        self._say = say
        self._mentions = Mentions(clock, self._mentioned)
        self._recent: list[float] = []
        self._number = 0

    def notify(self, request: Mapping[str, Any], key: str) -> None:
        """An extension tells something.

        @param key: stands for this request.
        """
        text = notice_text(request)
        if text is None:
            return
        now = self._clock.seconds()
        self._recent = [when for when in self._recent if when > now - 60]
        if len(self._recent) >= PER_MINUTE:
            self._mentions.mention("notices")
            return
        self._recent.append(now)
        self._say(f"notify-{key}", text)

    def cancelled(self, reason: str) -> None:
        """A question was cancelled that nobody can have seen.

        @param reason: C{crowd}, C{malformed}, C{unsent} or C{gone}.
        """
        self._mentions.mention(reason)

    def unsure(self, key: str, question: Question) -> None:
        """Nobody can tell whether a question arrived."""
        self._say(
            f"dialog-unsure-{key}",
            f"⚠️ Pi asks “{shorten(question.title, 200)}”, and nobody can tell whether that question "
            "arrived here. It was not sent twice. If you do not see it, it is cancelled after "
            f"{duration(question.seconds)}.",
        )

    def whole(self, key: str, text: str) -> None:
        """A text that could not be attached to its question."""
        self._say(f"dialog-text-{key}", f"📎 The whole text of that question:\n\n{text}")

    def flush(self) -> None:
        """Say now what waits to be said."""
        self._mentions.flush()

    def _mentioned(self, kind: str, count: int) -> None:
        self._number += 1
        before, behind = _LINES[kind]
        how_many = "one was" if count == 1 else f"{count} were"
        now = int(self._clock.seconds() * 1000)
        self._say(f"dialog-{kind}-{now}-{self._number}", f"{before}{how_many}{behind}")
