"""The phases of the long poll; drawn in C{docs/machines/long-poll.md}."""

from __future__ import annotations

from pitelegram.kernel.machine import Machine, Table

STARTING = "starting"
LONG_POLL = "long-poll"
PERSISTING = "persisting"
RETRYING = "retrying"
CONFLICT = "conflict"
STOPPED = "stopped"

BEGIN = "begin"
"""The first poll goes out."""
BATCH = "batch"
"""Updates came."""
EMPTY = "empty"
"""The poll ended without updates."""
STORED = "stored"
"""The batch is durable."""
UNSTORABLE = "unstorable"
"""The batch could not be stored; it is kept and tried again."""
DROPPED = "dropped"
"""The batch is thrown away, unconfirmed."""
FAILED = "failed"
"""No usable answer."""
CONFLICTED = "conflicted"
"""409."""
STOP = "stop"
"""Asked to stop, another poller, a refused token, or a newer leader."""

TABLE: Table = {
    (STARTING, BEGIN): LONG_POLL,
    (LONG_POLL, EMPTY): LONG_POLL,
    (LONG_POLL, BATCH): PERSISTING,
    (LONG_POLL, FAILED): RETRYING,
    (LONG_POLL, CONFLICTED): CONFLICT,
    (RETRYING, EMPTY): LONG_POLL,
    (RETRYING, BATCH): PERSISTING,
    (RETRYING, FAILED): RETRYING,
    (RETRYING, CONFLICTED): CONFLICT,
    (CONFLICT, EMPTY): LONG_POLL,
    (CONFLICT, BATCH): PERSISTING,
    (CONFLICT, FAILED): RETRYING,
    (CONFLICT, CONFLICTED): CONFLICT,
    (PERSISTING, STORED): LONG_POLL,
    (PERSISTING, UNSTORABLE): PERSISTING,
    (PERSISTING, DROPPED): LONG_POLL,
    (STARTING, STOP): STOPPED,
    (LONG_POLL, STOP): STOPPED,
    (RETRYING, STOP): STOPPED,
    (CONFLICT, STOP): STOPPED,
    (PERSISTING, STOP): STOPPED,
    (STOPPED, STOP): STOPPED,
    (STOPPED, BEGIN): LONG_POLL,
}


def poll_phase() -> Machine:
    """Return the machine of one long poll.

    A failure does not end with the next attempt but with the next success: until then nobody knows
    that it is over.
    """
    return Machine(STARTING, TABLE)
