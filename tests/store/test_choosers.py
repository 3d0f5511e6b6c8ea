"""The contract of choosers in memory and on disk, a stale leader, and a file of an older version."""

from __future__ import annotations

from pathlib import Path

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import Fenced
from pitelegram.store.choosers import Choosers
from pitelegram.store.database import Database
from pitelegram.store.journal import Journal
from pitelegram.store.migrations import load_migrations
from pitelegram.testing.contracts_choosers import CHAT, THREAD, ChoosersContract, a_chooser
from pitelegram.testing.contracts_store import incoming
from pitelegram.testing.stores import leader_database
from tests.store.test_contracts import InMemory, OnDisk


class ChoosersInMemory(ChoosersContract, InMemory):
    """Choosers in memory."""


class ChoosersOnDisk(ChoosersContract, OnDisk):
    """Choosers on disk."""


class FileTests(SynchronousTestCase):
    """What two processes, or two versions, make of one file."""

    def setUp(self) -> None:
        """Name a file."""
        self.clock, self.path = Clock(), Path(self.mktemp())

    def test_stale_leader(self) -> None:
        """A leader that was replaced neither claims a Thread nor settles anything."""
        old = leader_database(self.clock, self.path)
        self.addCleanup(old.stopService)
        choosers, journal = Choosers(old), Journal(old)
        update = incoming(5, chat_id=CHAT, thread_id=THREAD)
        (row,) = self.successResultOf(journal.accept(1, [update], 6))
        self.successResultOf(choosers.open(a_chooser()))
        self.successResultOf(choosers.sent("c1", 500))
        self.successResultOf(choosers.choose("c1", "forward", "spec-a", None, [(row.seq, "d")]))
        self.successResultOf(choosers.handed("c1"))
        new = Database(self.path, "leader", self.clock)
        new.open()
        self.addCleanup(new.stopService)
        self.successResultOf(new.acquire("newer"))
        self.failureResultOf(choosers.claim("c1", CHAT, THREAD), Fenced)
        self.failureResultOf(choosers.end("c1", [row.seq]), Fenced)
        self.assertEqual([c.state for c in Choosers(new).all()], ["cleaning"])

    def test_older_file(self) -> None:
        """The unused table of the third version gives way."""
        old = Database(self.path, "leader", self.clock, migrations=load_migrations("leader")[:3])
        old.open()
        self.successResultOf(old.acquire("old"))
        row = "INSERT INTO choosers VALUES ('x', 1, 2, 3, 4, 'open', NULL, 0)"
        self.successResultOf(old.write("an old chooser", lambda c: c.execute(row) and None))
        self.successResultOf(old.close())
        new = leader_database(self.clock, self.path)
        self.addCleanup(new.stopService)
        choosers = Choosers(new)
        self.assertEqual(choosers.all(), [])
        self.successResultOf(choosers.open(a_chooser()))
        self.assertEqual([c.chooser_id for c in choosers.all()], ["c1"])
