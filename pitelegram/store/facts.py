"""Single facts that a store keeps by name."""

from __future__ import annotations

import sqlite3

from twisted.internet.defer import Deferred

from pitelegram.store.database import Database


class Facts:
    """What has a C{meta} table; both schemas do.  A sub-class has the C{_database}."""

    __slots__ = ()

    _database: Database

    def get_meta(self, key: str) -> str | None:
        """Return a fact, None when it was never stored."""
        rows = self._database.read("SELECT value FROM meta WHERE key = ?", (key,))
        return rows[0]["value"] if rows else None

    def set_meta(self, key: str, value: str) -> Deferred[None]:
        """Store a fact."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value)
            )

        return self._database.write("set meta", work)

    def keep_meta(self, key: str, value: str) -> Deferred[str]:
        """Store a fact unless it is there already; fires with the one that stands, once committed."""

        def work(connection: sqlite3.Connection) -> str:
            connection.execute(
                "INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)", (key, value)
            )
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
            return str(row["value"])

        return self._database.write("keep meta", work)
