"""The machine of the hand-over to Pi; drawn in C{docs/machines/hand-over.md}."""

from __future__ import annotations

from pitelegram.errors import WorkerError

IDLE = "idle"
"""Pi has nothing to do: the next prompt may go."""
HANDING = "handing"
"""One prompt was written; Pi's answer to it is due."""
RUNNING = "running"
"""Pi works; steering messages may go."""
STORING = "storing"
"""Pi settled; the answer is on its way to disk."""
WAITING = "waiting"
"""Pi refused a prompt; it is held until a timer, a new prompt or a changed Pi."""
GONE = "gone"
"""Pi ended: the next process of this binding decides about what was handed."""

TABLE = {
    (IDLE, "hand"): HANDING,
    (IDLE, "run"): RUNNING,
    (IDLE, "settled"): STORING,
    (HANDING, "run"): HANDING,
    (HANDING, "settled"): HANDING,
    (HANDING, "accepted"): RUNNING,
    (HANDING, "finished"): STORING,
    (HANDING, "refused"): WAITING,
    (RUNNING, "run"): RUNNING,
    (RUNNING, "settled"): STORING,
    (STORING, "run"): STORING,
    (STORING, "settled"): STORING,
    (STORING, "stored"): IDLE,
    (STORING, "stored-running"): RUNNING,
    (WAITING, "run"): RUNNING,
    (WAITING, "settled"): WAITING,
    (WAITING, "resume"): IDLE,
}
"""C{(state, input) -> state}; C{gone} leads from everywhere to C{gone} and nothing leads away."""


class HandOver:
    """Where the hand-over stands.

    @ivar state: one of the states above.
    """

    def __init__(self) -> None:
        self.state = IDLE

    def put(self, what: str) -> None:
        """Take one input.

        @raise WorkerError: it is not possible in this state.
        """
        if what == "gone" or self.state == GONE:
            self.state = GONE
            return
        following = TABLE.get((self.state, what))
        if following is None:
            raise WorkerError(f"the hand-over cannot take '{what}' while it is {self.state}")
        self.state = following

    def can(self, what: str) -> bool:
        """Whether that input is possible now."""
        return (self.state, what) in TABLE
