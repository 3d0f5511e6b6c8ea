"""How much is stored, and how much of it should have gone: counts and policies, never contents."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from pitelegram.errors import StoreError
from pitelegram.store.database import Database
from pitelegram.store.retention import (
    HISTORY_MS,
    JOURNAL_MS,
    MESSAGES_MS,
    PERIOD,
    TOMBSTONE_MS,
    TOMBSTONES,
    Retention,
)

LOW_BYTES = 200 * 1024 * 1024
FULL_BYTES = 16 * 1024 * 1024
"""Free bytes below which the disk is called C{low} and C{full}."""

LATE_MS = int(2 * PERIOD * 1000)
"""A row that two rounds should have taken is overdue."""

SHORTEST_LIFE = 2.0
"""Seconds that counts are kept; more where counting takes long."""

_DEAREST = 200
"""Counts are kept so many times as long as they took."""

_JOURNAL_STATES = ("pending", "forwarding", "held", "retry_wait", "failed", "settled")
_OUTBOX_STATES = ("pending", "sending", "retry_wait", "uncertain", "dead_letter", "hold")
_SPAWN_STATES = ("intended", "made", "registered", "ended")


@attrs.define(eq=False)
class Pressure:
    """Looks at the leader's store.

    @ivar retention: whose rounds are told of.
    @ivar commands: returns the aggregate of the receipts, None while there is none.
    @ivar directory: on whose disk the store is.
    @ivar free_bytes: free bytes of a directory's disk for this user.
    """

    database: Database
    retention: Retention
    directory: Path
    monotonic: Callable[[], float]
    commands: Callable[[], dict[str, Any] | None] = lambda: None
    free_bytes: Callable[[Path], int] = lambda directory: _free_bytes(directory)
    _kept: tuple[float, dict[str, Any]] | None = attrs.field(default=None, init=False)

    def look(self) -> dict[str, Any]:
        """Return the figures; nothing in them is checked yet.

        @raise StoreError: the store cannot be read.
        """
        size, log = self.database.sizes()
        return {
            "database_bytes": size,
            "wal_bytes": log,
            "disk": self._disk(),
            "commits": attrs.asdict(self.database.times.summary()),
            "maintenance": self.retention.report(),
            **self._tables(),
        }

    def _disk(self) -> str:
        try:
            free = self.free_bytes(self.directory)
        except OSError:
            return "unknown"
        if free < FULL_BYTES:
            return "full"
        return "low" if free < LOW_BYTES else "ok"

    def _tables(self) -> dict[str, Any]:
        now = self.monotonic()
        if self._kept is not None and now < self._kept[0]:
            return self._kept[1]
        counted = self._count()
        took = self.monotonic() - now
        self._kept = now + max(SHORTEST_LIFE, took * _DEAREST), counted
        return counted

    def _count(self) -> dict[str, Any]:
        now = self.database.now_ms()
        tables = {
            "journal": self._aged(
                "journal",
                "state = 'settled' AND confirmed = 1 AND settled_ms < ?",
                now,
                JOURNAL_MS,
                _JOURNAL_STATES,
            ),
            "outbox": self._live_outbox(),
            "tombstones": self._tombstones(now),
            "audit": self._aged("audit", "at_ms < ?", now, HISTORY_MS),
            "messages": self._aged("messages", "at_ms < ?", now, MESSAGES_MS),
            "spawns": self._aged(
                "spawns", "state = 'ended' AND ended_ms < ?", now, HISTORY_MS, _SPAWN_STATES
            ),
        }
        return {**tables, "commands": self.commands()}

    def _aged(
        self, table: str, old: str, now: int, age_ms: int, states: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """A table whose rows go by age."""
        found: dict[str, Any] = {}
        if states:
            found = self._states(table, states)
        else:
            found = {"total": self._one(f"SELECT count(*) FROM {table}")}
        eligible, overdue = (
            self._one(f"SELECT count(*) FROM {table} WHERE {old}", before)
            for before in (now - age_ms, now - age_ms - LATE_MS)
        )
        return {
            **found,
            "eligible": eligible,
            "overdue": overdue,
            "retention_seconds": age_ms // 1000,
            "storage_pressure": overdue > 0,
        }

    def _tombstones(self, now: int) -> dict[str, Any]:
        total = self._one("SELECT count(*) FROM outbox WHERE state = 'delivered'")
        beyond = max(0, total - TOMBSTONES)
        old, late = (
            self._one(
                "SELECT count(*) FROM outbox WHERE state = 'delivered' AND finished_ms < ?", before
            )
            for before in (now - TOMBSTONE_MS, now - TOMBSTONE_MS - LATE_MS)
        )
        overdue = min(late, beyond)
        return {
            "total": total,
            "eligible": min(old, beyond),
            "overdue": overdue,
            "retention_seconds": TOMBSTONE_MS // 1000,
            "retention_count": TOMBSTONES,
            "storage_pressure": overdue > 0,
        }

    def _live_outbox(self) -> dict[str, Any]:
        found = self._states("outbox", _OUTBOX_STATES, " WHERE state <> 'delivered'")
        aside = ("uncertain", "dead_letter", "hold")
        return {**found, "unresolved": sum(found["states"][name] for name in aside)}

    def _states(self, table: str, names: tuple[str, ...], where: str = "") -> dict[str, Any]:
        states = dict.fromkeys(names, 0)
        rows = self.database.read(f"SELECT state, count(*) FROM {table}{where} GROUP BY state")
        for state, count in rows:
            if state not in states:
                raise StoreError(f"a row of {table} is in no state that is known")
            states[state] = count
        return {"total": sum(states.values()), "states": states}

    def _one(self, sql: str, *parameters: int) -> int:
        return int(self.database.read(sql, parameters)[0][0])


def _free_bytes(directory: Path) -> int:
    disk = os.statvfs(directory)
    return disk.f_bavail * disk.f_frsize
