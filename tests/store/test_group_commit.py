"""The writer thread: many writes, one commit, each failing for itself."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, DeferredList, gatherResults
from twisted.internet.task import Clock
from twisted.trial.unittest import TestCase

from pitelegram.errors import Fenced, StoreError
from pitelegram.store.database import Database
from tests.store.test_database import facts, put


class CountingReactor:
    """The reactor, as far as the database uses it, with a count."""

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self.calls = 0

    def callFromThread(self, f: Any, *args: Any) -> None:
        """Count, and pass it on."""
        self.calls += 1
        self._reactor.callFromThread(f, *args)


class ThreadTests(TestCase):
    """One file with its writer thread."""

    async def setUp(self) -> None:
        """Open a leader's file and acquire its epoch."""
        from twisted.internet import reactor

        self.reactor = CountingReactor(reactor)
        self.path = Path(self.mktemp())
        self.database = Database(self.path, "leader", Clock(), self.reactor)  # type: ignore[arg-type]
        self.database.startService()
        self.addCleanup(self.database.stopService)
        await self.database.acquire("first")

    def blocked(self) -> tuple[threading.Event, Deferred[None]]:
        """Occupy the writer thread until the event is set."""
        event = threading.Event()

        def work(connection: sqlite3.Connection) -> None:
            event.wait(10)

        return event, self.database.write("wait", work)

    async def test_one_commit_for_many(self) -> None:
        """What waits together is committed together, and fired through one call."""
        event, first = self.blocked()
        before = self.reactor.calls
        many = [self.database.write("put", put(f"k{number:03}")) for number in range(100)]
        seen: list[str] = []
        for each in many:
            each.addCallback(seen.append)
        event.set()
        await gatherResults([first, *many])
        # The occupied write may have been taken together with those that came after it.
        self.assertLessEqual(self.reactor.calls - before, 2)
        self.assertEqual(seen, [f"k{number:03}" for number in range(100)])
        self.assertEqual(facts(self.database), seen)

    async def test_failures_stay_alone(self) -> None:
        """In a group, a write that fails undoes itself and nothing else."""
        event, first = self.blocked()

        def half(connection: sqlite3.Connection) -> None:
            put("half")(connection)
            put("a")(connection)

        works = [put("a"), half, put("b"), put("b"), put("c")]
        many = [self.database.write("put", work) for work in works]
        event.set()
        await first
        results = await DeferredList(many, consumeErrors=True)
        self.assertEqual([good for good, _ in results], [True, False, True, False, True])
        self.assertEqual(facts(self.database), ["a", "b", "c"])

    async def test_cancelled(self) -> None:
        """A caller that gives up gets its CancelledError; the write and its group go on."""
        event, first = self.blocked()
        given_up = self.database.write("put", put("a"))
        patient = self.database.write("put", put("b"))
        given_up.cancel()
        event.set()
        await first
        with self.assertRaises(CancelledError):
            await given_up
        self.assertEqual(await patient, "b")
        self.assertEqual(facts(self.database), ["a", "b"])

    async def test_close_drains(self) -> None:
        """Everything that was asked for before the stop is committed; what comes later is not."""
        event, first = self.blocked()
        many = [self.database.write("put", put(f"{number}")) for number in range(3)]
        stopped = self.database.stopService()
        again = self.database.stopService()
        late = self.database.write("put", put("late"))
        event.set()
        with self.assertRaises(StoreError):
            await late
        await gatherResults([first, *many, stopped, again])
        self.database.startService()
        self.assertEqual(facts(self.database), ["0", "1", "2"])

    async def test_lost_leadership(self) -> None:
        """With another leader in the file a whole group fails as Fenced; acquiring cures it."""
        other = Database(self.path, "leader", Clock())
        other.open()
        self.addCleanup(other.close)
        await other.acquire("second")
        event, first = self.blocked()
        many = [self.database.write("put", put(f"{number}")) for number in range(3)]
        acquired = self.database.acquire("third")
        more = self.database.write("put", put("more"))
        event.set()
        results = await DeferredList([first, *many], consumeErrors=True)
        for good, failure in results:
            self.assertFalse(good)
            self.assertEqual(failure.type, Fenced)
        await acquired
        await more
        self.assertEqual(facts(self.database), ["more"])

    async def test_callback_may_write(self) -> None:
        """A callback of one write may ask for the next and for the stop."""
        chain = self.database.write("put", put("a"))
        chain.addCallback(lambda _: self.database.write("put", put("b")))
        chain.addCallback(lambda _: self.database.stopService())
        await chain
        self.database.startService()
        self.assertEqual(facts(self.database), ["a", "b"])
