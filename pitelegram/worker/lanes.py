"""The order in which held prompts have their turn, and how the queue is shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from pitelegram.bridge.interfaces import QueueItem
from pitelegram.bridge.prompt import summary
from pitelegram.store.rows import SPREAD, InboxRow, Turn
from pitelegram.store.worker_interfaces import IInbox

CONTROL = "control"
"""What the operator asked to run before everything that waits (C{/continue})."""
PRIORITY = "priority"
"""Before the normal lane; as a steering message while Pi works."""
NORMAL = "normal"

RANKS = {CONTROL: 0, PRIORITY: 1, NORMAL: 2}


@attrs.frozen
class PiQueue:
    """Texts that wait in Pi's own queue: it has them, and only an abort gives them back."""

    steering: tuple[str, ...] = ()
    follow_up: tuple[str, ...] = ()


def in_turn(rows: Iterable[InboxRow]) -> list[InboxRow]:
    """Return held rows in the order of their turns."""
    return sorted(rows, key=lambda row: (RANKS.get(row.lane, RANKS[NORMAL]), row.order))


def may_go(turn: Turn, gathered: int | None) -> bool:
    """Whether a held row waits for nothing but its turn.

    @param gathered: the first row that is still being made into a prompt; normal ones behind it wait.
    """
    late = gathered is not None and turn.place > gathered * SPREAD
    return not late or turn.lane in (CONTROL, PRIORITY)


def shown(rows: Iterable[InboxRow]) -> list[QueueItem]:
    """Return the queue as it is shown."""
    return [
        QueueItem(
            position=position,
            seq=row.seq,
            lane=row.lane,
            skip=row.skip,
            summary=_summary(row),
            prompt=row.prompt or "",
        )
        for position, row in enumerate(in_turn(rows), 1)
    ]


def shown_pi(state: dict[str, Any]) -> PiQueue:
    """Return Pi's own queue as it last reported it."""
    queue = state.get("queue") or {}
    return PiQueue(tuple(queue.get("steering") or ()), tuple(queue.get("followUp") or ()))


def waiting_row(inbox: IInbox, chat_id: int, message_id: int) -> InboxRow | None:
    """Return the row of the prompt that a message is part of, while it was not handed.

    It is C{held}, or C{admitted} where it is still being made into a prompt.
    """
    found = inbox.by_message(chat_id, message_id)
    if found is None:
        return None
    exact = inbox.waiting(found.seq if found.head is None else found.head)
    # A prompt of unknown fate that was sent again has the same message and another row.
    return exact or inbox.held_at(chat_id, message_id)


def _summary(row: InboxRow) -> str:
    told = (row.content or {}).get("summary")
    return told if isinstance(told, str) and told else summary(row.prompt or "")
