"""The database service: fence, isolation of failures, files, damage, migrations."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import Fenced, Refusal, StoreError, StoreFull, StoreTooNew, UnsafeFile
from pitelegram.store.database import Database
from pitelegram.store.migrations import Migration, load_migrations, statements
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


class FileTests(SynchronousTestCase):
    """The file itself."""

    def setUp(self) -> None:
        """Name a file in a directory of its own."""
        self.clock = Clock()
        self.directory = Path(self.mktemp())
        self.directory.mkdir(mode=0o700)
        self.path = self.directory / "default.sqlite3"

    def opened(self, **arguments: Any) -> Database:
        """Open the worker's file."""
        database = Database(self.path, "worker", self.clock, **arguments)
        database.open()
        self.addCleanup(database.stopService)
        return database

    def test_durable_settings(self) -> None:
        """The writer runs with WAL, full synchronisation and foreign keys; reads cannot write."""
        opened = self.opened()._opened
        assert opened is not None
        values = {
            name: opened.writer.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
        self.assertEqual(
            values,
            {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 5000},
        )
        self.assertRaises(
            sqlite3.OperationalError, opened.reader.execute, "DELETE FROM meta WHERE key = 'a'"
        )

    def test_modes(self) -> None:
        """File, log and shared memory are made 0600 whatever the umask; too open ones narrowed."""
        old = os.umask(0)
        try:
            database = self.opened()
            self.successResultOf(database.write("put", put("a")))
            modes = {stat.S_IMODE(each.stat().st_mode) for each in self.directory.iterdir()}
            self.assertEqual(modes, {0o600})
            self.assertEqual(len(list(self.directory.iterdir())), 3)
            self.successResultOf(database.close())
            self.path.chmod(0o666)
            self.opened()
            self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)
        finally:
            os.umask(old)

    def test_links_are_refused(self) -> None:
        """A link in the file's place, or in that of its log, is refused and not followed."""
        target = self.directory / "elsewhere"
        target.write_bytes(b"")
        self.path.symlink_to(target)
        error = self.assertRaises(UnsafeFile, self.opened)
        self.assertEqual(error.code, "wrong_type")
        self.path.unlink()
        wal = self.path.with_name(self.path.name + "-wal")
        wal.symlink_to(target)
        self.assertRaises(UnsafeFile, self.opened)
        self.assertEqual(target.read_bytes(), b"")

    def test_directory_is_refused(self) -> None:
        """A directory or a pipe in the file's place is refused without hanging."""
        self.path.mkdir()
        self.assertRaises(UnsafeFile, self.opened)
        self.path.rmdir()
        os.mkfifo(self.path)
        self.assertRaises(UnsafeFile, self.opened)

    def test_damaged(self) -> None:
        """A file that is no database is moved aside with its log, and a fresh one is made."""
        self.path.write_bytes(b"this is not a database, but longer than a header " * 40)
        self.path.with_name(self.path.name + "-wal").write_bytes(b"log")
        database = self.opened()
        moved = database.recovered
        assert moved is not None
        self.assertEqual(moved.parent, self.directory / "recovery")
        self.assertTrue(moved.read_bytes().startswith(b"this is not"))
        self.assertEqual(moved.with_name(moved.name + "-wal").read_bytes(), b"log")
        self.assertEqual(stat.S_IMODE(moved.parent.stat().st_mode), 0o700)
        self.successResultOf(database.write("put", put("a")))
        self.assertEqual(facts(database), ["a"])

    def test_damaged_schema(self) -> None:
        """A sound header with a torn schema page counts as damage; so does a second time."""
        for count in (1, 2):
            database = self.opened()
            self.successResultOf(database.write("put", put("a")))
            self.successResultOf(database.close())
            with self.path.open("r+b") as file:
                file.seek(100)
                file.write(b"\xff" * 3996)
            database = self.opened()
            self.assertIsNotNone(database.recovered)
            self.assertEqual(facts(database), [])
            kept = [each.name for each in (self.directory / "recovery").iterdir()]
            self.assertEqual(
                len([name for name in kept if name[-4:] not in ("-wal", "-shm")]), count
            )
            self.successResultOf(database.close())

    def test_sound_file_is_kept(self) -> None:
        """A sound file is not moved, also when its last process was killed and left a log."""
        database = self.opened()
        self.successResultOf(database.write("put", put("a")))
        copy = {each.name: each.read_bytes() for each in self.directory.iterdir()}
        self.successResultOf(database.close())
        for name, content in copy.items():
            (self.directory / name).write_bytes(content)
        database = self.opened()
        self.assertIsNone(database.recovered)
        self.assertEqual(facts(database), ["a"])

    def test_newer_version(self) -> None:
        """A file of a newer version is refused with the cure and left as it is."""
        newer = [*load_migrations("worker"), Migration(2, "CREATE TABLE later (x);")]
        database = self.opened(migrations=newer)
        self.successResultOf(database.write("put", put("a")))
        self.successResultOf(database.close())
        before = self.path.read_bytes()
        error = self.assertRaises(StoreTooNew, self.opened)
        self.assertIn("newer pi-telegram", str(error))
        self.assertEqual(self.path.read_bytes(), before)
        self.opened(migrations=newer)


class MigrationTests(SynchronousTestCase):
    """From every earlier version to the newest."""

    def shape(self, database: Database) -> list[tuple[str, str]]:
        """Return the statements that made the database's tables and indexes."""
        rows = database.read("SELECT name, sql FROM sqlite_master WHERE sql NOT NULL ORDER BY name")
        return [(row["name"], row["sql"]) for row in rows]

    def test_every_earlier_version(self) -> None:
        """Each earlier version becomes the newest one, with its rows, and looks like a new file."""
        for schema in ("leader", "worker"):
            migrations = load_migrations(schema)
            fresh = Database(None, schema, Clock())
            fresh.open()
            for version in range(1, len(migrations) + 1):
                path = Path(self.mktemp())
                old = Database(path, schema, Clock(), migrations=migrations[:version])
                old.open()
                if schema == "leader":
                    self.successResultOf(old.acquire("e"))
                self.successResultOf(old.write("put", put("a")))
                self.successResultOf(old.close())
                new = Database(path, schema, Clock())
                new.open()
                self.assertEqual(self.shape(new), self.shape(fresh))
                self.assertEqual(facts(new), ["a"])
                self.assertEqual(new.read("PRAGMA user_version")[0][0], len(migrations))
                self.successResultOf(new.close())
            self.successResultOf(fresh.close())

    def test_failed_step(self) -> None:
        """A step that fails half-way leaves the version before it, whole."""
        path = Path(self.mktemp())
        first = Migration(1, "CREATE TABLE one (x);")
        bad = Migration(2, "CREATE TABLE two (x);\nCREATE TABLE one (x);")
        good = Migration(2, "CREATE TABLE two (x);")
        self.assertRaises(
            StoreError, Database(path, "worker", Clock(), migrations=[first, bad]).open
        )
        database = Database(path, "worker", Clock(), migrations=[first])
        database.open()
        self.assertEqual([name for name, _ in self.shape(database)], ["one"])
        self.successResultOf(database.close())
        database = Database(path, "worker", Clock(), migrations=[first, good])
        database.open()
        self.assertEqual([name for name, _ in self.shape(database)], ["one", "two"])
        self.successResultOf(database.close())

    def test_statements(self) -> None:
        """A script is cut where a statement ends, not at a semicolon in a text or comment."""
        script = "-- a; b\nCREATE TABLE a (x TEXT DEFAULT ';');\nSELECT 1;\n"
        self.assertEqual([each.strip() for each in statements(script)][1:], ["SELECT 1;"])
        self.assertEqual(len(statements("SELECT 1;\n-- the end")), 2)
