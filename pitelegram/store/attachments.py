"""Where a worker's Thread was before C{/attach}."""

from __future__ import annotations

import sqlite3

import attrs
from twisted.internet.defer import Deferred

from pitelegram.store.database import Database


@attrs.define(eq=False)
class Attachments:
    """One row per binding that was moved to another Thread.

    @param database: the leader's store.
    """

    _database: Database

    def previous(self, binding_key: str) -> tuple[int, int] | None:
        """Return chat and Thread that the binding had before, None when it was not moved."""
        rows = self._database.read(
            "SELECT chat_id, thread_id FROM attachments WHERE binding_key = ?", (binding_key,)
        )
        return (rows[0]["chat_id"], rows[0]["thread_id"]) if rows else None

    def remember(self, binding_key: str, chat_id: int, thread_id: int) -> Deferred[None]:
        """Keep the Thread that a binding leaves; the first one counts until L{forget}."""
        row = (binding_key, chat_id, thread_id, self._database.now_ms())

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT OR IGNORE INTO attachments (binding_key, chat_id, thread_id, at_ms)"
                " VALUES (?, ?, ?, ?)",
                row,
            )

        return self._database.write("remember attachment", work)

    def forget(self, binding_key: str) -> Deferred[None]:
        """The binding is where it belongs."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM attachments WHERE binding_key = ?", (binding_key,))

        return self._database.write("forget attachment", work)
