"""Receipts of control commands: what they keep, how long, and what an older daemon left."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.store.commands import AGE_MS, COUNT, HORIZON_MS, Commands, owner_hash
from pitelegram.store.database import Database
from pitelegram.store.migrations import load_migrations
from pitelegram.testing.contracts_store import a_claim
from pitelegram.testing.stores import leader_database

DAY_MS = 24 * 3_600_000


class ReceiptCase(SynchronousTestCase):
    """Receipts in a store whose time the test sets."""

    def setUp(self) -> None:
        """Open it."""
        self.clock = Clock()
        self.clock.advance(100 * 24 * 3600)
        self.database = leader_database(self.clock)
        self.addCleanup(self.database.stopService)
        self.commands = Commands(self.database, "host")

    def now(self) -> int:
        """Milliseconds."""
        return self.database.now_ms()

    def keep(self, number: int, state: str, age_ms: int) -> None:
        """Have a receipt of some age."""
        at = self.now() - age_ms
        terminal = state in ("accepted", "rejected", "uncertain")
        row = (
            f"r{number}",
            state,
            "" if terminal else "owner",
            None if terminal else at,
            "{}" if terminal else None,
            at,
            None if state == "reserved" else at,
            at if terminal else None,
            at,
        )

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO commands (host_id, request_id, action, canonical_version, canonical,"
                " fingerprint, selector_proof, subject, state, owner_hash, owner_until_ms, envelope,"
                " created_ms, started_ms, finished_ms, changed_ms)"
                " VALUES ('host', ?, 'worker.stop', 1, '{}', 'f', 'p', '', ?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )

        self.successResultOf(self.database.write("keep", work))

    def left(self) -> int:
        """How many receipts there are."""
        return int(self.database.read("SELECT count(*) AS many FROM commands")[0]["many"])


class RetentionTests(ReceiptCase):
    """L{Commands.forget}."""

    def fill(self, many: int, age_ms: int) -> None:
        """Have many accepted receipts of one age."""

        def work(connection: sqlite3.Connection) -> None:
            at = self.now() - age_ms
            connection.executemany(
                "INSERT INTO commands (host_id, request_id, action, canonical_version, canonical,"
                " fingerprint, selector_proof, subject, state, envelope, created_ms, started_ms,"
                " finished_ms, changed_ms) VALUES ('host', ?, 'a', 1, '{}', 'f', 'p', '',"
                " 'accepted', '{}', ?, ?, ?, ?)",
                [(f"fill{n}", at, at, at, at) for n in range(many)],
            )

        self.successResultOf(self.database.write("fill", work))

    def forget(self, limit: int = 100) -> int:
        """Forget a batch."""
        return self.successResultOf(self.commands.forget(limit))

    def test_both_floors(self) -> None:
        """Only what is older than 30 days and beyond the newest 4,096 goes, the oldest first."""
        self.keep(1, "accepted", AGE_MS + 2 * DAY_MS)
        self.keep(2, "rejected", AGE_MS + DAY_MS)
        self.assertEqual(self.forget(), 0)
        self.fill(COUNT - 1, DAY_MS)
        self.assertEqual(self.forget(), 1)
        self.assertIsNone(self.commands.find("r1"))
        self.assertIsNotNone(self.commands.find("r2"))
        self.keep(3, "uncertain", AGE_MS)
        self.assertEqual(self.forget(), 1)  # r2; r3 is exactly 30 days old and stays
        self.assertIsNotNone(self.commands.find("r3"))

    def test_what_is_begun_never_goes(self) -> None:
        """A started receipt stays whatever its age; a lapsed reservation goes with the others."""
        self.fill(COUNT, DAY_MS)
        self.keep(1, "send_started", 2 * AGE_MS)
        self.keep(2, "reserved", 2 * AGE_MS)
        self.assertEqual(self.forget(), 1)
        self.assertIsNone(self.commands.find("r2"))
        self.assertEqual([row.request_id for row in self.commands.started()], ["r1"])

    def test_batches(self) -> None:
        """No more than a batch goes at once."""
        self.fill(COUNT, DAY_MS)
        for number in range(7):
            self.keep(number, "accepted", AGE_MS + DAY_MS)
        self.assertEqual([self.forget(3) for _ in range(4)], [3, 3, 1, 0])
        self.assertEqual(self.left(), COUNT)

    def test_id_is_free_again(self) -> None:
        """A forgotten id is a fresh command."""
        self.fill(COUNT, DAY_MS)
        self.keep(1, "accepted", AGE_MS + DAY_MS)
        claim = a_claim("r1", until_ms=self.now() + 1000)
        self.assertFalse(self.successResultOf(self.commands.reserve(claim)))
        self.forget()
        self.assertTrue(self.successResultOf(self.commands.reserve(claim)))


class PressureTests(ReceiptCase):
    """L{Commands.pressure}."""

    def test_counts(self) -> None:
        """Every state is counted; what is stale or may go is pressure."""
        quiet = self.commands.pressure()
        self.assertEqual((quiet["total"], quiet["storage_pressure"]), (0, False))
        self.assertEqual(
            (quiet["retry_horizon_seconds"], quiet["retention_seconds"], quiet["retention_count"]),
            (604_800, 2_592_000, 4096),
        )
        for number, state in enumerate(("accepted", "rejected", "uncertain", "send_started")):
            self.keep(number, state, 0)
        found = self.commands.pressure()
        self.assertEqual((found["total"], found["stale_active"], found["eligible"]), (4, 0, 0))
        self.assertEqual(sum(found["states"].values()), 4)
        self.keep(9, "send_started", HORIZON_MS + 1)
        found = self.commands.pressure()
        self.assertEqual((found["stale_active"], found["storage_pressure"]), (1, True))


class OlderTests(SynchronousTestCase):
    """A store of the version before."""

    def test_ids_stay_taken(self) -> None:
        """What an older daemon had done or begun is not begun again; what it reserved is free."""
        path = Path(self.mktemp())
        old = Database(path, "leader", Clock(), migrations=load_migrations("leader")[:1])
        old.open()
        self.successResultOf(old.acquire("e"))

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "INSERT INTO commands VALUES (?, 'f', ?, ?, 1, ?)",
                [
                    ("done", "accepted", '{"ok":true}', 2),
                    ("begun", "send_started", None, None),
                    ("reserved", "reserved", None, None),
                ],
            )

        self.successResultOf(old.write("put", work))
        self.successResultOf(old.close())
        database = Database(path, "leader", Clock())
        database.open()
        self.addCleanup(database.close)
        self.successResultOf(database.acquire("e2"))
        commands = Commands(database, "host")
        states: dict[str, Any] = {}
        for name in ("done", "begun", "reserved"):
            row = commands.find(name)
            states[name] = None if row is None else (row.state, row.canonical_version)
            free = self.successResultOf(commands.reserve(a_claim(name, until_ms=2**60)))
            self.assertEqual(free, name == "reserved")
        self.assertEqual(
            states, {"done": ("accepted", 0), "begun": ("uncertain", 0), "reserved": None}
        )

    def test_owner_hash(self) -> None:
        """What is stored of an owner's token is a hash of its own domain."""
        self.assertRegex(owner_hash(b"token"), "^[0-9a-f]{64}$")
        self.assertNotEqual(owner_hash(b"token"), owner_hash(b"Token"))
