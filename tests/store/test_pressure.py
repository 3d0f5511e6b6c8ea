"""What is told of the store: counts of real rows, sizes, durations, and failures that pass."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path
from typing import Any

from twisted.internet.defer import fail
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.control.pressure import checked
from pitelegram.errors import StoreError, StoreFull
from pitelegram.store.bindings import Bindings
from pitelegram.store.commands import Commands
from pitelegram.store.database import LARGE_LOG
from pitelegram.store.journal import Journal
from pitelegram.store.leadership import Leadership
from pitelegram.store.outbox import Outbox
from pitelegram.store.pressure import FULL_BYTES, LOW_BYTES, SHORTEST_LIFE, Pressure
from pitelegram.store.retention import HOUR_MS, PERIOD, TOMBSTONES, Retention
from pitelegram.store.rows import Incoming
from pitelegram.store.specs import Specs
from pitelegram.store.timings import CommitTimes
from pitelegram.store.writer import Committer, Write
from pitelegram.testing.stores import leader_database

HOUR = 3600.0
CALL = {"method": "sendMessage", "params": {"text": "x"}}


class Refusing:
    """A journal whose store has no room.

    @ivar refuses: whether that is so.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.refuses = True

    def forget_settled(self, before_ms: int, limit: int) -> Any:
        """Refuse, or do it."""
        if self.refuses:
            return fail(StoreFull("no space"))
        return self._journal.forget_settled(before_ms, limit)


class PressureCase(SynchronousTestCase):
    """A store on disk that is looked at; maintenance does not run."""

    def setUp(self) -> None:
        """Build it."""
        self.clock = Clock()
        self.clock.advance(1_700_000_000)
        directory = Path(self.mktemp()).resolve()
        directory.mkdir(mode=0o700, parents=True)
        self.path = directory / "leader.sqlite3"
        self.database = leader_database(self.clock, self.path)
        self.addCleanup(self.database.stopService)
        self.journal = Journal(self.database)
        self.outbox = Outbox(self.database)
        self.bindings = Bindings(self.database)
        self.leadership = Leadership(self.database)
        self.retention = Retention(
            self.clock,
            self.database,
            self.journal,
            self.outbox,
            self.bindings,
            self.leadership,
            self.clock.seconds,
        )
        self.free: Any = LOW_BYTES
        self.pressure = Pressure(
            self.database,
            self.retention,
            directory,
            self.clock.seconds,
            Commands(self.database, "host").pressure,
            self.free_bytes,
        )

    def free_bytes(self, directory: Path) -> int:
        """What the disk of the test has left."""
        if isinstance(self.free, Exception):
            raise self.free
        return self.free

    def look(self) -> dict[str, Any]:
        """The figures, counted anew; they must be right."""
        self.clock.advance(SHORTEST_LIFE)
        shown = checked(self.pressure.look())
        self.assertEqual(shown["status"], "ok")
        return shown

    def update(self, number: int, settle: bool) -> None:
        """Store an update; settle it as the daemon's own."""
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


class CountTests(PressureCase):
    """Rows."""

    def test_empty(self) -> None:
        """Nothing is anywhere, and that is right."""
        shown = self.look()
        self.assertIs(shown["pressure"], False)
        self.assertEqual(shown["journal"]["total"], 0)
        self.assertEqual(shown["journal"]["retention_seconds"], 48 * 3600)
        self.assertEqual(shown["tombstones"]["retention_count"], TOMBSTONES)

    def test_journal(self) -> None:
        """By state; what is old enough is eligible, and overdue two rounds later."""
        self.update(1, settle=True)
        self.update(2, settle=False)
        states = self.look()["journal"]["states"]
        self.assertEqual((states["settled"], states["pending"]), (1, 1))
        for hours, eligible, overdue in ((47, 0, 0), (2, 1, 0), (2, 1, 1)):
            self.clock.advance(hours * HOUR)
            journal = self.look()["journal"]
            self.assertEqual((journal["eligible"], journal["overdue"]), (eligible, overdue))
        self.assertIs(self.look()["pressure"], True)
        self.retention.startService()
        self.assertEqual(self.look()["journal"]["total"], 1)
        self.successResultOf(self.retention.stopService())

    def test_outbox(self) -> None:
        """Answers on their way and put aside, and tombstones."""
        for name in ("a", "b", "c"):
            self.successResultOf(self.outbox.submit(f"spec-{name}", "d", "final", "x", [CALL]))
        part = self.outbox.next_part("spec-a")
        self.successResultOf(self.outbox.sending(part.key, 0))
        self.successResultOf(self.outbox.park(part.key, 0, "no-answer"))
        part = self.outbox.next_part("spec-b")
        self.successResultOf(self.outbox.delivered(part.key, 0, [5]))
        shown = self.look()
        self.assertEqual(shown["outbox"]["total"], 2)
        self.assertEqual(shown["outbox"]["unresolved"], 1)
        self.assertEqual(shown["tombstones"]["total"], 1)

    def test_history(self) -> None:
        """Audit, spawns and messages."""
        specs = Specs(self.database)
        self.successResultOf(specs.create("s", "app", "/app"))
        for spawn in ("one", "two"):
            self.successResultOf(specs.intend(spawn, "s", b"x"))
        self.successResultOf(specs.ended("one", "exit code 0"))
        self.successResultOf(self.leadership.audit("spec:s", "operator", "start", "asked"))
        self.successResultOf(self.bindings.remember_messages(1, [5, 6], "spec-a", outgoing=True))
        shown = self.look()
        self.assertEqual(shown["spawns"]["states"]["ended"], 1)
        self.assertEqual(shown["spawns"]["total"], 2)
        self.assertEqual((shown["audit"]["total"], shown["messages"]["total"]), (1, 2))
        self.clock.advance(91 * 24 * HOUR)
        shown = self.look()
        for name, overdue in (("spawns", 1), ("audit", 1), ("messages", 2)):
            self.assertEqual(shown[name]["overdue"], overdue, name)

    def test_kept(self) -> None:
        """Rows are not counted at each look."""
        before = self.look()["journal"]["total"]
        self.update(1, settle=False)
        self.assertEqual(checked(self.pressure.look())["journal"]["total"], before)
        self.assertEqual(self.look()["journal"]["total"], before + 1)

    def test_strange_state(self) -> None:
        """A state that is none is not counted as another."""
        self.successResultOf(
            self.database.write(
                "damage",
                lambda connection: connection.executescript(
                    "PRAGMA ignore_check_constraints = ON;"
                    "INSERT INTO outbox VALUES ('k','b','d',1,'final','lost','x',1,NULL);"
                ),
            ).addErrback(lambda failure: failure.trap(Exception) and None)
        )
        self.clock.advance(SHORTEST_LIFE)
        rows = self.database.read("SELECT state FROM outbox")
        if [row["state"] for row in rows] != ["lost"]:
            raise AssertionError("the row was not made")
        self.assertRaises(StoreError, self.pressure.look)


class SizeTests(PressureCase):
    """Sizes, disk, commits."""

    def test_disk(self) -> None:
        """Classes, never figures."""
        for free, right in (
            (LOW_BYTES, "ok"),
            (LOW_BYTES - 1, "low"),
            (FULL_BYTES - 1, "full"),
            (OSError(errno.EIO, "x"), "unknown"),
        ):
            self.free = free
            self.assertEqual(self.look()["disk"], right)

    def test_sizes(self) -> None:
        """The file's and its log's."""
        self.update(1, settle=False)
        shown = self.look()
        self.assertEqual(shown["database_bytes"], self.path.stat().st_size)
        log = self.path.with_name(self.path.name + "-wal")
        self.assertEqual(shown["wal_bytes"], log.stat().st_size)
        self.assertGreater(shown["wal_bytes"], 0)

    def test_checkpoint(self) -> None:
        """A log that a reader made grow is cut off once he has gone; nobody waits for him."""
        reader = sqlite3.connect(self.path)
        self.addCleanup(reader.close)
        self.update(1, settle=False)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM journal").fetchone()
        blob = b"x" * 400_000
        for number in range(30):
            self.successResultOf(self.leadership.set_meta(f"k{number}", blob.decode()))
        self.assertGreater(self.database.sizes()[1], LARGE_LOG)
        self.successResultOf(self.database.checkpoint())
        self.assertGreater(self.database.sizes()[1], LARGE_LOG)
        reader.rollback()
        self.successResultOf(self.database.checkpoint())
        self.assertEqual(self.database.sizes()[1], 0)
        self.update(2, settle=False)

    def test_maintenance_checkpoints(self) -> None:
        """A round ends with one, so that the file has what the log had."""
        self.update(1, settle=False)
        self.retention.startService()
        self.addCleanup(self.retention.stopService)
        copy = self.path.with_name("copy.sqlite3")
        copy.write_bytes(self.path.read_bytes())
        with sqlite3.connect(copy) as connection:
            self.assertEqual(connection.execute("SELECT count(*) FROM journal").fetchone(), (1,))
        connection.close()

    def test_commits(self) -> None:
        """Each commit is counted."""
        before = self.look()["commits"]["count"]
        self.update(1, settle=True)
        self.assertEqual(self.look()["commits"]["count"], before + 2)


class TimesTests(SynchronousTestCase):
    """L{CommitTimes}."""

    def test_percentiles(self) -> None:
        """Of the newest only; the counts are of all."""
        times = CommitTimes(window=100)
        self.assertEqual(times.summary().window, 0)
        for number in range(1, 201):
            times.committed(number / 1_000_000)
        summary = times.summary()
        self.assertEqual((summary.count, summary.total_us, summary.window), (200, 20_100, 100))
        self.assertEqual((summary.p50_us, summary.p99_us), (150, 199))

    def test_measured(self) -> None:
        """From the transaction's beginning to its end, by the given clock."""
        clock = Clock()
        connection = sqlite3.connect(":memory:", isolation_level=None)
        self.addCleanup(connection.close)
        committer = Committer(connection, fenced=False, monotonic=clock.seconds)
        committer.commit([Write("w", lambda _: clock.advance(0.004))])
        self.assertEqual(committer.times.summary().p50_us, 4000)


class FullDiskTests(PressureCase):
    """A disk without room, and its end."""

    def fill(self, full: bool) -> None:
        """Let the database have no page more than it has, or as many as it likes."""

        def limit(connection: sqlite3.Connection) -> None:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {pages if full else 2**30}").fetchall()

        self.successResultOf(self.database.write("limit", limit))

    def big(self) -> Any:
        """Write something that needs room."""
        return self.leadership.set_meta("big", "x" * 100_000)

    def test_told_and_over(self) -> None:
        """It is remembered from the first refused write to the next good one."""
        self.assertIsNone(self.database.times.failure)
        self.fill(True)
        self.failureResultOf(self.big(), StoreFull)
        self.assertEqual(self.database.times.failure, "no space is left")
        self.fill(False)
        self.successResultOf(self.big())
        self.assertIsNone(self.database.times.failure)

    def test_noticed_without_a_writer(self) -> None:
        """Maintenance tries the store while it refuses, so that its recovery is noticed."""
        self.retention.startService()
        self.addCleanup(self.retention.stopService)
        self.fill(True)
        self.failureResultOf(self.big(), StoreFull)
        self.fill(False)
        self.database.times.lost("no space is left")
        self.clock.advance(60)
        self.assertIsNone(self.database.times.failure)

    def test_one_wrong_write(self) -> None:
        """A write that is wrong by itself says nothing about the store."""

        def wrong(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT INTO leader (one, epoch, acquired_ms) VALUES (2, 'x', 1)")

        self.failureResultOf(self.database.write("wrong", wrong), StoreError)
        self.assertIsNone(self.database.times.failure)

    def test_maintenance_tells(self) -> None:
        """A round that fails is a problem, tried again each minute, and over when it succeeds."""
        self.assertEqual(self.retention.report()["status"], "never")
        journal = Refusing(self.journal)
        self.retention = Retention(
            self.clock,
            self.database,
            journal,
            self.outbox,
            self.bindings,
            self.leadership,
            self.clock.seconds,
        )
        self.retention.startService()
        self.addCleanup(self.retention.stopService)
        self.assertEqual(self.retention.report()["status"], "failed")
        self.assertIn("could not be maintained", self.retention.problem or "")
        journal.refuses = False
        self.clock.advance(59)
        self.assertEqual(self.retention.report()["status"], "failed")
        self.clock.pump([10, 10])
        report = self.retention.report()
        self.assertEqual(report["status"], "ok")
        self.assertGreaterEqual(report["last_completed_at_ms"], 1_700_000_000_000)
        self.assertIsNone(self.retention.problem)
        self.clock.pump([PERIOD])
        self.assertGreaterEqual(
            self.retention.report()["last_completed_at_ms"], 1_700_000_000_000 + HOUR_MS
        )
