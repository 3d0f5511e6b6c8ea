"""What becomes of each order of the operator in each state of Pi and of the processes: one table.

There is a prompt that runs, a C{first} one that waits, and a C{second} one behind it.  Orders that are
about a prompt that waits are about the second.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs

from pitelegram.bridge import intakewords, labels
from pitelegram.bridge.menus import compact, model, queue

IDLE = "idle"
STREAMING = "streaming"
TOOL = "tool running"
COMPACTING = "compacting"
RETRYING = "retrying"
BETWEEN = "between turns"

WORKER = "worker restarting"
DAEMON = "daemon restarting"

STATES = (IDLE, STREAMING, TOOL, COMPACTING, RETRYING, BETWEEN)
"""States that one worker can be brought into."""

RESTARTS = (WORKER, DAEMON)
"""The order is given while a process is killed and not there again; an answer was under way."""

OTHER = "thinker"
SWITCHED = model.Model("scripted", OTHER)

NONE, RUNS, ABORTED, UNKNOWN = "none", "runs on", "aborted", "uncertain"
"""What becomes of the prompt (or compaction) that runs."""

HELD = "held"
"""It waits on, and runs when its turn comes."""
NEXT = "handed next"
"""It has its turn at once."""
FIRST = "before the other"
"""It waits in the priority lane."""
STEERS = "steers"
"""It goes into the run that is there."""
CORRECTED = "corrected"
"""It waits on with its new text."""
DROPPED = "dropped"
"""It never runs."""
DONE = "done"
"""It was over before."""

RANKS = {NEXT: 0, STEERS: 1, FIRST: 2, HELD: 3, CORRECTED: 3}
"""The order in which prompts come to the model."""


@attrs.frozen
class Cell:
    """What the operator sees, and what becomes of the prompts.

    @ivar said: toasts, then first lines of menus, then messages.
    """

    said: tuple[str, ...]
    running: str
    first: str
    second: str


def _cells(state: str, running: str, first: str, **orders: Any) -> dict[tuple[str, str], Cell]:
    """Return a column: each order's words and the second's fate, with other fates behind them."""
    found = {}
    for name, (said, second, *others) in orders.items():
        fates = {"running": running, "first": first, **(others[0] if others else {})}
        found[name.replace("_", " "), state] = Cell(tuple(said), second=second, **fates)
    return found


_LATE = (intakewords.EDIT_TOO_LATE,)
_NEXT = (f"Aborted current turn. {labels.NEXT_TURN}",)
_ABORTED = ("Aborted current turn.",)
_BUSY = (compact.BUSY,)
_MODEL = (model.switched(SWITCHED, True),)
_AFTER_ABORT = {"running": ABORTED, "first": NEXT}
_STOPPED = {"running": ABORTED, "first": DROPPED}
_CLEARED = ("Aborted current turn. Cleared 2 queued turns.",)

_AT_WORK: dict[str, Any] = {
    "edit_waiting": ((), CORRECTED),
    "edit_handed": (_LATE, HELD),
    "react_priority": ((), STEERS),
    "react_skip": ((), DROPPED),
    "menu_skip": ((queue.SKIPPED, "2. 🔴"), DROPPED),
    "menu_move": ((queue.PRIORITIZED, "⏳ Queue:"), STEERS),
    "next": (_NEXT, HELD, _AFTER_ABORT),
    "abort": (_ABORTED, HELD, _AFTER_ABORT),
    "stop": (_CLEARED, DROPPED, _STOPPED),
    "compact": (_BUSY, HELD),
    "confirm": (_BUSY, HELD),
    "model": (_MODEL, HELD),
}
"""A run goes on, whatever it is busy with."""

EXPECTED: dict[tuple[str, str], Cell] = {
    # Nothing runs and nothing waits, but a forwarded message is still being gathered.
    **_cells(
        IDLE,
        NONE,
        DONE,
        edit_waiting=((), CORRECTED),
        edit_handed=(_LATE, HELD),
        react_priority=((), NEXT),
        react_skip=((), DROPPED),
        menu_skip=((queue.GONE, "⏳ Queue:"), HELD),
        menu_move=((queue.GONE, "⏳ Queue:"), HELD),
        next=((labels.NEXT_TURN,), HELD),
        abort=(("No active turn.",), HELD),
        stop=(("No active turn. Cleared 1 queued turn.",), DROPPED),
        compact=(("Compact session?",), HELD),
        confirm=((compact.STARTED, compact.COMPLETED), HELD),
        model=((model.switched(SWITCHED, False),), HELD),
    ),
    **_cells(STREAMING, RUNS, HELD, **_AT_WORK),
    **_cells(TOOL, RUNS, HELD, **_AT_WORK),
    **_cells(RETRYING, RUNS, HELD, **_AT_WORK),
    # What runs is the compaction: nothing goes into it.
    **_cells(
        COMPACTING,
        RUNS,
        HELD,
        **{
            **_AT_WORK,
            "react_priority": ((), FIRST),
            "menu_move": ((queue.PRIORITIZED, "1. ⚡"), FIRST),
            "next": ((f"Compaction aborted. {labels.NEXT_TURN}",), HELD, _AFTER_ABORT),
            "abort": (("Compaction aborted.",), HELD, _AFTER_ABORT),
            "stop": (("Compaction aborted. Cleared 2 queued turns.",), DROPPED, _STOPPED),
            "confirm": (("Interactive message expired.",), HELD),
            "model": ((f"Command failed. {model.COMPACTING}",), HELD),
        },
    ),
    # The answer is being stored when the order comes: the first has its turn before it is done.
    **_cells(
        BETWEEN,
        RUNS,
        NEXT,
        **{
            **_AT_WORK,
            "menu_skip": ((queue.SKIPPED, "1. 🔴"), DROPPED),
            "menu_move": ((queue.PRIORITIZED, "1. ⚡"), STEERS),
            "next": (_NEXT, NEXT, {"first": ABORTED}),
            "abort": (_ABORTED, NEXT, {"first": ABORTED}),
            "stop": (
                ("Aborted current turn. Cleared 1 queued turn.",),
                DROPPED,
                {"first": ABORTED},
            ),
        },
    ),
    # The workers go on, and hear of it when they have found the next leader.
    **_cells(DAEMON, RUNS, HELD, **_AT_WORK),
    # The next worker judges what ran, and hears of the order before Pi is up.
    **_cells(
        WORKER,
        UNKNOWN,
        NEXT,
        edit_waiting=((), CORRECTED),
        edit_handed=(_LATE, HELD),
        react_priority=((), NEXT, {"first": HELD}),
        react_skip=((), DROPPED),
        menu_skip=((queue.SKIPPED, "2. 🔴"), DROPPED),
        menu_move=((queue.PRIORITIZED, "1. ⚡"), NEXT, {"first": HELD}),
        next=((labels.NEXT_TURN,), HELD),
        abort=(("No active turn.",), HELD),
        stop=(("No active turn. Cleared 2 queued turns.",), DROPPED, {"first": DROPPED}),
        compact=(_BUSY, HELD),
        confirm=(_BUSY, HELD),
        model=(_MODEL, HELD),
    ),
}
"""C{(order, state) -> Cell}."""


def configure(agent_dir: Path, pause_ms: int = 700) -> None:
    """Give Pi two models, and have it compact short talks and try again soon."""
    path = agent_dir / "settings.json"
    value = {
        **json.loads(path.read_text()),
        "compaction": {"keepRecentTokens": 1},
        "retry": {"enabled": True, "maxRetries": 2, "baseDelayMs": pause_ms},
    }
    path.write_text(json.dumps(value))
    path = agent_dir / "models.json"
    document = json.loads(path.read_text())
    (provider,) = document["providers"].values()
    provider["models"].append({**provider["models"][0], "id": OTHER})
    path.write_text(json.dumps(document))


PREPARED = {"confirm": "/compact"}
"""What the operator says before anything runs."""
IN_MENU = ("menu skip", "menu move")
"""Orders for which the queue's menu shows the second prompt."""


@attrs.frozen
class Scene:
    """The prompts of one cell, by the ids of their messages, and their words.

    @ivar handed: the message that Pi has, or had.
    """

    name: str
    handed: int
    second: int
    corrected: str


Act = Callable[[Any, Scene], Awaitable[Any]]


def _say(words: str) -> Act:
    return lambda operator, scene: operator.say(words)


def _tap(label: str, data: str = "") -> Act:
    return lambda operator, scene: operator.tap(label)


def _react(emoji: str) -> Act:
    return lambda operator, scene: operator.react(scene.second, emoji)


ORDERS: dict[str, Act] = {
    "edit waiting": lambda operator, scene: operator.edit(scene.second, scene.corrected),
    "edit handed": lambda operator, scene: operator.edit(scene.handed, scene.corrected),
    "react priority": _react("🔥"),
    "react skip": _react("👎"),
    "menu skip": _tap("Skip"),
    "menu move": _tap("Priority"),
    "next": _say("/next"),
    "abort": _say("/abort"),
    "stop": _say("/stop"),
    "compact": _say("/compact"),
    "confirm": _tap("Yes, compact"),
    "model": _say(f"/model {SWITCHED.name}"),
}
"""What the operator does."""

GRID = [(order, state) for order in ORDERS for state in (*STATES, *RESTARTS)]
"""Every cell that the table must have."""
