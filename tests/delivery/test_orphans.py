"""What a worker that is gone left in its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, fail
from zope.interface.verify import verifyObject

from pitelegram.bridge.rendering.records import RenderOptions
from pitelegram.delivery.orphans import PERIOD, Orphans
from pitelegram.errors import Refusal, StoreFull
from pitelegram.kernel.flock import FileLock, is_free
from pitelegram.kernel.paths import Paths
from pitelegram.leader.rescuing import compose_left
from pitelegram.routing.interfaces import IExpectation, IInboxProbe
from pitelegram.store.database import Database
from pitelegram.store.inbox import Inbox
from pitelegram.testing.delivery import FakeExpectation
from pitelegram.testing.stores import worker_database
from tests.delivery.world import DeliveryCase, delivery, text_call


class OrphanTests(DeliveryCase):
    """One worker's file, and nobody who owns it."""

    def setUp(self) -> None:
        """Make the directories; C{a} is a binding with a Thread."""
        super().setUp()
        self.paths = Paths(Path(self.mktemp()))
        self.paths.prepare()
        self.expectation = FakeExpectation()
        self.orphans = Orphans(
            self.clock,
            self.paths,
            self.bindings,
            self.expectation,
            self.service.intake,
            self.service.notices,
            lambda key: f"worker {key}",
            self.compose,
        )

    def compose(self, database: Database, files: Path) -> Deferred[None]:
        """Render as the leader does."""
        return compose_left(database, files, RenderOptions(rendering="html"))

    def leave(self, key: str = "a", answers: int = 0, held: int = 0, handed: int = 0) -> None:
        """Leave these in a binding's file."""
        database = worker_database(self.clock, self.paths.worker_database(key))
        inbox = Inbox(database)
        for number in range(held + handed):
            self.successResultOf(
                inbox.admit(f"d{number}", "telegram", "message", b"{}", f"prompt {number}")
            )
        for row in inbox.rows("held")[:handed]:
            self.successResultOf(inbox.hand(row.seq, "r", "run", None, 0, None))
        for number in range(answers):
            content = delivery(text_call(f"answer {number}"))
            self.successResultOf(inbox.add_answer(f"answer-{number}", "final", content))
        self.successResultOf(database.stopService())

    def left(self, key: str = "a") -> list[str]:
        """Return the ids of the answers still in a file."""
        database = worker_database(self.clock, self.paths.worker_database(key))
        answers = [each["delivery_id"] for each in Inbox(database).answers()]
        self.successResultOf(database.stopService())
        return answers

    def examine(self, key: str = "a") -> None:
        """Let the file be examined."""
        self.successResultOf(self.orphans.examine(key))
        self.assertTrue(is_free(self.paths.worker_lock(key)))

    def test_interfaces(self) -> None:
        """The objects have their interfaces' methods."""
        self.assertTrue(verifyObject(IInboxProbe, self.orphans))
        self.assertTrue(verifyObject(IExpectation, self.expectation))

    def test_answers_are_rescued(self) -> None:
        """Unsubmitted answers arrive in order under their own ids, once, and leave the file."""
        self.start()
        self.leave(answers=3)
        self.examine()
        self.assertEqual(self.texts(), ["answer 0", "answer 1", "answer 2"])
        self.assertEqual(self.left(), [])
        self.assertEqual(self.outbox.find("a", "answer-1")[0], "delivered")  # type: ignore[index]
        self.examine()
        self.assertEqual(len(self.texts()), 3)
        self.assertEqual(self.orphans.problems(), [])

    def leave_words(self, *texts: str) -> None:
        """Leave answers that were not rendered."""
        database = worker_database(self.clock, self.paths.worker_database("a"))
        for number, text in enumerate(texts):
            content = {"text": text, "createdAtMs": 1, "anchor": None, "footer": None}
            adding = Inbox(database).add_answer(f"answer-{number}", "raw", content)
            self.successResultOf(adding)
        self.successResultOf(database.stopService())

    def test_answers_that_were_not_rendered(self) -> None:
        """They are rendered in the worker's place; again after a kill, and nothing comes twice."""
        self.start()
        self.leave_words("**first** one", "second one")
        self.examine()
        self.assertEqual((self.texts(), self.left()), (["first one", "second one"], []))
        self.leave_words("**first** one")
        self.examine()
        self.assertEqual((self.texts(), self.left()), (["first one", "second one"], []))

    def test_given_up_with_words(self) -> None:
        """A worker that is forgotten says what it had not rendered, too."""
        self.start()
        self.leave_words("the last words")
        self.successResultOf(self.orphans.clear("a"))
        self.assertEqual(self.texts(), ["the last words"])

    def test_words_that_are_none(self) -> None:
        """What is no answer stays, is told, and holds nothing back."""
        self.start()
        database = worker_database(self.clock, self.paths.worker_database("a"))
        inbox = Inbox(database)
        self.successResultOf(inbox.add_answer("answer-0", "raw", {"text": 5}))
        self.successResultOf(inbox.add_answer("answer-1", "final", delivery(text_call("whole"))))
        self.successResultOf(database.stopService())
        self.examine()
        self.assertEqual(len(self.flushLoggedErrors(KeyError)), 1)
        self.assertIn("whole", self.texts())
        self.assertEqual(self.left(), ["answer-0"])
        self.assertIn("1 answer could not be taken over", self.orphans.problems()[0])

    def test_rescued_twice(self) -> None:
        """An answer that had been receipted before the kill is not sent a second time."""
        self.start()
        self.leave(answers=1)
        self.submit("a", "answer-0", text_call("answer 0"))
        self.examine()
        self.assertEqual((self.texts(), self.left()), (["answer 0"], []))

    def test_somebody_has_it(self) -> None:
        """A file whose lock is held, or whose worker is expected, is not opened."""
        self.start()
        self.leave(answers=1)
        lock = FileLock.try_acquire(self.paths.worker_lock("a"))
        assert lock is not None
        self.successResultOf(self.orphans.examine("a"))
        self.assertIsNone(self.successResultOf(self.orphans.admitted("a", "d0")))
        lock.release()
        self.expectation.expected.add("a")
        self.examine()
        self.assertIsNone(self.successResultOf(self.orphans.admitted("a", "d0")))
        self.assertEqual(self.texts(), [])
        self.expectation.expected.clear()
        self.examine()
        self.assertEqual(self.texts(), ["answer 0"])

    def test_lock_is_held_meanwhile(self) -> None:
        """While an answer is being taken over no worker can open the file."""
        taken: Deferred[str] = Deferred()
        delivery_port: Any = self.orphans._delivery
        self.orphans._delivery = SlowDelivery(taken)  # type: ignore[assignment]
        self.leave(answers=1)
        examining = self.orphans.examine("a")
        self.assertFalse(is_free(self.paths.worker_lock("a")))
        self.successResultOf(self.orphans.examine("a"))
        taken.callback("accepted")
        self.successResultOf(examining)
        self.assertTrue(is_free(self.paths.worker_lock("a")))
        self.assertIsNot(delivery_port, self.orphans._delivery)

    def test_prompts_are_reported_once(self) -> None:
        """Held and handed prompts are counted in the Thread, once for the same state of things."""
        self.start()
        self.leave(held=2, handed=1)
        self.examine()
        self.examine()
        (text,) = self.texts()
        self.assertIn("2 messages were waiting", text)
        self.assertIn("1 message was with Pi", text)
        self.assertNotIn("prompt", text)
        (problem,) = self.orphans.problems()
        self.assertTrue(problem.startswith("worker a: "))
        self.expectation.expected.add("a")
        self.assertEqual(self.orphans.problems(), [])

    def test_new_state_of_things(self) -> None:
        """When more is left behind later it is told again."""
        self.start()
        self.leave(held=1)
        self.examine()
        self.leave(held=2)
        self.examine()
        self.assertEqual(len(self.texts()), 2)

    def test_unsendable_answer(self) -> None:
        """An answer that the outbox never takes stays, is told, and holds no other back."""
        self.start()
        database = worker_database(self.clock, self.paths.worker_database("a"))
        inbox = Inbox(database)
        self.successResultOf(inbox.add_answer("bad", "final", {"calls": "nonsense"}))
        self.successResultOf(inbox.add_answer("good", "final", delivery(text_call("good"))))
        self.successResultOf(database.stopService())
        self.examine()
        self.assertEqual(self.texts()[0], "good")
        self.assertEqual(self.left(), ["bad"])
        self.assertIn("1 answer could not be taken over", self.orphans.problems()[0])

    def test_full_disk(self) -> None:
        """When the outbox cannot store an answer now it stays in the file for the next time."""
        self.start()
        self.leave(answers=1)
        taken: Deferred[str] = Deferred()
        intake = self.orphans._delivery
        self.orphans._delivery = SlowDelivery(taken)  # type: ignore[assignment]
        taken.errback(StoreFull("no space"))
        self.examine()
        self.assertEqual(self.left(), ["answer-0"])
        self.orphans._delivery = intake
        self.examine()
        self.assertEqual(self.texts(), ["answer 0"])

    def test_admitted(self) -> None:
        """The probe tells whether an id is in the file; without a file nothing was admitted."""
        self.leave(held=1)
        results = [
            self.successResultOf(self.orphans.admitted(key, delivery_id))
            for key, delivery_id in (("a", "d0"), ("a", "d1"), ("b", "d0"))
        ]
        self.assertEqual(results, [True, False, False])

    def test_damaged_file(self) -> None:
        """A damaged file cannot tell, is told as a problem, and is moved aside."""
        self.paths.worker_database("a").write_bytes(b"no database at all " * 100)
        self.assertIsNone(self.successResultOf(self.orphans.admitted("a", "d0")))
        self.assertIn("damaged", self.orphans.problems()[0])
        self.assertTrue((self.paths.workers / "recovery").is_dir())

    def test_unsafe_file(self) -> None:
        """A link in a file's place is neither followed nor taken for proof of anything."""
        target = Path(self.mktemp()).resolve()
        target.write_bytes(b"")
        self.paths.worker_database("a").symlink_to(target)
        self.examine()
        self.assertIsNone(self.successResultOf(self.orphans.admitted("a", "d0")))
        self.assertEqual(target.read_bytes(), b"")

    def test_given_up(self) -> None:
        """A binding that is given up leaves no file; its answers go to the outbox first."""
        self.start()
        self.leave(answers=2, held=1)
        self.successResultOf(self.orphans.examine("a"))
        self.leave(answers=3, held=1)
        self.paths.worker_log("a").write_bytes(b"log")
        self.assertNotEqual(self.orphans.problems(), [])
        self.successResultOf(self.orphans.clear("a"))
        self.assertEqual(list(self.paths.workers.iterdir()), [])
        self.assertEqual([t for t in self.texts() if t.startswith("answer")][-1], "answer 2")
        self.assertEqual(self.orphans.problems(), [])
        self.successResultOf(self.orphans.clear("a"))

    def test_not_given_up(self) -> None:
        """A file that is somebody's stays, and so does one whose answers could not be kept."""
        self.start()
        self.leave(answers=1)
        lock = FileLock.try_acquire(self.paths.worker_lock("a"))
        assert lock is not None
        failure = self.failureResultOf(self.orphans.clear("a"), Refusal)
        self.assertEqual(failure.value.code, "still-running")
        lock.release()
        self.patch(self.service.intake, "submit", lambda *_: fail(StoreFull("full")))
        self.failureResultOf(self.orphans.clear("a"), StoreFull)
        self.assertEqual(self.left(), ["answer-0"])

    def test_at_start_and_hourly(self) -> None:
        """All files are looked at when it starts and every hour."""
        self.start()
        self.leave("a", answers=1)
        self.leave("b", answers=1)
        self.orphans.startService()
        self.assertEqual(self.texts(), ["answer 0", "answer 0"])
        database = worker_database(self.clock, self.paths.worker_database("a"))
        content = delivery(text_call("later"))
        self.successResultOf(Inbox(database).add_answer("later", "final", content))
        self.successResultOf(database.stopService())
        self.clock.advance(PERIOD)
        self.assertEqual(self.texts()[-1], "later")
        self.successResultOf(self.orphans.stopService())
        self.clock.advance(PERIOD)

    def test_other_profiles(self) -> None:
        """A file of a binding that is not this profile's is left alone."""
        self.start()
        self.leave("spec-of-another", answers=1)
        self.orphans.startService()
        self.examine("spec-of-another")
        self.successResultOf(self.orphans.stopService())
        self.assertEqual(self.left("spec-of-another"), ["answer-0"])
        self.assertEqual(self.outbox.items(), [])

    def test_stop_in_the_middle(self) -> None:
        """A stop lets the file go at once; the answer is still there."""
        self.leave(answers=1)
        self.orphans._delivery = SlowDelivery(Deferred())  # type: ignore[assignment]
        self.orphans.startService()
        self.assertFalse(is_free(self.paths.worker_lock("a")))
        self.successResultOf(self.orphans.stopService())
        self.assertTrue(is_free(self.paths.worker_lock("a")))
        self.assertEqual(self.left(), ["answer-0"])


class SlowDelivery:
    """A front door that answers when the test says so."""

    def __init__(self, answer: Deferred[str]) -> None:
        self._answer = answer

    def submit(self, *arguments: Any) -> Deferred[str]:
        """Return the test's Deferred."""
        return self._answer
