"""Commands that are done once per request id, in a worker's store."""

from __future__ import annotations

import sqlite3
from typing import Any

from twisted.internet.defer import Deferred

from pitelegram.kernel.jsonio import dumps, loads
from pitelegram.store.database import Database


class Ledgers:
    """What has a C{ledger} table: a worker's store.  A sub-class has the C{_database}."""

    __slots__ = ()

    _database: Database

    def ledger(self, request_id: str) -> dict[str, Any] | None:
        """Return C{fingerprint}, C{state}, C{result} (parsed or None)."""
        rows = self._database.read(
            "SELECT fingerprint, state, result FROM ledger WHERE request_id = ?", (request_id,)
        )
        if not rows:
            return None
        result = rows[0]["result"]
        return {**dict(rows[0]), "result": None if result is None else loads(result)}

    def ledger_start(self, request_id: str, fingerprint: str) -> Deferred[None]:
        """Committed before the command is executed.

        @raise StoreError: the id is known.
        """
        row = (request_id, fingerprint, self._database.now_ms())

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO ledger (request_id, fingerprint, state, at_ms)"
                " VALUES (?, ?, 'started', ?)",
                row,
            )

        return self._database.write("ledger start", work)

    def ledger_finish(self, request_id: str, result: dict[str, Any]) -> Deferred[None]:
        """Keep the result of a command."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE ledger SET state = 'finished', result = ? WHERE request_id = ?",
                (dumps(result), request_id),
            )

        return self._database.write("ledger finish", work)
