"""The parts of a delivery, and the delivery's state that follows from them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from pitelegram.errors import StoreError
from pitelegram.kernel.jsonio import dumps

SENDABLE = "state IN ('pending', 'sending', 'retry_wait')"
"""Condition: this part, or delivery, is not finished in any way."""


def replace_part(
    connection: sqlite3.Connection, key: str, part: int, calls: Sequence[dict[str, Any]]
) -> None:
    """Put other calls in the place of one part; the parts behind it move up.

    @raise StoreError: the part was replaced before and has neither another form nor a keyboard to
        lose, or it is finished.
    """
    change_part(
        connection,
        (key, part),
        "state = 'pending', next_attempt_ms = NULL, plain = 1, call = ?",
        f"{SENDABLE} AND (plain = 0 OR json_type(CAST(call AS TEXT), '$.otherwise') IS NOT NULL"
        " OR json_type(CAST(call AS TEXT), '$.params.reply_markup') IS NOT NULL)",
        (dumps(calls[0]),),
    )
    behind = connection.execute(
        "SELECT part FROM outbox_parts WHERE key = ? AND part > ? ORDER BY part DESC", (key, part)
    ).fetchall()
    for row in behind:
        connection.execute(
            "UPDATE outbox_parts SET part = part + ? WHERE key = ? AND part = ?",
            (len(calls) - 1, key, row["part"]),
        )
    connection.executemany(
        "INSERT INTO outbox_parts (key, part, state, plain, call) VALUES (?, ?, 'pending', 1, ?)",
        [(key, part + more, dumps(call)) for more, call in enumerate(calls[1:], 1)],
    )


def change_part(
    connection: sqlite3.Connection,
    which: Sequence[object],
    assignments: str,
    condition: str,
    values: Sequence[object] = (),
) -> None:
    """Change the part C{(key, part)}.

    @raise StoreError: it is not in a state that C{condition} allows.
    """
    changed = connection.execute(
        f"UPDATE outbox_parts SET {assignments} WHERE key = ? AND part = ? AND {condition}",
        (*values, *which),
    )
    if changed.rowcount != 1:
        raise StoreError("this part of a delivery is not in a state for that")


def derive(connection: sqlite3.Connection, key: str, now: int) -> None:
    """Give the delivery the state that follows from its parts."""
    rows = connection.execute(
        "SELECT state FROM outbox_parts WHERE key = ? ORDER BY part", (key,)
    ).fetchall()
    states = [row["state"] for row in rows]
    state = next((each for each in states if each in ("pending", "sending", "retry_wait")), None)
    if state is None:
        state = next((each for each in ("uncertain", "dead_letter") if each in states), "delivered")
    finished = now if state == "delivered" else None
    connection.execute(
        "UPDATE outbox SET state = ?, finished_ms = ? WHERE key = ?", (state, finished, key)
    )
