"""The states of one program of the operator's (drawn in C{docs/machines/program.md})."""

from __future__ import annotations

from pitelegram.kernel.machine import Machine, Table

LIFE: Table = {
    ("running", "exit"): "draining",
    ("running", "end"): "ending",
    ("draining", "closed"): "over",
    ("ending", "exit"): "ending-exited",
    ("ending", "given-up"): "over",
    ("ending-exited", "closed"): "ending-closed",
    ("ending-exited", "gone"): "draining",
    ("ending-closed", "gone"): "over",
    ("over", "exit"): "over",
    ("over", "closed"): "over",
}


def new_life() -> Machine:
    """Return the life of a program that was started."""
    return Machine("running", LIFE)
