"""The file: permissions, damage, versions."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import StoreError, StoreFull, StoreTooNew, UnsafeFile
from pitelegram.store.database import Database
from pitelegram.store.migrations import Migration, load_migrations, statements
from tests.store.test_database import facts, put


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
        now = load_migrations("worker")
        newer = [*now, Migration(len(now) + 1, "CREATE TABLE later (x);")]
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

    def test_no_room_for_a_step(self) -> None:
        """A disk that is full while the file is opened is told from other failures."""
        path = Path(self.mktemp())
        limit = "PRAGMA max_page_count = 1;\nCREATE TABLE one (x);"
        full = Database(path, "worker", Clock(), migrations=[Migration(1, limit)])
        self.assertRaises(StoreFull, full.open)

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
