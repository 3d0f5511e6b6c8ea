"""The database service: results, failures, the fence, a full disk."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import Fenced, Refusal, StoreError, StoreFull
from pitelegram.store.database import Database
from pitelegram.testing.stores import EPOCH, leader_database, worker_database


def put(key: str, value: str = "v") -> Any:
    """Return work that stores a fact."""

    def work(connection: sqlite3.Connection) -> str:
        connection.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (key, value))
        return key

    return work


def facts(database: Database) -> list[str]:
    """Return the keys of all stored facts."""
    return [row["key"] for row in database.read("SELECT key FROM meta ORDER BY key")]


class InlineTests(SynchronousTestCase):
    """Writes and reads, without a thread."""

    def setUp(self) -> None:
        """Open a leader's database."""
        self.clock = Clock()
        self.database = leader_database(self.clock)
        self.addCleanup(lambda: self.successResultOf(self.database.stopService()))

    def test_result(self) -> None:
        """A write fires with what its work returned and is visible to reads."""
        self.assertEqual(self.successResultOf(self.database.write("put", put("a"))), "a")
        self.assertEqual(facts(self.database), ["a"])

    def test_failed_write_leaves_nothing(self) -> None:
        """An error of the work itself is passed on as it is, and its statements are undone."""

        def work(connection: sqlite3.Connection) -> None:
            put("a")(connection)
            raise Refusal("not-allowed", "no")

        self.failureResultOf(self.database.write("put", work), Refusal)
        self.assertEqual(facts(self.database), [])

    def test_sqlite_error(self) -> None:
        """SQLite's refusals become StoreErrors that name the write, not its data."""
        self.successResultOf(self.database.write("put", put("a", "private text")))
        failure = self.failureResultOf(
            self.database.write("put", put("a", "private text")), StoreError
        )
        self.assertIn("put", str(failure.value))
        self.assertNotIn("private", str(failure.value))
        self.assertRaises(StoreError, self.database.read, "SELECT nothing FROM nowhere")

    def test_nothing_without_leadership(self) -> None:
        """Before an epoch is acquired a leader's database stores nothing."""
        database = Database(None, "leader", self.clock)
        database.open()
        self.failureResultOf(database.write("put", put("a")), Fenced)
        self.successResultOf(database.acquire("mine"))
        self.successResultOf(database.write("put", put("a")))
        self.successResultOf(database.close())

    def test_memory_has_no_thread(self) -> None:
        """A database in memory cannot have a second connection, so it takes no reactor."""
        self.assertRaises(ValueError, Database, None, "leader", self.clock, object())

    def test_nothing_is_touched_before_the_start(self) -> None:
        """Making the object opens no file; reading and writing it is refused."""
        path = Path(self.mktemp())
        database = Database(path, "leader", self.clock)
        self.failureResultOf(database.write("put", put("a")), StoreError)
        self.assertRaises(StoreError, database.read, "SELECT 1")
        self.assertFalse(path.exists())
        self.successResultOf(database.stopService())

    def test_closed(self) -> None:
        """After the stop writes and reads are refused; it can be stopped twice and opened again."""
        path = Path(self.mktemp())
        database = worker_database(self.clock, path)
        self.assertRaises(StoreError, database.open)
        self.successResultOf(database.write("put", put("a")))
        self.successResultOf(database.stopService())
        self.successResultOf(database.stopService())
        self.failureResultOf(database.write("put", put("b")), StoreError)
        self.assertRaises(StoreError, database.read, "SELECT 1")
        database.startService()
        self.assertEqual(facts(database), ["a"])
        self.successResultOf(database.stopService())

    def test_time(self) -> None:
        """Times are milliseconds of the given clock."""
        self.clock.advance(1.5)
        self.assertEqual(self.database.now_ms(), 1500)


class FenceTests(SynchronousTestCase):
    """Two processes with one file."""

    def setUp(self) -> None:
        """Let one leader open a file."""
        self.clock = Clock()
        self.path = Path(self.mktemp())
        self.old = leader_database(self.clock, self.path)
        self.addCleanup(self.old.stopService)

    def test_newer_leader(self) -> None:
        """Once another process acquired leadership, this one stores nothing; the other does."""
        new = Database(self.path, "leader", self.clock)
        new.open()
        self.addCleanup(new.stopService)
        self.failureResultOf(new.write("put", put("early")), Fenced)
        self.successResultOf(new.acquire("newer"))
        self.failureResultOf(self.old.write("put", put("late")), Fenced)
        self.successResultOf(new.write("put", put("right")))
        self.assertEqual(facts(self.old), ["right"])
        self.assertNotEqual(EPOCH, "newer")

    def test_worker_has_no_fence(self) -> None:
        """A worker's database has one owner by its lock, and no epoch."""
        database = worker_database(self.clock)
        self.successResultOf(database.write("put", put("a")))
        self.successResultOf(database.stopService())

    def test_busy(self) -> None:
        """Another process's long transaction makes a write fail, and stores nothing of it."""
        self.successResultOf(self.old.write("short", lambda c: c.execute("PRAGMA user_version")))
        other = sqlite3.connect(self.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        opened = self.old._opened
        assert opened is not None
        opened.writer.execute("PRAGMA busy_timeout = 10")
        self.failureResultOf(self.old.write("put", put("a")), StoreError)
        other.execute("ROLLBACK")
        other.close()
        self.successResultOf(self.old.write("put", put("b")))
        self.assertEqual(facts(self.old), ["b"])


class FullDiskTests(SynchronousTestCase):
    """No space left."""

    def test_full_and_recovered(self) -> None:
        """A write without space fails as StoreFull and stores nothing; later ones succeed."""
        database = leader_database(Clock(), Path(self.mktemp()))
        self.addCleanup(database.stopService)
        opened = database._opened
        assert opened is not None
        pages = opened.writer.execute("PRAGMA page_count").fetchone()[0]
        opened.writer.execute(f"PRAGMA max_page_count = {pages + 2}")

        def work(connection: sqlite3.Connection) -> None:
            put("small")(connection)
            put("large", "x" * 100_000)(connection)

        self.failureResultOf(database.write("put", work), StoreFull)
        self.assertEqual(facts(database), [])
        opened.writer.execute("PRAGMA max_page_count = 100000")
        self.successResultOf(database.write("put", work))
        self.assertEqual(facts(database), ["large", "small"])
