"""What is settled must not make what is live slower: the plans of the hot statements."""

from __future__ import annotations

import sqlite3
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.store.inbox import Inbox
from pitelegram.store.journal import Journal
from pitelegram.store.outbox import Outbox
from pitelegram.testing.contracts_store import incoming, message
from pitelegram.testing.stores import leader_database, worker_database

ROWS = 20_000

JOURNAL = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
INSERT INTO journal (bot_id, update_id, kind, chat_id, state, recipient, delivery_id, confirmed,
    received_ms, settled_ms)
SELECT 1, i, 'message', 7, 'settled', 'spec-old', 'old' || i, 1, i, i FROM n
"""
OUTBOX = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
INSERT INTO outbox (key, binding_key, delivery_id, seq, kind, state, digest, created_ms,
    finished_ms)
SELECT 'k' || i, 'b', 'd' || i, i, 'final', 'delivered', 'x', i, i FROM n
"""
INBOX = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
INSERT INTO inbox (delivery_id, source, kind, state, admitted_ms, confirmed_ms)
SELECT 'd' || i, 'telegram', 'message', 'settled', i, i FROM n
"""


class Steps:
    """Counts SQLite's own steps (in thousands of instructions) of both connections."""

    def __init__(self, database: Any) -> None:
        self.count = 0
        database._opened.writer.set_progress_handler(self._step, 1000)

    def _step(self) -> int:
        self.count += 1
        return 0


class CostTests(SynchronousTestCase):
    """With many settled rows, each hot operation takes few steps.

    Walking through the retained rows once would take more than C{ROWS} instructions, so a limit of
    a few thousand proves that nobody does.
    """

    LIMIT = 5

    def filled(self, database: Any, sql: str) -> Any:
        """Fill a database with rows that are over."""
        self.addCleanup(database.stopService)
        self.successResultOf(database.write("fill", lambda c: c.execute(sql, (ROWS,))))
        return database

    def steps(self, database: Any, work: Any) -> int:
        """Return how many thousands of instructions C{work} took."""
        steps = Steps(database)
        work()
        return steps.count

    def test_counter_counts(self) -> None:
        """The measure itself: a full walk is far beyond the limit."""
        database = self.filled(leader_database(Clock()), JOURNAL)
        count = self.steps(
            database, lambda: database.read("SELECT count(*) FROM journal WHERE kind = 'x'")
        )
        self.assertGreater(count, ROWS / 1000)

    def test_journal(self) -> None:
        """The whole way of an update, with its counts, takes a bounded number of steps."""
        database = self.filled(leader_database(Clock()), JOURNAL)
        journal = Journal(database)

        def way() -> None:
            (row,) = self.successResultOf(journal.accept(1, [incoming(ROWS + 1)], ROWS + 2))
            self.successResultOf(journal.pin(row.seq, "spec-a", "d"))
            self.assertEqual(journal.unsettled()[0].seq, row.seq)
            self.successResultOf(journal.settle([row.seq]))
            self.assertEqual(journal.unconfirmed("spec-a", 10), ["d"])
            self.successResultOf(journal.confirm(["d"]))
            self.assertEqual(journal.counts()["pending"], 0)
            self.successResultOf(journal.forget_settled(-1, 10))

        self.assertLess(self.steps(database, way), self.LIMIT)

    def test_outbox(self) -> None:
        """The whole way of a delivery takes a bounded number of steps."""
        database = self.filled(leader_database(Clock()), OUTBOX)
        outbox = Outbox(database)

        def way() -> None:
            self.successResultOf(outbox.submit("b", "new", "final", "x", [message("m")]))
            part = outbox.next_part("b")
            assert part is not None
            self.successResultOf(outbox.interrupted())
            self.successResultOf(outbox.sending(part.key, 0))
            self.assertEqual(outbox.live_bindings(), ["b"])
            self.successResultOf(outbox.delivered(part.key, 0, [1]))
            self.assertEqual((outbox.items(), outbox.counts()["sending"]), ([], 0))
            self.assertIsNone(outbox.next_part("b"))
            self.successResultOf(outbox.forget_delivered(-1, 10, 10))

        self.assertLess(self.steps(database, way), self.LIMIT)

    def test_inbox(self) -> None:
        """The whole way of a prompt takes a bounded number of steps."""
        database = self.filled(worker_database(Clock()), INBOX)
        inbox = Inbox(database)

        def way() -> None:
            self.successResultOf(inbox.admit("new", "telegram", "message", b"{}", "p"))
            (row,) = inbox.rows("admitted", "held")
            self.successResultOf(inbox.hand(row.seq, "r", "run", None, 0, None))
            self.successResultOf(inbox.settle([row.seq]))
            self.successResultOf(inbox.confirm(["new"]))
            self.assertEqual(inbox.rows("handed"), [])

        self.assertLess(self.steps(database, way), self.LIMIT)


class PlanTests(SynchronousTestCase):
    """The same, by what the planner says."""

    def test_no_scan(self) -> None:
        """No hot statement scans a table of retained rows."""
        from pitelegram.store import journal, outbox

        database = leader_database(Clock())
        self.addCleanup(database.stopService)
        statements = {
            journal._UNSETTLED: (),
            journal._COUNTS: (),
            journal._UNCONFIRMED: ("b", 1),
            journal._CONFIRM: ("d",),
            journal._FORGET: (1, 1),
            outbox._NEXT: ("b",),
            outbox._LIVE_BINDINGS: (),
            outbox._ITEMS: (),
            outbox._COUNTS: (),
            outbox._INTERRUPTED: (),
            outbox._FORGET: (1, 1, 1),
        }
        opened = database._opened
        assert opened is not None
        for sql, parameters in statements.items():
            plan: list[sqlite3.Row] = opened.writer.execute(
                f"EXPLAIN QUERY PLAN {sql}", parameters
            ).fetchall()
            details = [row["detail"] for row in plan]
            bare = [each for each in details if each.startswith("SCAN") and "INDEX" not in each]
            self.assertEqual(bare, [], sql)
