"""Retention: what has served its time goes, in small batches, at the start and hourly."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase, TestCase

from pitelegram.errors import Fenced
from pitelegram.kernel.deferring import deferred
from pitelegram.store.bindings import Bindings
from pitelegram.store.database import Database
from pitelegram.store.journal import Journal
from pitelegram.store.leadership import Leadership
from pitelegram.store.outbox import Outbox
from pitelegram.store.retention import (
    BATCH,
    PAUSE,
    PERIOD,
    SMALLEST,
    TOMBSTONES,
    Retention,
)
from pitelegram.store.rows import Incoming
from pitelegram.store.specs import Specs
from pitelegram.testing.stores import leader_database

HOUR = 3600.0
DAY = 24 * HOUR
CALL = {"method": "sendMessage", "params": {"text": "x"}}


@attrs.define
class Scripted:
    """A table that has so many old rows; each round takes a batch.

    @ivar rows: what is left.
    @ivar asked: C{(before_ms, …)} of each call.
    @ivar takes: called at each batch with its size; time may pass there.
    """

    rows: int = 0
    asked: list[tuple[Any, ...]] = attrs.field(factory=list)
    answer: Any = None
    takes: Any = None

    def take(self, *arguments: Any) -> Deferred[int]:
        """Take up to a batch."""
        self.asked.append(arguments)
        if self.answer is not None:
            return self.answer
        gone = min(self.rows, arguments[-1])
        if self.takes is not None:
            self.takes(gone)
        self.rows -= gone
        return succeed(gone)

    forget_settled = forget_messages = forget_delivered = forget_history = take


class RetentionCase(SynchronousTestCase):
    """A store and its retention on one clock."""

    def setUp(self) -> None:
        """Build them; retention is started by the test."""
        self.clock = Clock()
        self.clock.advance(1_700_000_000)
        self.database = leader_database(self.clock)
        self.addCleanup(self.database.stopService)

    def begin(self, *tables: Any) -> Retention:
        """Start retention over these tables."""
        retention = Retention(self.clock, self.database, *tables, monotonic=self.clock.seconds)
        retention.startService()
        self.addCleanup(lambda: retention.running and retention.stopService())
        return retention


class StoreTests(RetentionCase):
    """On the real store."""

    def setUp(self) -> None:
        """Also make the tables' objects."""
        super().setUp()
        self.journal = Journal(self.database)
        self.outbox = Outbox(self.database)
        self.bindings = Bindings(self.database)
        self.leadership = Leadership(self.database)

    def update(self, number: int, settle: bool) -> None:
        """Store an update, and settle it as the daemon's own."""
        row = Incoming(
            update_id=number,
            kind="message",
            chat_id=1,
            thread_id=None,
            message_id=number,
            callback_id=None,
            body=b"{}",
        )
        (stored,) = self.successResultOf(self.journal.accept(1, [row], number + 1))
        if settle:
            self.successResultOf(self.journal.settle([stored.seq]))

    def known(self, number: int) -> bool:
        """Whether an update is still known."""
        found = self.database.read("SELECT 1 FROM journal WHERE update_id = ?", (number,))
        return bool(found)

    def test_ages(self) -> None:
        """Settled updates go after 48 h, message owners after 30 days; what is unsettled never."""
        self.update(1, settle=True)
        self.update(2, settle=False)
        self.successResultOf(self.bindings.remember_messages(1, [5], "spec-a", outgoing=True))
        self.begin(self.journal, self.outbox, self.bindings, self.leadership)
        for hours, settled, owner in ((47, True, True), (2, False, True), (30 * 24, False, False)):
            self.clock.pump([PERIOD] * hours)
            self.assertIs(self.known(1), settled, hours)
            self.assertIs(self.bindings.message_owner(1, 5) is not None, owner, hours)
        self.assertTrue(self.known(2))

    def test_tombstones(self) -> None:
        """A tombstone goes once it is older than 45 days and beyond the newest 4,096."""
        for number in range(TOMBSTONES + 2):
            self.clock.advance(0.01)
            delivery = f"d{number}"
            self.successResultOf(self.outbox.submit("spec-a", delivery, "final", "x", [CALL]))
            part = self.outbox.next_part("spec-a")
            self.successResultOf(self.outbox.delivered(part.key, 0, [number]))
        self.begin(self.journal, self.outbox, self.bindings, self.leadership)
        self.clock.advance(44 * DAY)
        self.assertIsNotNone(self.outbox.find("spec-a", "d0"))
        self.clock.advance(2 * DAY)
        self.clock.pump([PERIOD, PERIOD])
        self.assertIsNone(self.outbox.find("spec-a", "d0"))
        self.assertIsNone(self.outbox.find("spec-a", "d1"))
        self.assertIsNotNone(self.outbox.find("spec-a", "d2"))

    def test_dead_letters_stay(self) -> None:
        """Retention never removes a dead letter."""
        self.successResultOf(self.outbox.submit("spec-a", "d", "final", "x", [CALL]))
        part = self.outbox.next_part("spec-a")
        self.successResultOf(self.outbox.sending(part.key, 0))
        self.successResultOf(self.outbox.dead(part.key, 0, "refused-400"))
        self.begin(self.journal, self.outbox, self.bindings, self.leadership)
        self.clock.pump([30 * DAY] * 12)
        self.assertEqual(self.outbox.counts()["dead_letter"], 1)

    def test_history(self) -> None:
        """Audit lines and ended spawns go after 90 days; a spawn that may live stays."""
        specs = Specs(self.database)
        self.successResultOf(specs.create("s", "app", "/app"))
        for spawn in ("old", "live"):
            self.successResultOf(specs.intend(spawn, "s", b"x"))
        self.successResultOf(specs.ended("old", "exit code 0"))
        self.successResultOf(self.leadership.audit("spec:s", "operator", "start", "asked"))
        self.begin(self.journal, self.outbox, self.bindings, self.leadership)
        for days, left in ((89, ["live", "old"]), (2, ["live"])):
            self.clock.pump([PERIOD] * days * 24)
            spawns = self.database.read("SELECT spawn_id FROM spawns ORDER BY spawn_id")
            self.assertEqual([row["spawn_id"] for row in spawns], left)
            lines = self.database.read("SELECT 1 FROM audit")
            self.assertEqual(len(lines), len(left) - 1)


class RoundTests(RetentionCase):
    """When and how much."""

    def test_batches(self) -> None:
        """A large backlog goes batch by batch, with a pause after each."""
        table = Scripted(2 * BATCH + 1)
        self.begin(table, Scripted(), Scripted(), Scripted())
        self.assertEqual(len(table.asked), 1)
        self.clock.advance(PAUSE)
        self.assertEqual(len(table.asked), 2)
        self.clock.advance(PAUSE)
        self.assertEqual((len(table.asked), table.rows), (3, 0))
        self.clock.advance(PAUSE)
        self.assertEqual(len(table.asked), 3)
        self.assertEqual(table.asked[0][-1], BATCH)

    def test_as_fast_as_the_disk(self) -> None:
        """A batch that takes longer than an update may wait is followed by a smaller one, and back."""
        ticks = Clock()
        table = Scripted(5000, takes=lambda rows: ticks.advance(rows * 0.0009))
        tables = (table, Scripted(), Scripted(), Scripted())
        retention = Retention(self.clock, self.database, *tables, monotonic=ticks.seconds)
        retention.startService()
        self.addCleanup(retention.stopService)
        self.clock.pump([PAUSE] * 4)
        sizes = [asked[-1] for asked in table.asked]
        self.assertEqual(sizes, [200, 100, 50, 25, 25])
        table.takes = lambda rows: ticks.advance(rows * 0.01)
        self.clock.pump([PAUSE] * 4)
        self.assertEqual(table.asked[-1][-1], SMALLEST)
        table.takes = None
        self.clock.pump([PAUSE] * 20)
        self.assertEqual(table.asked[-1][-1], BATCH)

    def test_hourly(self) -> None:
        """One round at the start, then one each hour; a long one is not doubled."""
        table = Scripted()
        self.begin(table, Scripted(), Scripted(), Scripted())
        self.clock.advance(PERIOD)
        self.assertEqual(len(table.asked), 2)
        slow: Deferred[int] = Deferred()
        table.answer = slow
        self.clock.pump([PERIOD, PERIOD, PERIOD])
        self.assertEqual(len(table.asked), 3)
        table.answer = None
        slow.callback(0)
        self.clock.advance(PERIOD)
        self.assertEqual(len(table.asked), 4)

    def test_failure(self) -> None:
        """A store that refuses is told of in the log; the next hour tries again."""
        table = Scripted()
        failing: Deferred[int] = Deferred()
        table.answer = failing
        self.begin(table, Scripted(), Scripted(), Scripted())
        failing.errback(Fenced("another leader"))
        table.answer = None
        self.clock.advance(PERIOD)
        self.assertEqual(len(table.asked), 2)

    def test_stop(self) -> None:
        """A stop ends a round that is between two batches, and asks for nothing more."""
        table = Scripted(5 * BATCH)
        retention = self.begin(table, Scripted(), Scripted(), Scripted())
        self.successResultOf(retention.stopService())
        self.clock.advance(2 * PERIOD)
        self.assertEqual(len(table.asked), 1)
        self.assertEqual(self.clock.getDelayedCalls(), [])


class ThreadTests(TestCase):
    """On disk, with the writer's own thread."""

    timeout = 30

    @deferred
    async def test_updates_go_between(self) -> None:
        """An update that comes in the middle of a long round is stored in its middle, not behind it."""
        from twisted.internet import reactor

        directory = Path(self.mktemp()).resolve()
        directory.mkdir(mode=0o700, parents=True)
        database = Database(directory / "x.sqlite3", "leader", reactor, reactor)
        database.startService()
        self.addCleanup(database.stopService)
        await database.acquire("epoch")
        await database.write("fill", _fill)
        journal = Journal(database)
        retention = Retention(
            reactor,
            database,
            journal,
            Outbox(database),
            Bindings(database),
            Leadership(database),
        )
        retention.startService()
        self.addCleanup(retention.stopService)
        left = 0
        for number in range(3):
            row = Incoming(
                update_id=number,
                kind="message",
                chat_id=1,
                thread_id=None,
                message_id=number,
                callback_id=None,
                body=b"{}",
            )
            await journal.accept(1, [row], number + 1)
            ((left,),) = database.read("SELECT count(*) FROM messages")
            self.assertEqual(retention.report()["status"], "never")
        self.assertGreater(left, 0)
        await retention.stopService()


def _fill(connection: sqlite3.Connection) -> None:
    connection.executemany(
        "INSERT INTO messages VALUES (1, ?, 'b', 1, 1)", [(number,) for number in range(3_000)]
    )
