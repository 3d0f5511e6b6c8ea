"""One dialog and where it stands; drawn in C{docs/machines/dialog.md}."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet.interfaces import IDelayedCall

from pitelegram.bridge.questions import Question
from pitelegram.kernel.machine import Machine, Table

POSTING = "posting"
"""Its message is on its way."""
OPEN = "open"
"""Its message is in the Thread."""
UNSEEN = "unseen"
"""Nobody can tell whether its message arrived; what it says tells when somebody answers it."""
CLOSED = "closed"
"""Pi has its answer, or answered itself."""

TABLE: Table = {
    (POSTING, "shown"): OPEN,
    (POSTING, "unsure"): UNSEEN,
    (POSTING, "limited"): POSTING,
    (POSTING, "moved"): POSTING,
    (POSTING, "over"): CLOSED,
    (OPEN, "shown"): OPEN,
    (OPEN, "unsure"): OPEN,
    (OPEN, "moved"): POSTING,
    (OPEN, "over"): CLOSED,
    (UNSEEN, "shown"): OPEN,
    (UNSEEN, "moved"): POSTING,
    (UNSEEN, "over"): CLOSED,
}
"""C{(state, input) -> state}; nothing leads away from L{CLOSED}."""


@attrs.define(eq=False)
class Asking:
    """A dialog that Pi waits for.

    @ivar ref: Pi's id of it.
    @ivar key: what its buttons carry: it stands for this dialog of this Pi of this worker.
    @ivar body: the question as shown.
    @ivar place: the target that its message went, or is going, to.
    @ivar messages: ids of messages that show it; more than one after a change of Thread.
    @ivar words: what its message says when it is over.
    @ivar page: the page of options that was asked for last.
    @ivar turning: whether its buttons are being edited.
    @ivar timers: what has to be cancelled when it is over.
    """

    ref: str
    key: str
    request: dict[str, Any]
    question: Question
    body: str
    place: dict[str, int] = attrs.field(factory=dict)
    messages: list[int] = attrs.field(factory=list)
    words: str = ""
    page: int = 0
    turning: bool = False
    timers: list[IDelayedCall] = attrs.field(factory=list)
    machine: Machine = attrs.field(factory=lambda: Machine(POSTING, TABLE))

    @property
    def state(self) -> str:
        """Where it stands."""
        return self.machine.now

    def over(self) -> None:
        """It is answered: nothing of it may fire any more."""
        self.machine.feed("over")
        for timer in self.timers:
            if timer.active():
                timer.cancel()
