"""Inactive Threads: proof before every deletion."""

from __future__ import annotations

import sqlite3
from typing import Any

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from pitelegram.errors import CertainlyUnsent, Refusal, Refused, StoreFull, Uncertain
from pitelegram.panel.interfaces import ICleanup, Switches
from pitelegram.store.bindings import Bindings
from pitelegram.store.cleanups import Cleanups
from pitelegram.store.journal import Journal
from pitelegram.store.outbox import Outbox
from pitelegram.store.rows import Incoming
from pitelegram.targets import TelegramTarget
from pitelegram.testing.botapi import FakeBotApi
from pitelegram.testing.delivery import FakeNotices
from pitelegram.testing.stores import leader_database
from pitelegram.threads.cleanup import Cleanup
from pitelegram.threads.janitor import AGE_MS, PERIOD, Janitor
from pitelegram.threads.observing import Observers
from tests.worker.test_queue import Replaced

CHAT = 100
HOUR = 3600


class CleanupCase(SynchronousTestCase):
    """Five workers' Threads, 11 to 15; those of C{gone} have had no process for an hour."""

    def setUp(self) -> None:
        """Build it."""
        self.clock = Clock()
        self.clock.advance(100 * HOUR)
        self.database = leader_database(self.clock)
        self.addCleanup(self.database.stopService)
        self.bindings = Bindings(self.database)
        self.api = FakeBotApi()
        self.store = Cleanups(self.database)
        self.alive: set[str] = set()
        self.unknown: set[str] = set()
        self.dismissed: list[str] = []
        self.told: list[tuple[Any, ...]] = []
        self.ids = iter(f"op{number}" for number in range(1, 1000))
        self.now = Switches(on_quit=True, unattended=False)
        observers = Observers()
        observers.add(lambda *change: self.told.append(change))
        self.cleanup = Cleanup(
            api=self.api,
            store=self.store,
            bindings=self.bindings,
            observers=observers,
            protects=self.protects,
            dismiss=self.dismissed.append,
            missing=lambda: None,
            fresh_id=lambda: next(self.ids),
            now_ms=self.database.now_ms,
            read_switches=lambda: self.now,
            write_switch=lambda name: succeed(self.now),
            clock=self.clock,
        )
        for number, letter in enumerate("ABCDE", 11):
            self.bind(letter, number)

    def bind(self, letter: str, thread: int) -> None:
        """A worker with a Thread."""
        key = f"spec-{letter}"
        self.successResultOf(self.bindings.ensure(key, "managed", None))
        self.successResultOf(self.bindings.assign_slot(key, letter, f"N{letter}"))
        self.successResultOf(self.bindings.set_target(key, CHAT, thread, None))
        self.successResultOf(self.bindings.set_title(key, letter))

    def protects(self, key: str) -> str | None:
        """What the processes say."""
        if key in self.unknown:
            return "nobody can tell"
        return "a process of it lives" if key in self.alive else None

    def gone(self, letters: str, hours: float = 1) -> None:
        """The last processes of these ended so long ago."""
        since = self.database.now_ms() - int(hours * HOUR * 1000)
        for letter in letters:
            self.successResultOf(self.bindings.set_inactive(f"spec-{letter}", since))

    def review(self) -> tuple[str, list[str]]:
        """Review."""
        found: tuple[str, list[str]] = self.successResultOf(self.cleanup.review())
        return found

    def deleted(self) -> list[int]:
        """The Threads whose deletion was asked for."""
        return [call.params["message_thread_id"] for call in self.api.made("deleteForumTopic")]

    def target(self, letter: str) -> int | None:
        """The Thread of a binding."""
        binding = self.bindings.get(f"spec-{letter}")
        assert binding is not None
        return binding.thread_id


class ReviewTests(CleanupCase):
    """L{Cleanup.review} deletes nothing."""

    def test_interface(self) -> None:
        """It is what the panel expects."""
        self.assertTrue(verifyObject(ICleanup, self.cleanup))

    def test_by_proof(self) -> None:
        """Only bindings that nothing protects are found."""
        self.gone("ABCD")
        self.alive.add("spec-B")
        self.unknown.add("spec-C")
        self.assertEqual(self.review()[1], ["A", "D"])
        self.assertEqual(self.deleted(), [])

    def test_work_protects(self) -> None:
        """An unsettled update, an answer on its way or parked, and a Thread in the making do."""
        self.gone("ABCDE")
        row = Incoming(
            update_id=1,
            kind="message",
            chat_id=CHAT,
            thread_id=11,
            message_id=1,
            callback_id=None,
            body=b"{}",
        )
        self.successResultOf(Journal(self.database).accept(1, [row], 2))
        outbox = Outbox(self.database)
        call = {"method": "sendMessage", "params": {"text": "x"}}
        self.successResultOf(outbox.submit("spec-B", "d", "final", "x", [call]))
        self.successResultOf(self.bindings.begin_provision("spec-C", CHAT, "C"))
        self.assertEqual(self.review()[1], ["D", "E"])

    def test_failed_update_protects_nothing(self) -> None:
        """What no worker took, and nobody tries again, keeps no Thread for ever."""
        self.gone("A")
        row = Incoming(
            update_id=1,
            kind="message",
            chat_id=CHAT,
            thread_id=11,
            message_id=1,
            callback_id=None,
            body=b"{}",
        )
        journal = Journal(self.database)
        (taken,) = self.successResultOf(journal.accept(1, [row], 2))
        self.assertEqual(self.review()[1], [])
        self.successResultOf(journal.fail(taken.seq, "refused"))
        self.assertEqual(self.review()[1], ["A"])

    def test_lived_in_between(self) -> None:
        """A life that no round saw counts: after it nothing is inactive since before it."""
        self.gone("AB", 48)
        operation, names = self.review()
        self.assertEqual(names, ["A", "B"])
        self.successResultOf(
            self.bindings.record_worker("spec-A", "w", "managed", 5, "birth", "g", "5:1")
        )
        self.assertEqual(self.successResultOf(self.cleanup.delete(operation)), (1, 1))
        self.assertEqual(self.deleted(), [12])
        self.gone("A", 0)
        self.assertEqual(self.successResultOf(self.cleanup.sweep(AGE_MS)), (0, 0, 1))

    def test_odd_times_and_the_daemon(self) -> None:
        """A binding without a time, or with an impossible one, and the daemon's own are left out."""
        self.gone("AB")
        self.successResultOf(self.bindings.set_inactive("spec-B", -5))
        self.successResultOf(self.bindings.ensure("daemon", "daemon", None))
        self.successResultOf(self.bindings.set_target("daemon", CHAT, 5, None))
        self.successResultOf(self.bindings.set_inactive("daemon", 1))
        self.assertEqual(self.review()[1], ["A"])

    def test_many_reviews(self) -> None:
        """Reviews do not pile up, and each finds what there is: a hundred different ones leave one."""
        letters = "ABCDEFG"
        self.bind("F", 16)
        self.bind("G", 17)
        self.gone(letters)
        for number in range(100):
            found = [letter for bit, letter in enumerate(letters) if (number + 1) >> bit & 1]
            self.alive = {f"spec-{letter}" for letter in letters if letter not in found}
            operation, names = self.review()
            self.assertEqual(names, found)
        rows = self.database.read("SELECT DISTINCT operation_id FROM cleanups")
        self.assertEqual([row[0] for row in rows], [operation])


class DeleteTests(CleanupCase):
    """L{Cleanup.delete}."""

    def delete(self, operation: str) -> tuple[int, int]:
        """Delete what a review found."""
        done: tuple[int, int] = self.successResultOf(self.cleanup.delete(operation))
        return done

    def test_exactly_the_reviewed(self) -> None:
        """What became inactive since the review stays."""
        self.gone("AB")
        operation, _ = self.review()
        self.gone("C")
        self.assertEqual(self.delete(operation), (2, 0))
        self.assertEqual(self.deleted(), [11, 12])
        self.assertEqual([self.target(each) for each in "ABC"], [None, None, 13])
        self.assertEqual(
            [(key, reason) for key, _, _, reason in self.told],
            [("spec-A", "deleted"), ("spec-B", "deleted")],
        )

    def test_older_review(self) -> None:
        """A review that another one replaced deletes nothing."""
        self.gone("A")
        first, _ = self.review()
        self.review()
        refusal = self.failureResultOf(self.cleanup.delete(first), Refusal).value
        self.assertEqual(refusal.code, "stale")
        self.failureResultOf(self.cleanup.delete("unknown"), Refusal)
        self.assertEqual(self.deleted(), [])

    def test_twice(self) -> None:
        """What was deleted is not deleted again."""
        self.gone("A")
        operation, _ = self.review()
        self.delete(operation)
        self.failureResultOf(self.cleanup.delete(operation), Refusal)
        self.assertEqual(self.deleted(), [11])

    def test_back_before_its_turn(self) -> None:
        """A worker that registers while others are deleted keeps its Thread."""
        self.gone("ABC")
        operation, _ = self.review()
        first: Deferred[Any] = Deferred()
        self.api.script("deleteForumTopic", first)
        working = self.cleanup.delete(operation)
        self.alive.add("spec-B")
        self.successResultOf(self.bindings.set_inactive("spec-C", None))
        first.callback(True)
        self.assertEqual(self.successResultOf(working), (1, 2))
        self.assertEqual(self.deleted(), [11])
        self.assertEqual([self.target(each) for each in "ABC"], [None, 12, 13])

    def test_back_while_it_is_claimed(self) -> None:
        """A worker that comes while the claim is written keeps its Thread, and is told of it."""
        self.gone("A")
        operation, _ = self.review()
        answers = iter([None, "a process of it lives"])
        self.cleanup.protects = lambda key: next(answers)
        self.assertEqual(self.delete(operation), (0, 1))
        self.assertEqual((self.deleted(), self.target("A")), ([], 11))
        self.assertFalse(self.store.is_claimed("spec-A"))
        self.assertEqual(self.told, [("spec-A", TelegramTarget(CHAT, 11), None, "restored")])
        self.assertEqual(self.dismissed, [])

    def test_claimed_meanwhile(self) -> None:
        """While a Thread is being deleted everybody can see that it is."""
        self.gone("A")
        operation, _ = self.review()
        deleting: Deferred[Any] = Deferred()
        self.api.script("deleteForumTopic", deleting)
        working = self.cleanup.delete(operation)
        self.assertTrue(self.store.is_claimed("spec-A"))
        deleting.callback(True)
        self.successResultOf(working)
        self.assertFalse(self.store.is_claimed("spec-A"))

    def test_moved_meanwhile(self) -> None:
        """A binding that has another Thread by now loses neither."""
        self.gone("A")
        operation, _ = self.review()
        self.successResultOf(self.bindings.set_target("spec-A", CHAT, 99, (CHAT, 11)))
        self.assertEqual(self.delete(operation), (0, 1))
        self.assertEqual((self.deleted(), self.target("A")), ([], 99))

    def test_gone_already(self) -> None:
        """C{TOPIC_ID_INVALID} means that the user deleted it: only the binding is cleared."""
        self.gone("A")
        operation, _ = self.review()
        self.api.script(
            "deleteForumTopic", Refused("deleteForumTopic", 400, "Bad Request: TOPIC_ID_INVALID")
        )
        self.assertEqual(self.delete(operation), (1, 0))
        self.assertIsNone(self.target("A"))

    def test_failures(self) -> None:
        """A refusal, a flood and a lost answer keep that Thread and go on with the next."""
        self.gone("ABCD")
        operation, _ = self.review()
        for error in (
            Refused("deleteForumTopic", 403, "no rights"),
            CertainlyUnsent("deleteForumTopic", 429, "slow down", 3.0),
            Uncertain("deleteForumTopic", 0, "no answer"),
        ):
            self.api.script("deleteForumTopic", error)
        self.assertEqual(self.delete(operation), (1, 3))
        self.assertEqual([self.target(each) for each in "ABCD"], [11, 12, 13, None])
        self.assertFalse(self.store.is_claimed("spec-A"))
        self.assertEqual(self.review()[1], ["A", "B", "C"])

    def test_killed_in_between(self) -> None:
        """A claim that a killed leader left is given up, and the Thread is judged anew."""
        self.gone("A")
        operation, _ = self.review()
        (item,) = self.store.reviewed(operation)
        self.assertTrue(self.successResultOf(self.store.claim(item)))
        self.assertEqual(self.review()[1], [])
        self.assertEqual(self.successResultOf(self.store.interrupted()), 1)
        self.assertEqual(self.review()[1], ["A"])

    def test_full_disk_in_between(self) -> None:
        """A deletion that could not be noted is noted as soon as there is room, and told then."""
        self.gone("A")
        operation, _ = self.review()
        full = [StoreFull("full"), StoreFull("full")]
        real = self.store.deleted
        self.cleanup.store = Replaced(
            self.store, deleted=lambda item: fail(full.pop()) if full else real(item)
        )
        self.assertEqual(self.delete(operation), (1, 0))
        self.assertTrue(self.store.is_claimed("spec-A"))
        self.clock.advance(2)
        self.clock.advance(2)
        self.assertFalse(self.store.is_claimed("spec-A"))
        self.assertEqual((self.target("A"), self.deleted(), len(self.told)), (None, [11], 1))

    def test_one_that_quit(self) -> None:
        """Its Thread alone goes, and the operator's review stays good."""
        self.gone("AB")
        operation, _ = self.review()
        self.alive.add("spec-B")
        self.assertIsNone(self.successResultOf(self.cleanup.quit("spec-B")))
        self.assertIsNone(self.successResultOf(self.cleanup.quit("spec-C")))
        self.alive.clear()
        self.assertIs(self.successResultOf(self.cleanup.quit("spec-B")), True)
        self.assertEqual(self.deleted(), [12])
        self.assertEqual(self.delete(operation), (1, 1))
        self.assertEqual(self.deleted(), [12, 11])

    def test_newer_leader(self) -> None:
        """A leader that was replaced claims and deletes nothing."""
        self.gone("A")
        operation, _ = self.review()

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE leader SET epoch = 'newer'")

        self.successResultOf(self.database.write("a newer leader", work))
        self.failureResultOf(self.cleanup.delete(operation))
        self.assertEqual(self.deleted(), [])


class JanitorTests(CleanupCase):
    """L{Janitor}."""

    def setUp(self) -> None:
        """Start it."""
        super().setUp()
        self.lives: dict[str, bool | None] = dict.fromkeys(
            [f"spec-{each}" for each in "ABCDE"], True
        )
        self.notices = FakeNotices()
        self.janitor = Janitor(
            self.clock,
            self.bindings,
            self.cleanup,
            self.lives.__getitem__,
            lambda: self.now,
            self.notices,
            self.database.now_ms,
        )

    def start(self) -> None:
        """Start it; it ends with the test."""
        self.janitor.startService()
        self.addCleanup(self.janitor.stopService)

    def rounds(self, hours: float) -> None:
        """Let rounds pass."""
        for _ in range(int(hours * HOUR / PERIOD)):
            self.clock.advance(PERIOD)

    def test_notes(self) -> None:
        """The first time that nobody lives counts; who lives again is active; doubt notes nothing."""
        self.start()
        self.assertEqual(self.bindings.inactive(), {})
        self.lives.update({"spec-A": False, "spec-B": None})
        self.rounds(1)
        since = self.bindings.inactive()
        self.assertEqual(set(since), {"spec-A"})
        self.rounds(1)
        self.assertEqual(self.bindings.inactive(), since)
        self.lives["spec-A"] = True
        self.rounds(1)
        self.assertEqual(self.bindings.inactive(), {})

    def test_off_by_default(self) -> None:
        """Nothing is deleted unattended unless that is switched on."""
        self.gone("AB", 48)
        self.lives.update({"spec-A": False, "spec-B": False})
        self.start()
        self.rounds(30)
        self.assertEqual((self.deleted(), self.notices.posted), ([], []))

    def test_after_a_day(self) -> None:
        """Switched on, only what was inactive for 24 hours goes, and that is reported once."""
        self.now = Switches(on_quit=True, unattended=True)
        self.gone("A", AGE_MS / 3_600_000 + 1)
        self.gone("B", 23)
        self.lives.update({"spec-A": False, "spec-B": False})
        self.start()
        self.assertEqual(self.deleted(), [11])
        self.rounds(0.5)
        self.assertEqual(self.deleted(), [11])
        texts = [text for _, text in self.notices.posted]
        self.assertEqual(len(texts), 2, texts)
        self.assertIn("1 Thread(s) that were inactive for a day were deleted", texts[0])
        self.assertIn("younger than 24 hours", texts[1])
        self.rounds(2)
        self.assertEqual(self.deleted(), [11, 12])
        self.assertEqual({key for key, _ in self.notices.posted}, {"daemon"})

    def test_switched_off_again(self) -> None:
        """The switch is read anew in each round."""
        self.now = Switches(on_quit=True, unattended=True)
        self.gone("A", 23.5)
        self.lives["spec-A"] = False
        self.start()
        self.now = Switches(on_quit=True, unattended=False)
        self.rounds(30)
        self.assertEqual(self.deleted(), [])
