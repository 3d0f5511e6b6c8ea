"""The machine of the hand-over to Pi; drawn in C{docs/machines/hand-over.md}."""

from __future__ import annotations

from pitelegram.kernel.machine import Machine, Table

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

STEPS = {
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
"""What happens while Pi lives."""

INPUTS = frozenset(event for _, event in STEPS) | {"gone"}

TABLE: Table = {
    **STEPS,
    **{(state, "gone"): GONE for state, _ in STEPS},
    **{(GONE, event): GONE for event in INPUTS},
}
"""C{(state, input) -> state}; C{gone} leads from everywhere to C{gone} and nothing leads away."""


def hand_over() -> Machine:
    """Return the machine of one Pi's hand-over."""
    return Machine(IDLE, TABLE)
