"""C{/attach} and C{/detach}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from pitelegram.errors import Refusal
from pitelegram.store.attachments import Attachments
from pitelegram.store.bindings import Bindings
from pitelegram.targets import TelegramTarget
from pitelegram.testing.followers import FakeThreads
from pitelegram.testing.stores import leader_database
from pitelegram.threads.attaching import Attaching
from pitelegram.threads.interfaces import IAttaching

CHAT = 100


class AttachCase(SynchronousTestCase):
    """Two workers with Threads 7 and 8; Thread 9 belongs to nobody, 5 to the daemon."""

    def setUp(self) -> None:
        """Build it."""
        self.database = leader_database(Clock())
        self.addCleanup(self.database.stopService)
        self.bindings = Bindings(self.database)
        for key, kind, thread in (
            ("spec-a", "managed", 7),
            ("spec-b", "managed", 8),
            ("daemon", "daemon", 5),
            ("spec-c", "managed", None),
        ):
            self.successResultOf(self.bindings.ensure(key, kind, None))
            if thread is not None:
                self.successResultOf(self.bindings.set_target(key, CHAT, thread, None))
        self.threads = FakeThreads(self.bindings)
        self.attaching = self.make()

    def make(self) -> Attaching:
        """Another one on the same store."""
        return Attaching(self.threads, self.bindings, Attachments(self.database))

    def attach(self, key: str, thread: int | None, chat: int = CHAT) -> str:
        """Attach a worker; what is said, or the refusal's code."""
        return self.outcome(self.attaching.attach(key, TelegramTarget(chat, thread)))

    def detach(self, thread: int | None) -> str:
        """Detach the worker of a Thread."""
        return self.outcome(self.attaching.detach(TelegramTarget(CHAT, thread)))

    def outcome(self, working: Any) -> str:
        """What is said, or the refusal's code."""
        done: list[Any] = []
        Deferred.fromCoroutine(working).addBoth(done.append)
        (result,) = done
        if isinstance(result, str):
            return result
        result.trap(Refusal)
        return str(result.value.code)

    def target(self, key: str) -> int | None:
        """The Thread of a binding."""
        binding = self.bindings.get(key)
        assert binding is not None
        return binding.thread_id


class MoveTests(AttachCase):
    """Moving a worker."""

    def test_interface(self) -> None:
        """It is what the panel expects."""
        self.assertTrue(verifyObject(IAttaching, self.attaching))

    def test_there_and_back(self) -> None:
        """The worker has the new Thread, and after C{/detach} its own again; also another day."""
        self.assertIn("/detach moves it back", self.attach("spec-a", 9))
        self.assertEqual(self.target("spec-a"), 9)
        self.assertTrue(self.attaching.is_attached("spec-a"))
        self.attaching = self.make()
        self.assertIn("back in its own Thread", self.detach(9))
        self.assertEqual(self.target("spec-a"), 7)
        self.assertFalse(self.attaching.is_attached("spec-a"))
        self.assertEqual(self.detach(7), "not-attached")

    def test_twice(self) -> None:
        """Its own Thread is remembered, not the one in between."""
        self.attach("spec-a", 9)
        self.attach("spec-a", 10)
        self.assertEqual(self.target("spec-a"), 10)
        self.detach(10)
        self.assertEqual(self.target("spec-a"), 7)

    def test_attached_back_home(self) -> None:
        """Attached to its own Thread again it is no guest any more."""
        self.attach("spec-a", 9)
        self.attach("spec-a", 7)
        self.assertFalse(self.attaching.is_attached("spec-a"))

    def test_refused(self) -> None:
        """General, the daemon's Thread, another worker's, another chat, no Thread, the same."""
        for key, thread, chat, code in (
            ("spec-a", None, CHAT, "unavailable"),
            ("spec-a", 5, CHAT, "not-free"),
            ("spec-a", 8, CHAT, "not-free"),
            ("spec-a", 9, 999, "unavailable"),
            ("spec-a", 7, CHAT, "same-thread"),
            ("spec-c", 9, CHAT, "unavailable"),
            ("spec-x", 9, CHAT, "unavailable"),
        ):
            self.assertEqual(self.attach(key, thread, chat), code, (key, thread))
        self.assertEqual([self.target(f"spec-{each}") for each in "abc"], [7, 8, None])
        self.assertEqual(self.detach(9), "not-attached")

    def test_former_thread_is_taken(self) -> None:
        """A worker is never put into another's Thread; it stays where it is."""
        self.attach("spec-a", 9)
        self.attach("spec-b", 7)
        self.assertEqual(self.detach(9), "not-free")
        self.assertEqual((self.target("spec-a"), self.target("spec-b")), (9, 7))
