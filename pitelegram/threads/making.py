"""Steps of making one Thread; drawn in C{docs/machines/thread-provisioning.md}."""

from __future__ import annotations

from pitelegram.kernel.machine import Machine, Table

WAITING = "waiting"
"""No owner is paired, or it is not known that the bot has Threads."""
CREATING = "creating"
"""The intent is committed and C{createForumTopic} is out."""
AMBIGUOUS = "ambiguous"
"""Nobody can tell whether it was made: its service message is looked out for."""
PAUSED = "paused"
"""It was certainly not made; another try follows."""
BOUND = "bound"
"""The binding has its Thread."""

CREATE = "create"
MADE = "made"
FOUND = "found"
LOST_ANSWER = "lost answer"
NOT_MADE = "not made"
TIME_OUT = "time-out"
IMPOSSIBLE = "impossible"

TABLE: Table = {
    (WAITING, CREATE): CREATING,
    (WAITING, LOST_ANSWER): AMBIGUOUS,
    (WAITING, FOUND): BOUND,
    (WAITING, IMPOSSIBLE): WAITING,
    (CREATING, MADE): BOUND,
    (CREATING, FOUND): BOUND,
    (CREATING, LOST_ANSWER): AMBIGUOUS,
    (CREATING, NOT_MADE): PAUSED,
    (CREATING, CREATE): CREATING,
    (CREATING, IMPOSSIBLE): WAITING,
    (AMBIGUOUS, FOUND): BOUND,
    (AMBIGUOUS, CREATE): CREATING,
    (AMBIGUOUS, TIME_OUT): WAITING,
    (AMBIGUOUS, IMPOSSIBLE): WAITING,
    (PAUSED, CREATE): CREATING,
    (PAUSED, FOUND): BOUND,
    (PAUSED, IMPOSSIBLE): WAITING,
}


def making() -> Machine:
    """Return the machine of making one Thread."""
    return Machine(WAITING, TABLE)
