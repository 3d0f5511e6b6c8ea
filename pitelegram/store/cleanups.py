"""Threads that a review found inactive, and what became of each."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import attrs
from twisted.internet.defer import Deferred

from pitelegram.store.database import Database

KEEP_MS = 90 * 24 * 3_600_000

_ITEM = (
    "SELECT operation_id, binding_key, chat_id, thread_id, inactive_since_ms, state FROM cleanups"
)

_ADD = (
    "INSERT OR REPLACE INTO cleanups (operation_id, binding_key, chat_id, thread_id,"
    " inactive_since_ms, state, changed_ms) VALUES (?, ?, ?, ?, ?, 'reviewed', ?)"
)

_PROOF = """
SELECT b.binding_key, b.chat_id, b.thread_id, b.inactive_since_ms FROM bindings AS b
WHERE b.kind <> 'daemon' AND b.thread_id IS NOT NULL AND b.inactive_since_ms IS NOT NULL
  AND b.inactive_since_ms >= 0
  AND NOT EXISTS (SELECT 1 FROM journal AS j WHERE j.state NOT IN ('settled', 'failed')
      AND (j.recipient = b.binding_key
           OR (j.chat_id = b.chat_id AND j.thread_id = b.thread_id)))
  AND NOT EXISTS (SELECT 1 FROM outbox AS o WHERE o.binding_key = b.binding_key
      AND o.state IN ('pending', 'sending', 'retry_wait', 'uncertain', 'hold'))
  AND NOT EXISTS (SELECT 1 FROM provisions AS p WHERE p.binding_key = b.binding_key)
  AND NOT EXISTS (SELECT 1 FROM cleanups AS c
      WHERE c.binding_key = b.binding_key AND c.state = 'claimed')
"""
"""Bindings for which the store itself knows no reason to keep their Thread."""


@attrs.frozen(kw_only=True)
class Inactive:
    """A Thread that may be deleted, as a review saw it."""

    operation_id: str
    binding_key: str
    chat_id: int
    thread_id: int
    inactive_since_ms: int
    state: str = "reviewed"


@attrs.define(eq=False)
class Cleanups:
    """Reviews of inactive Threads.

    @param database: the leader's store.
    """

    _database: Database

    def candidates(self) -> list[Inactive]:
        """Return the bindings that the store has no reason to protect, by key."""
        rows = self._database.read(f"{_PROOF} ORDER BY b.binding_key")
        return [Inactive(operation_id="", **dict(row)) for row in rows]

    def review(self, operation_id: str, found: Sequence[Inactive]) -> Deferred[None]:
        """Store what a review found; it takes the place of every earlier review."""
        now = self._database.now_ms()
        rows = [
            (operation_id, i.binding_key, i.chat_id, i.thread_id, i.inactive_since_ms, now)
            for i in found
        ]

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM cleanups WHERE state = 'reviewed'")
            connection.execute(
                "DELETE FROM cleanups WHERE state <> 'claimed' AND changed_ms < ?", (now - KEEP_MS,)
            )
            connection.executemany(_ADD, rows)

        return self._database.write("review Threads", work)

    def add(self, item: Inactive) -> Deferred[None]:
        """Store one that is to be claimed now; reviews stay as they are."""
        row = (
            item.operation_id,
            item.binding_key,
            item.chat_id,
            item.thread_id,
            item.inactive_since_ms,
            self._database.now_ms(),
        )

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_ADD, row)

        return self._database.write("a Thread of one that quit", work)

    def reviewed(self, operation_id: str | None = None) -> list[Inactive]:
        """Return what the newest review (or the named one) found and nobody has touched yet."""
        condition, parameters = "WHERE state = 'reviewed'", ()
        if operation_id is not None:
            condition, parameters = f"{condition} AND operation_id = ?", (operation_id,)
        rows = self._database.read(f"{_ITEM} {condition} ORDER BY binding_key", parameters)
        return [Inactive(**dict(row)) for row in rows]

    def claim(self, item: Inactive) -> Deferred[bool]:
        """Prove once more, in this transaction, that the Thread may go, and claim it.

        Fires with False, and notes it as blocked, when anything speaks against it now.
        """
        now = self._database.now_ms()
        proof = (
            f"{_PROOF} AND b.binding_key = ? AND b.chat_id = ? AND b.thread_id = ?"
            " AND b.inactive_since_ms = ?"
        )
        meant = (item.binding_key, item.chat_id, item.thread_id, item.inactive_since_ms)

        def work(connection: sqlite3.Connection) -> bool:
            row = connection.execute(
                "SELECT state FROM cleanups WHERE operation_id = ? AND binding_key = ?",
                (item.operation_id, item.binding_key),
            ).fetchone()
            if row is None or row["state"] != "reviewed":
                return False
            proven = connection.execute(proof, meant).fetchone() is not None
            _set(connection, item, "claimed" if proven else "blocked", "in use again", now)
            return proven

        return self._database.write("claim a Thread", work)

    def deleted(self, item: Inactive) -> Deferred[bool]:
        """The Thread is gone: its binding has none any more; False when that was another by now."""
        now = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> bool:
            _set(connection, item, "deleted", "", now)
            cleared = connection.execute(
                "UPDATE bindings SET chat_id = NULL, thread_id = NULL, title = NULL,"
                " user_title = NULL, updated_ms = ?"
                " WHERE binding_key = ? AND chat_id = ? AND thread_id = ?",
                (now, item.binding_key, item.chat_id, item.thread_id),
            )
            connection.execute("DELETE FROM attachments WHERE binding_key = ?", (item.binding_key,))
            return cleared.rowcount == 1

        return self._database.write("delete a Thread", work)

    def blocked(self, item: Inactive, reason: str) -> Deferred[None]:
        """The Thread stays; the claim is given up."""
        now = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> None:
            _set(connection, item, "blocked", reason, now)

        return self._database.write("keep a Thread", work)

    def interrupted(self) -> Deferred[int]:
        """Give up the claims of an earlier leader; nobody can tell whether it deleted anything."""
        now = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> int:
            return connection.execute(
                "UPDATE cleanups SET state = 'blocked', reason = 'interrupted', changed_ms = ?"
                " WHERE state = 'claimed'",
                (now,),
            ).rowcount

        return self._database.write("give up claims", work)

    def is_claimed(self, binding_key: str) -> bool:
        """Whether the binding's Thread is being deleted at this moment."""
        return bool(
            self._database.read(
                "SELECT 1 FROM cleanups WHERE binding_key = ? AND state = 'claimed'",
                (binding_key,),
            )
        )


def _set(connection: sqlite3.Connection, item: Inactive, state: str, reason: str, now: int) -> None:
    words = reason if state == "blocked" else ""
    connection.execute(
        "UPDATE cleanups SET state = ?, reason = ?, changed_ms = ?"
        " WHERE operation_id = ? AND binding_key = ?",
        (state, words, now, item.operation_id, item.binding_key),
    )
