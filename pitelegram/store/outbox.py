"""Answers on their way into the chat; states in C{docs/durability.md}."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from zope.interface import implementer

from pitelegram.errors import Refusal
from pitelegram.kernel.jsonio import dumps, loads
from pitelegram.store.database import Database
from pitelegram.store.interfaces import IOutbox
from pitelegram.store.parts import SENDABLE, change_part, derive, replace_part
from pitelegram.store.rows import OutboxPart

_NEXT = (
    "SELECT o.key, p.part, o.binding_key, p.state, p.attempts, p.next_attempt_ms, p.plain, p.call,"
    " p.first_attempt_ms"
    f" FROM outbox AS o INDEXED BY outbox_sendable JOIN outbox_parts AS p ON p.key = o.key"
    f" WHERE o.binding_key = ? AND o.{SENDABLE} AND p.{SENDABLE} ORDER BY o.seq, p.part LIMIT 1"
)
_LIVE_BINDINGS = (
    f"SELECT DISTINCT binding_key FROM outbox INDEXED BY outbox_sendable WHERE {SENDABLE}"
    " ORDER BY binding_key"
)
_ITEMS = (
    "SELECT o.key, o.state, o.binding_key, o.created_ms AS created_at_ms,"
    " (SELECT sum(attempts) FROM outbox_parts AS p WHERE p.key = o.key) AS attempts,"
    " (SELECT reason FROM outbox_parts AS p WHERE p.key = o.key AND p.reason IS NOT NULL"
    "  AND p.state <> 'delivered' ORDER BY p.part LIMIT 1) AS reason"
    " FROM outbox AS o INDEXED BY outbox_live WHERE o.state <> 'delivered' ORDER BY o.seq"
)
_COUNTS = (
    "SELECT state, count(*) FROM outbox INDEXED BY outbox_live"
    " WHERE state <> 'delivered' GROUP BY state"
)
_INTERRUPTED = (
    "SELECT p.key, p.part FROM outbox AS o INDEXED BY outbox_live"
    " JOIN outbox_parts AS p ON p.key = o.key"
    " WHERE o.state <> 'delivered' AND p.state = 'sending'"
)
_FORGET = (
    "DELETE FROM outbox WHERE key IN (SELECT key FROM outbox INDEXED BY outbox_delivered"
    " WHERE state = 'delivered' AND finished_ms < ? AND finished_ms <="
    " (SELECT finished_ms FROM outbox INDEXED BY outbox_delivered WHERE state = 'delivered'"
    "  ORDER BY finished_ms DESC LIMIT 1 OFFSET ?) LIMIT ?)"
)

_RECEIPTS = {"delivered": "delivered", "uncertain": "uncertain", "dead_letter": "dead-letter"}


def outbox_key(binding_key: str, delivery_id: str) -> str:
    """Return the opaque key of a delivery (also the name of its spool directory)."""
    text = f"{binding_key}\0{delivery_id}"
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def receipt_state(state: str) -> str:
    """Return what a receipt says of a delivery in C{state}."""
    return _RECEIPTS.get(state, "accepted")


@implementer(IOutbox)
@attrs.define(eq=False)
class Outbox:
    """See L{IOutbox}.

    @param database: the leader's store.
    """

    _database: Database

    def find(self, binding_key: str, delivery_id: str) -> tuple[str, str] | None:
        """Return C{(state, digest)} of a known delivery, tombstones included."""
        rows = self._database.read(
            "SELECT state, digest FROM outbox WHERE binding_key = ? AND delivery_id = ?",
            (binding_key, delivery_id),
        )
        return (rows[0]["state"], rows[0]["digest"]) if rows else None

    def submit(
        self,
        binding_key: str,
        delivery_id: str,
        kind: str,
        digest: str,
        calls: Sequence[dict[str, Any]],
        hold: str | None = None,
    ) -> Deferred[str]:
        """Store a delivery, or find it; fires with the receipt's state.

        @raise Refusal: C{delivery-id-collision} for other content.
        """
        if not calls:
            raise ValueError("a delivery has at least one call")
        now, key = self._database.now_ms(), outbox_key(binding_key, delivery_id)
        each = "pending" if hold is None else "dead_letter"
        parts = [(key, part, each, hold, dumps(call)) for part, call in enumerate(calls)]

        def work(connection: sqlite3.Connection) -> str:
            known = connection.execute(
                "SELECT state, digest FROM outbox WHERE key = ?", (key,)
            ).fetchone()
            if known is not None:
                return _known(known, digest)
            connection.execute(
                "INSERT INTO outbox (key, binding_key, delivery_id, seq, kind, state, digest,"
                " created_ms) VALUES (?, ?, ?, (SELECT coalesce(max(seq), 0) + 1 FROM outbox),"
                " ?, ?, ?, ?)",
                (key, binding_key, delivery_id, kind, "hold" if hold else "pending", digest, now),
            )
            connection.executemany(
                "INSERT INTO outbox_parts (key, part, state, reason, call) VALUES (?, ?, ?, ?, ?)",
                parts,
            )
            return "accepted"

        return self._database.write("submit delivery", work)

    def live_bindings(self) -> list[str]:
        """Return the bindings that have something to send."""
        return [row[0] for row in self._database.read(_LIVE_BINDINGS)]

    def next_part(self, binding_key: str) -> OutboxPart | None:
        """Return the first sendable part in order; parked and dead ones block nothing.

        A part in C{retry_wait} is returned before its time (see its C{next_attempt_ms}), since
        nothing may overtake it.  None while a part is being sent.
        """
        rows = self._database.read(_NEXT, (binding_key,))
        if not rows or rows[0]["state"] == "sending":
            return None
        row = dict(rows[0])
        return OutboxPart(**{**row, "plain": bool(row["plain"]), "call": loads(row["call"])})

    def sending(self, key: str, part: int) -> Deferred[None]:
        """State C{sending}, one attempt more; committed before the request is written.

        @raise StoreError: the part is not C{pending} or C{retry_wait}.
        """
        return self._change(
            key,
            part,
            "state = 'sending', attempts = attempts + 1, next_attempt_ms = NULL,"
            " first_attempt_ms = coalesce(first_attempt_ms, ?)",
            "state IN ('pending', 'retry_wait')",
            (self._database.now_ms(),),
        )

    def delivered(self, key: str, part: int, message_ids: Sequence[int]) -> Deferred[None]:
        """State C{delivered}: the call goes, the message ids stay."""
        return self._change(
            key,
            part,
            "state = 'delivered', call = NULL, reason = NULL, next_attempt_ms = NULL,"
            " message_ids = ?",
            "state <> 'delivered'",
            (json.dumps(list(message_ids)),),
        )

    def retry(self, key: str, part: int, next_attempt_ms: int, reason: str) -> Deferred[None]:
        """State C{retry_wait} until that time.

        For a part that did not get as far as C{sending} this is an attempt, too.
        """
        return self._change(
            key,
            part,
            "attempts = attempts + (state <> 'sending'), state = 'retry_wait', next_attempt_ms = ?,"
            " reason = ?, first_attempt_ms = coalesce(first_attempt_ms, ?)",
            SENDABLE,
            (next_attempt_ms, reason, self._database.now_ms()),
        )

    def replace_call(self, key: str, part: int, calls: Sequence[dict[str, Any]]) -> Deferred[None]:
        """State C{pending} with other calls (sets C{plain}); again while its call has C{otherwise}.

        More than one call become parts of their own, before what was behind this part.

        @raise StoreError: the part was re-rendered before, and there is nothing else to send.
        """
        now = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> None:
            replace_part(connection, key, part, calls)
            derive(connection, key, now)

        return self._database.write("replace call", work)

    def park(self, key: str, part: int, reason: str) -> Deferred[None]:
        """State C{uncertain}: shown, and repeated only by the operator."""
        return self._change(
            key,
            part,
            "state = 'uncertain', next_attempt_ms = NULL, reason = ?",
            SENDABLE,
            (reason,),
        )

    def dead(self, key: str, part: int, reason: str) -> Deferred[None]:
        """State C{dead_letter}: this part was refused, and what came behind it stays unsent."""

        def work(connection: sqlite3.Connection) -> None:
            change_part(
                connection,
                (key, part),
                "state = 'dead_letter', next_attempt_ms = NULL, reason = ?",
                SENDABLE,
                (reason,),
            )
            connection.execute(
                "UPDATE outbox_parts SET state = 'dead_letter', next_attempt_ms = NULL,"
                " reason = 'after-refused-part' WHERE key = ? AND state IN ('pending', 'retry_wait')",
                (key,),
            )
            derive(connection, key, now)

        now = self._database.now_ms()
        return self._database.write("dead letter", work)

    def again(self, key: str) -> Deferred[bool]:
        """Parked and dead parts of a delivery become C{pending}; False if there were none.

        One that is held back has none.
        """
        now = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> bool:
            changed = connection.execute(
                "UPDATE outbox_parts SET state = 'pending', reason = NULL, next_attempt_ms = NULL,"
                " first_attempt_ms = NULL WHERE key = ? AND state IN ('uncertain', 'dead_letter')"
                " AND (SELECT state FROM outbox WHERE key = ?) <> 'hold'",
                (key, key),
            ).rowcount
            if changed:
                derive(connection, key, now)
            return changed > 0

        return self._database.write("deliver again", work)

    def interrupted(self) -> Deferred[int]:
        """At start: parts left in C{sending} by a killed leader become C{uncertain}."""
        now = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> int:
            left = [tuple(row) for row in connection.execute(_INTERRUPTED).fetchall()]
            for found in left:
                change_part(
                    connection, found, "state = 'uncertain', reason = 'interrupted'", SENDABLE
                )
                derive(connection, found[0], now)
            return len(left)

        return self._database.write("interrupted deliveries", work)

    def items(self) -> list[dict[str, Any]]:
        """Return the undelivered deliveries, oldest first."""
        return [dict(row) for row in self._database.read(_ITEMS)]

    def state_of(self, key: str) -> str | None:
        """Return a delivery's state by its key."""
        rows = self._database.read("SELECT state FROM outbox WHERE key = ?", (key,))
        return rows[0]["state"] if rows else None

    def counts(self) -> dict[str, int]:
        """Return deliveries as C{pending} (C{retry_wait} too), C{sending}, C{uncertain}, C{dead_letter}.

        Those that are held back are none of these.
        """
        result = {"pending": 0, "sending": 0, "uncertain": 0, "dead_letter": 0}
        for state, count in self._database.read(_COUNTS):
            name = "pending" if state == "retry_wait" else state
            if name in result:
                result[name] += count
        return result

    def forget_delivered(self, before_ms: int, keep: int, limit: int) -> Deferred[int]:
        """Delete tombstones that are older than that and beyond the newest C{keep}."""

        def work(connection: sqlite3.Connection) -> int:
            return connection.execute(_FORGET, (before_ms, keep, limit)).rowcount

        return self._database.write("forget delivered", work)

    def _change(
        self,
        key: str,
        part: int,
        assignments: str,
        condition: str,
        values: Sequence[object] = (),
    ) -> Deferred[None]:
        now = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> None:
            change_part(connection, (key, part), assignments, condition, values)
            derive(connection, key, now)

        return self._database.write("change delivery", work)


def _known(row: sqlite3.Row, digest: str) -> str:
    if row["digest"] != digest:
        raise Refusal("delivery-id-collision", "this delivery id stands for other content")
    return receipt_state(row["state"])
