"""The leader's fence, and facts that are kept once."""

from __future__ import annotations

import sqlite3
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from zope.interface import implementer

from pitelegram.store.database import Database
from pitelegram.store.facts import Facts
from pitelegram.store.interfaces import ILeadership


@implementer(ILeadership)
@attrs.define(eq=False)
class Leadership(Facts):
    """See L{ILeadership}.

    @param database: the leader's store.
    """

    _database: Database

    def acquire(self, epoch: str) -> Deferred[None]:
        """Write C{epoch} as the only one whose transactions may commit."""
        return self._database.acquire(epoch)

    def audit(self, subject: str, actor: str, change: str, reason: str) -> Deferred[None]:
        """Append to the audit table (already redacted)."""
        row = (self._database.now_ms(), subject, actor, change, reason)

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO audit (at_ms, subject, actor, change, reason) VALUES (?, ?, ?, ?, ?)",
                row,
            )

        return self._database.write("audit", work)

    def history(self, subject: str | None = None, limit: int = 100) -> list[dict[str, Any]]:
        """Return the newest audit lines, oldest first: C{at_ms}, C{subject}, C{actor}, …"""
        rows = self._database.read(
            "SELECT at_ms, subject, actor, change, reason FROM audit"
            " WHERE ? IS NULL OR subject = ? ORDER BY seq DESC LIMIT ?",
            (subject, subject, limit),
        )
        return [dict(row) for row in reversed(rows)]

    def forget_history(self, before_ms: int, limit: int) -> Deferred[int]:
        """Delete audit lines and ended spawns; see L{ILeadership.forget_history}."""

        def work(connection: sqlite3.Connection) -> int:
            lines = connection.execute(
                "DELETE FROM audit WHERE seq IN"
                " (SELECT seq FROM audit WHERE at_ms < ? ORDER BY seq LIMIT ?)",
                (before_ms, limit),
            )
            spawns = connection.execute(
                "DELETE FROM spawns WHERE spawn_id IN"
                " (SELECT spawn_id FROM spawns WHERE state = 'ended' AND ended_ms < ? LIMIT ?)",
                (before_ms, limit),
            )
            return max(lines.rowcount, spawns.rowcount)

        return self._database.write("forget history", work)
