"""Control commands by request id."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from zope.interface import implementer

from pitelegram.errors import StoreError
from pitelegram.kernel.jsonio import dumps, loads
from pitelegram.store.database import Database
from pitelegram.store.interfaces import ICommands


@implementer(ICommands)
@attrs.define(eq=False)
class Commands:
    """See L{ICommands}.

    @param database: the leader's store.
    """

    _database: Database

    def find(self, request_id: str) -> dict[str, Any] | None:
        """Return C{fingerprint}, C{state} and C{envelope} (parsed or None)."""
        rows = self._database.read(
            "SELECT fingerprint, state, envelope FROM commands WHERE request_id = ?", (request_id,)
        )
        if not rows:
            return None
        envelope = rows[0]["envelope"]
        return {**dict(rows[0]), "envelope": None if envelope is None else loads(envelope)}

    def reserve(self, request_id: str, fingerprint: str) -> Deferred[bool]:
        """Take the id; False when it is taken."""
        row = (request_id, fingerprint, self._database.now_ms())

        def work(connection: sqlite3.Connection) -> bool:
            reserved = connection.execute(
                "INSERT OR IGNORE INTO commands (request_id, fingerprint, state, created_ms)"
                " VALUES (?, ?, 'reserved', ?)",
                row,
            )
            return reserved.rowcount == 1

        return self._database.write("reserve command", work)

    def send_started(self, request_id: str) -> Deferred[None]:
        """Committed before the worker is told.

        @raise StoreError: the row is not C{reserved}.
        """
        return self._change(
            "UPDATE commands SET state = 'send_started' WHERE request_id = ? AND state = 'reserved'",
            (request_id,),
        )

    def finish(self, request_id: str, state: str, envelope: dict[str, Any]) -> Deferred[None]:
        """Keep the outcome: C{accepted}, C{rejected} or C{uncertain}; the first one is final.

        @raise StoreError: the row has an outcome already.
        """
        return self._change(
            "UPDATE commands SET state = ?, envelope = ?, finished_ms = ?"
            " WHERE request_id = ? AND state IN ('reserved', 'send_started')",
            (state, dumps(envelope), self._database.now_ms(), request_id),
        )

    def started(self) -> list[str]:
        """Return the request ids left in C{send_started}, oldest first."""
        rows = self._database.read(
            "SELECT request_id FROM commands WHERE state = 'send_started' ORDER BY created_ms"
        )
        return [row[0] for row in rows]

    def abandon(self, request_id: str) -> Deferred[None]:
        """A reserved row that sent nothing goes.

        @raise StoreError: the row is not C{reserved}.
        """
        return self._change(
            "DELETE FROM commands WHERE request_id = ? AND state = 'reserved'", (request_id,)
        )

    def _change(self, sql: str, parameters: Sequence[object]) -> Deferred[None]:
        def work(connection: sqlite3.Connection) -> None:
            if connection.execute(sql, parameters).rowcount != 1:
                raise StoreError("this command is not in a state for that")

        return self._database.write("change command", work)
