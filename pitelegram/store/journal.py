"""Updates between Telegram and a durable receipt; states in C{docs/durability.md}."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

import attrs
from twisted.internet.defer import Deferred
from zope.interface import implementer

from pitelegram.errors import StoreError
from pitelegram.store.database import Database
from pitelegram.store.interfaces import IJournal
from pitelegram.store.rows import Incoming, JournalRow

_COLUMNS = (
    "seq, update_id, kind, chat_id, thread_id, message_id, callback_id, state, recipient,"
    " delivery_id, attempts, wrong_receipts, next_attempt_ms, told, received_ms, body"
)
_OPEN = "state NOT IN ('settled', 'failed')"

# The row id gives the order as well, so the planner would walk through every settled row.
_UNSETTLED = (
    f"SELECT {_COLUMNS} FROM journal INDEXED BY journal_live"
    f" WHERE state <> 'settled' AND {_OPEN} ORDER BY seq"
)
_COUNTS = (
    "SELECT state, count(*) FROM journal INDEXED BY journal_live"
    " WHERE state <> 'settled' GROUP BY state"
)
_UNCONFIRMED = (
    "SELECT delivery_id FROM journal INDEXED BY journal_unconfirmed"
    " WHERE state = 'settled' AND confirmed = 0 AND recipient IS NOT NULL AND recipient = ?"
    " ORDER BY seq LIMIT ?"
)
_CONFIRM = (
    "UPDATE journal SET confirmed = 1"
    " WHERE delivery_id IS NOT NULL AND confirmed = 0 AND delivery_id = ? AND state = 'settled'"
)
_FORGET = (
    "DELETE FROM journal WHERE seq IN (SELECT seq FROM journal INDEXED BY journal_settled"
    " WHERE state = 'settled' AND settled_ms < ? AND confirmed = 1 LIMIT ?)"
)


@implementer(IJournal)
@attrs.define(eq=False)
class Journal:
    """See L{IJournal}.

    @param database: the leader's store.
    """

    _database: Database
    _cursors: dict[int, int] = attrs.field(factory=dict, init=False)

    def cursor(self, bot_id: int) -> int | None:
        """Return the next offset to poll with, None before the first batch of this bot.

        It is read once: nobody else can move it while this process leads.
        """
        if bot_id not in self._cursors:
            found = self._database.read(
                "SELECT next_offset FROM cursors WHERE bot_id = ?", (bot_id,)
            )
            if not found:
                return None
            self._cursors[bot_id] = found[0]["next_offset"]
        return self._cursors[bot_id]

    def accept(
        self, bot_id: int, updates: Sequence[Incoming], next_offset: int
    ) -> Deferred[list[JournalRow]]:
        """Store updates and cursor together; fires with the new rows (known ids are left out)."""
        now = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> list[JournalRow]:
            rows = [_insert(connection, bot_id, update, now) for update in updates]
            connection.execute(
                "INSERT OR REPLACE INTO cursors (bot_id, next_offset) VALUES (?, ?)",
                (bot_id, next_offset),
            )
            return [row for row in rows if row is not None]

        def stored(rows: list[JournalRow]) -> list[JournalRow]:
            self._cursors[bot_id] = next_offset
            return rows

        return self._database.write("accept updates", work).addCallback(stored)

    def unsettled(self) -> list[JournalRow]:
        """Return all rows that are neither C{settled} nor C{failed}, oldest first."""
        return [_row(row) for row in self._database.read(_UNSETTLED)]

    def pin(self, seq: int, recipient: str, delivery_id: str) -> Deferred[None]:
        """State C{forwarding}; from now on only C{recipient} is offered this row.

        @raise StoreError: the row is pinned to another binding, or it is over.
        """
        return self._change(
            "pin",
            "state = 'forwarding', recipient = ?, delivery_id = ?, next_attempt_ms = NULL",
            f"seq = ? AND {_OPEN} AND (recipient IS NULL OR recipient = ?)",
            (recipient, delivery_id, seq, recipient),
        )

    def hold(self, seq: int) -> Deferred[None]:
        """State C{held}: nobody is there.  A pin stays."""
        return self._change(
            "hold", "state = 'held', next_attempt_ms = NULL", f"seq = ? AND {_OPEN}", (seq,)
        )

    def retry(self, seq: int, next_attempt_ms: int, reason: str, release: bool) -> Deferred[None]:
        """State C{retry_wait}, one attempt more; C{release} takes the pin away."""
        pin = ", recipient = NULL, delivery_id = NULL" if release else ""
        return self._change(
            "retry",
            "state = 'retry_wait', attempts = attempts + 1, next_attempt_ms = ?, reason = ?" + pin,
            f"seq = ? AND {_OPEN}",
            (next_attempt_ms, reason, seq),
        )

    def release(self, seq: int) -> Deferred[None]:
        """Take the pin away after proof of non-admission; state C{pending}."""
        return self._change(
            "release",
            "state = 'pending', recipient = NULL, delivery_id = NULL, next_attempt_ms = NULL",
            f"seq = ? AND {_OPEN}",
            (seq,),
        )

    def settle(self, seqs: Iterable[int]) -> Deferred[None]:
        """State C{settled}: the body goes, the bare id stays.  Settled rows stay as they are."""
        now = self._database.now_ms()
        wanted = [(now, seq) for seq in seqs]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "UPDATE journal SET state = 'settled', body = NULL, next_attempt_ms = NULL,"
                " settled_ms = ?, confirmed = recipient IS NULL"
                " WHERE seq = ? AND state <> 'settled'",
                wanted,
            )

        return self._database.write("settle updates", work)

    def fail(self, seq: int, reason: str) -> Deferred[None]:
        """State C{failed}: visible, not tried again."""
        return self._change(
            "fail",
            "state = 'failed', reason = ?, next_attempt_ms = NULL",
            f"seq = ? AND {_OPEN}",
            (reason, seq),
        )

    def wrong_receipt(self, seq: int) -> Deferred[int]:
        """Count one; fires with the new count."""

        def work(connection: sqlite3.Connection) -> int:
            connection.execute(
                "UPDATE journal SET wrong_receipts = wrong_receipts + 1 WHERE seq = ?", (seq,)
            )
            found = connection.execute("SELECT wrong_receipts FROM journal WHERE seq = ?", (seq,))
            row = found.fetchone()
            if row is None:
                raise StoreError("there is no such journal row")
            return int(row[0])

        return self._database.write("wrong receipt", work)

    def told(self, seqs: Iterable[int]) -> Deferred[None]:
        """Remember that the user was told that these are held."""
        wanted = [(seq,) for seq in seqs]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany("UPDATE journal SET told = 1 WHERE seq = ?", wanted)

        return self._database.write("told", work)

    def unconfirmed(self, recipient: str, limit: int) -> list[str]:
        """Return settled delivery ids of a binding whose C{confirmSettled} is outstanding."""
        return [row[0] for row in self._database.read(_UNCONFIRMED, (recipient, limit))]

    def confirm(self, delivery_ids: Iterable[str]) -> Deferred[None]:
        """The worker answered C{confirmSettled} for these."""
        wanted = [(delivery_id,) for delivery_id in delivery_ids]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(_CONFIRM, wanted)

        return self._database.write("confirm settled", work)

    def counts(self) -> dict[str, int]:
        """Return C{pending}, C{held}, C{retry_wait}, C{failed} (C{forwarding} is pending too)."""
        result = {"pending": 0, "held": 0, "retry_wait": 0, "failed": 0}
        for state, count in self._database.read(_COUNTS):
            result["pending" if state == "forwarding" else state] += count
        return result

    def claim_callback(self, callback_id: str) -> Deferred[bool]:
        """True exactly once per callback id: its action may be executed."""
        now = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> bool:
            claimed = connection.execute(
                "INSERT OR IGNORE INTO callbacks (callback_id, executed_ms) VALUES (?, ?)",
                (callback_id, now),
            )
            return claimed.rowcount == 1

        return self._database.write("claim callback", work)

    def forget_settled(self, before_ms: int, limit: int) -> Deferred[int]:
        """Delete confirmed settled rows (and claimed callbacks) older than that.

        At most C{limit} of each kind go at once; fires with the larger number.
        """

        def work(connection: sqlite3.Connection) -> int:
            buttons = connection.execute(
                "DELETE FROM callbacks WHERE callback_id IN"
                " (SELECT callback_id FROM callbacks WHERE executed_ms < ? LIMIT ?)",
                (before_ms, limit),
            )
            updates = connection.execute(_FORGET, (before_ms, limit))
            return max(buttons.rowcount, updates.rowcount)

        return self._database.write("forget settled", work)

    def _change(
        self, name: str, assignments: str, condition: str, parameters: Sequence[object]
    ) -> Deferred[None]:
        def work(connection: sqlite3.Connection) -> None:
            changed = connection.execute(
                f"UPDATE journal SET {assignments} WHERE {condition}", parameters
            )
            if changed.rowcount != 1:
                raise StoreError(f"the journal row cannot do that any more ({name})")

        return self._database.write(f"{name} update", work)


def _insert(
    connection: sqlite3.Connection, bot_id: int, update: Incoming, now: int
) -> JournalRow | None:
    values = attrs.asdict(update)
    state = "pending" if update.recipient is None else "forwarding"
    inserted = connection.execute(
        "INSERT INTO journal (bot_id, update_id, kind, chat_id, thread_id, message_id,"
        " callback_id, body, recipient, delivery_id, state, received_ms) VALUES (:bot_id,"
        " :update_id, :kind, :chat_id, :thread_id, :message_id, :callback_id, :body, :recipient,"
        " :delivery_id, :state, :now)"
        " ON CONFLICT (bot_id, update_id) DO NOTHING",
        {**values, "bot_id": bot_id, "state": state, "now": now},
    )
    if inserted.rowcount != 1:
        return None
    return JournalRow(
        seq=int(inserted.lastrowid or 0),
        state=state,
        attempts=0,
        wrong_receipts=0,
        next_attempt_ms=None,
        told=False,
        received_ms=now,
        **values,
    )


def _row(row: sqlite3.Row) -> JournalRow:
    return JournalRow(**{**dict(row), "told": bool(row["told"])})
