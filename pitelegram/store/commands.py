"""Receipts of control commands, one per request id and host."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from zope.interface import implementer

from pitelegram.kernel.jsonio import dumps, loads
from pitelegram.store.database import Database
from pitelegram.store.receipts import ICommands
from pitelegram.store.rows import Claim, Receipt

HORIZON_MS = 7 * 24 * 3_600_000
"""A started command that nobody ended is uncertain after so long."""

AGE_MS = 30 * 24 * 3_600_000
COUNT = 4096
"""A receipt goes once it is both older than that and beyond the newest so many."""

TERMINAL = ("accepted", "rejected", "uncertain")

_COLUMNS = (
    "seq, request_id, action, canonical_version, canonical, fingerprint, selector_proof, subject,"
    " state, owner_hash, owner_until_ms, envelope, created_ms, started_ms"
)
_OWN = "host_id IN (?, '') AND request_id = ?"
_POOL = "(state IN ('accepted', 'rejected', 'uncertain') OR (state = 'reserved' AND owner_until_ms < ?))"
_ELIGIBLE = f"""
SELECT seq FROM (SELECT seq, changed_ms, row_number() OVER (ORDER BY changed_ms DESC, seq DESC)
    AS rank FROM commands WHERE host_id IN (?, '') AND {_POOL})
WHERE changed_ms < ? AND rank > ?
"""


@implementer(ICommands)
@attrs.define(eq=False)
class Commands:
    """See L{ICommands}.

    @param database: the leader's store.
    @param host_id: this host; what is stored under the empty one is of an older daemon.
    """

    _database: Database
    _host_id: str

    def find(self, request_id: str) -> Receipt | None:
        """Return the receipt; its envelope is None when it cannot be read."""
        rows = self._database.read(
            f"SELECT {_COLUMNS} FROM commands WHERE {_OWN} ORDER BY host_id DESC",
            (self._host_id, request_id),
        )
        return _receipt(rows[0]) if rows else None

    def reserve(self, claim: Claim) -> Deferred[bool]:
        """Take the id, or take it over from an owner whose lease is over; False: it is taken."""
        now = self._database.now_ms()
        row = {**attrs.asdict(claim), "host_id": self._host_id, "now": now}

        def work(connection: sqlite3.Connection) -> bool:
            legacy = connection.execute(
                "SELECT 1 FROM commands WHERE host_id = '' AND request_id = ?", (claim.request_id,)
            ).fetchone()
            if legacy is not None:
                return False
            made = connection.execute(
                "INSERT OR IGNORE INTO commands (host_id, request_id, action, canonical_version,"
                " canonical, fingerprint, selector_proof, subject, state, owner_hash,"
                " owner_until_ms, created_ms, changed_ms) VALUES (:host_id, :request_id, :action,"
                " 1, :canonical, :fingerprint, :selector_proof, :subject, 'reserved', :owner_hash,"
                " :owner_until_ms, :now, :now)",
                row,
            )
            if made.rowcount == 1:
                return True
            taken_over = connection.execute(
                "UPDATE commands SET owner_hash = :owner_hash, owner_until_ms = :owner_until_ms,"
                " changed_ms = :now WHERE host_id = :host_id AND request_id = :request_id"
                " AND state = 'reserved' AND action = :action AND canonical = :canonical"
                " AND owner_until_ms <= :now",
                row,
            )
            return taken_over.rowcount == 1

        return self._database.write("reserve command", work)

    def send_started(self, request_id: str, fingerprint: str, owner_hash: str) -> Deferred[bool]:
        """Say that the effect begins; False, and no change, when the row is not ours any more."""
        now = self._database.now_ms()
        return self._change(
            "UPDATE commands SET state = 'send_started', started_ms = ?, changed_ms = ?"
            " WHERE host_id = ? AND request_id = ? AND state = 'reserved' AND fingerprint = ?"
            " AND owner_hash = ?",
            (now, now, self._host_id, request_id, fingerprint, owner_hash),
        )

    def finish(self, request_id: str, state: str, envelope: dict[str, Any]) -> Deferred[bool]:
        """Keep the outcome; False, and no change, when there is one already."""
        now = self._database.now_ms()
        sources = ("send_started",) if state == "accepted" else ("reserved", "send_started")
        marks = ", ".join("?" for _ in sources)
        return self._change(
            "UPDATE commands SET state = ?, envelope = ?, finished_ms = ?, changed_ms = ?,"
            " owner_hash = '', owner_until_ms = NULL"
            f" WHERE host_id = ? AND request_id = ? AND state IN ({marks})",
            (state, dumps(envelope), now, now, self._host_id, request_id, *sources),
        )

    def abandon(self, request_id: str, owner_hash: str) -> Deferred[bool]:
        """A reserved row of ours that sent nothing goes."""
        return self._change(
            "DELETE FROM commands WHERE host_id = ? AND request_id = ? AND state = 'reserved'"
            " AND owner_hash = ?",
            (self._host_id, request_id, owner_hash),
        )

    def started(self, before_ms: int | None = None) -> list[Receipt]:
        """Return the receipts left in C{send_started}, oldest first."""
        condition, parameters = "", [self._host_id]
        if before_ms is not None:
            condition = " AND started_ms < ?"
            parameters.append(before_ms)  # type: ignore[arg-type]
        rows = self._database.read(
            f"SELECT {_COLUMNS} FROM commands WHERE host_id = ? AND state = 'send_started'"
            f"{condition} ORDER BY seq",
            parameters,
        )
        return [_receipt(row) for row in rows]

    def has_effect(self, request_id: str) -> bool:
        """Whether the daemon committed the change that this request asked of it."""
        return bool(
            self._database.read("SELECT 1 FROM effects WHERE request_id = ?", (request_id,))
        )

    def forget(self, limit: int) -> Deferred[int]:
        """Delete receipts that have served their time; fires with how many rows went."""
        now = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> int:
            gone = connection.execute(
                f"DELETE FROM commands WHERE seq IN ({_ELIGIBLE} ORDER BY changed_ms, seq LIMIT ?)",
                (self._host_id, now, now - AGE_MS, COUNT, limit),
            ).rowcount
            marks = connection.execute(
                "DELETE FROM effects WHERE request_id IN"
                " (SELECT request_id FROM effects WHERE at_ms < ? LIMIT ?)",
                (now - AGE_MS, limit),
            ).rowcount
            return max(gone, marks)

        return self._database.write("forget commands", work)

    def pressure(self) -> dict[str, Any]:
        """Return counts and policy for the status document."""
        now = self._database.now_ms()
        counted = self._database.read(
            "SELECT state, count(*) AS many FROM commands WHERE host_id IN (?, '') GROUP BY state",
            (self._host_id,),
        )
        states = dict.fromkeys(("reserved", "send_started", *TERMINAL), 0)
        states.update({row["state"]: row["many"] for row in counted})
        eligible = self._database.read(
            f"SELECT count(*) AS many FROM ({_ELIGIBLE})", (self._host_id, now, now - AGE_MS, COUNT)
        )[0]["many"]
        stale = len(self.started(now - HORIZON_MS))
        return {
            "total": sum(states.values()),
            "states": states,
            "stale_active": stale,
            "eligible": eligible,
            "retry_horizon_seconds": HORIZON_MS // 1000,
            "retention_seconds": AGE_MS // 1000,
            "retention_count": COUNT,
            "storage_pressure": stale > 0 or eligible > 0,
        }

    def _change(self, sql: str, parameters: Sequence[object]) -> Deferred[bool]:
        def work(connection: sqlite3.Connection) -> bool:
            return connection.execute(sql, parameters).rowcount == 1

        return self._database.write("change command", work)


def owner_hash(token: bytes) -> str:
    """Return what is stored of an owner's token."""
    return hashlib.sha256(b"pi-telegram.command-owner.v1\0" + token).hexdigest()


def mark_effect(connection: sqlite3.Connection, request_id: str | None, now: int) -> None:
    """Write, in the transaction that makes a change, which request asked for it."""
    if request_id:
        connection.execute(
            "INSERT OR IGNORE INTO effects (request_id, at_ms) VALUES (?, ?)", (request_id, now)
        )


def _receipt(row: sqlite3.Row) -> Receipt:
    values = dict(row)
    raw = values.pop("envelope")
    return Receipt(**values, envelope=None if raw is None else read_envelope(raw))


def read_envelope(raw: bytes | str) -> dict[str, Any] | None:
    """Return a stored envelope; None for what is none."""
    try:
        found = loads(raw)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
