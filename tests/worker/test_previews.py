"""Previews, by the clock, against a scripted leader."""

from __future__ import annotations

from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from pitelegram.errors import LinkLost, Refusal
from pitelegram.pi.interfaces import IPiObserver
from pitelegram.store.inbox import Inbox
from pitelegram.testing.leaderlink import FakeLeaderLink
from pitelegram.testing.stores import worker_database
from pitelegram.worker.previews import EDIT_PACE, LARGEST_DRAFT_ID, Canvas, Previews
from pitelegram.worker.standin import MARK, StandIn
from pitelegram.worker.trying import Trying

TARGET = {"chatId": 100, "threadId": 7}
NO_METHOD = Refusal("api", "Not Found", errorCode=404, description="Not Found: method not found")


def flood(seconds: float) -> Refusal:
    """What a 429 of Telegram is for a worker."""
    return Refusal("api", "Too Many", errorCode=429, description="Too Many", retryAfter=seconds)


class PreviewCase(SynchronousTestCase):
    """Previews over a store and a link that survive several processes."""

    def setUp(self) -> None:
        """A first process."""
        self.clock = Clock()
        self.clock.advance(1000)
        database = worker_database(self.clock)
        self.addCleanup(database.stopService)
        self.inbox = Inbox(database)
        self.settings: dict[str, Any] = {"draftPreviews": True, "rendering": "rich"}
        self.wanted = True
        self.target: dict[str, int] | None = TARGET
        self.link: FakeLeaderLink | None = FakeLeaderLink()
        self.calls = self.link.api_calls
        self.begin()

    def begin(self) -> None:
        """Start a process."""
        random = Random(3)
        trying = Trying(self.clock, lambda: self.link)
        stand_in = StandIn(self.clock, random, self.inbox, trying, lambda: self.link is not None)
        canvas = Canvas(trying, stand_in, lambda: self.target)
        self.previews = Previews(
            self.clock, random, canvas, self.settings.__getitem__, lambda: self.wanted
        )

    def answers(self, *results: Any) -> None:
        """The next calls end so."""
        assert self.link is not None
        self.link.api_results += results

    def write(self, *deltas: str, seconds: float = 0.0) -> None:
        """Pi writes, with so much time after each piece."""
        for delta in deltas:
            self.previews.text_delta(delta)
            if seconds:
                self.clock.pump([0.1] * int(seconds * 10))

    def begins(self, *deltas: str, seconds: float = 1.0) -> None:
        """Pi begins a run and writes."""
        self.previews.run_started()
        self.write(*deltas, seconds=seconds)

    def texts(self) -> list[str]:
        """What was shown, frame by frame."""
        found = []
        for method, params, _ in self.calls:
            if method == "sendRichMessageDraft":
                found.append(params["rich_message"]["markdown"])
            elif method in ("sendMessageDraft", "editMessageText"):
                found.append(params["text"])
        return found

    def methods(self) -> list[str]:
        """The methods that were called."""
        return [method for method, _, _ in self.calls]


class DraftTests(PreviewCase):
    """Where Telegram has drafts."""

    def test_frames(self) -> None:
        """Closed words in the Thread, about one frame a second, under one id; nothing after the run."""
        verifyObject(IPiObserver, self.previews)
        self.begins("This is ", "**bold", " and more** text", " to the end. ", seconds=1.2)
        self.assertEqual(
            self.texts(),
            [
                "This is",
                "This is **bold and more** text",
                "This is **bold and more** text to the end.",
            ],
        )
        self.assertEqual({method for method in self.methods()}, {"sendRichMessageDraft"})
        for _, params, options in self.calls:
            self.assertEqual((params["chat_id"], params["message_thread_id"]), (100, 7))
            self.assertTrue(1 <= params["draft_id"] <= LARGEST_DRAFT_ID)
            self.assertEqual(options, {})
        self.assertEqual(len({params["draft_id"] for _, params, _ in self.calls}), 1)
        self.previews.settled(False)
        self.write("late words ", seconds=5)
        self.assertEqual(len(self.calls), 3)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_plain_rendering(self) -> None:
        """The setting of the answers' form is the previews' form, too."""
        self.settings["rendering"] = "html"
        self.begins("This is **bold** ")
        (call,) = self.calls
        self.assertEqual(call[0], "sendMessageDraft")
        self.assertEqual(call[1]["text"], "This is bold")
        self.assertEqual(call[1]["entities"], [{"type": "bold", "offset": 8, "length": 4}])

    def test_off(self) -> None:
        """Switched off there is no state and no call; the setting counts from the next run on."""
        self.settings["draftPreviews"] = False
        self.begins("Some words ")
        self.assertIsNone(self.previews.stream)
        self.settings["draftPreviews"] = True
        self.write("more words ", seconds=2)
        self.assertEqual(self.calls, [])
        self.assertEqual(self.inbox.get_meta("preview-messages"), None)
        self.previews.settled(False)
        self.wanted = False
        self.begins("Some words ")
        self.assertEqual((self.calls, self.previews.stream), ([], None))

    def test_a_message_each(self) -> None:
        """Each message of a run begins anew, under another id."""
        self.begins("First words. ")
        self.previews.assistant_message({"text": "First words."})
        self.write("Second words. ", seconds=2)
        self.assertEqual(self.texts(), ["First words.", "Second words."])
        self.assertEqual(len({params["draft_id"] for _, params, _ in self.calls}), 2)

    def test_one_at_a_time(self) -> None:
        """The next frame goes when the one before has returned, and shows the latest text."""
        waiting: Deferred[Any] = Deferred()
        self.answers(waiting)
        self.begins("one ", "two ", "three ", "four ", seconds=2)
        self.assertEqual(len(self.calls), 1)
        waiting.callback(True)
        self.clock.advance(0)
        self.assertEqual(self.texts(), ["one", "one two three four"])

    def test_end_while_one_is_under_way(self) -> None:
        """A frame that returns after the run is not followed by another."""
        waiting: Deferred[Any] = Deferred()
        self.answers(waiting)
        self.begins("one ", "two ", seconds=2)
        self.previews.settled(False)
        waiting.callback(True)
        self.clock.pump([1.0] * 10)
        self.assertEqual(len(self.calls), 1)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_failures(self) -> None:
        """A frame that fails is left out; later ones come, less often."""
        failures = (
            Refusal("unavailable", "away"),
            Refusal("api", "Bad", errorCode=400, description="Bad Request: x"),
            Refusal("not-allowed", "no"),
            LinkLost("gone"),
        )
        for failure in failures:
            self.calls.clear()
            self.answers(failure)
            self.begins("one ", "two ", seconds=2)
            self.assertEqual(self.texts(), ["one"], failure)
            self.clock.pump([0.5] * 10)
            self.assertEqual(self.texts(), ["one", "one two"], failure)
            self.previews.settled(False)

    def test_no_link(self) -> None:
        """Without a leader or a Thread nothing is shown and nothing fails; later it is."""
        link, self.link = self.link, None
        self.begins("one ", seconds=2)
        self.link, self.target = link, None
        self.clock.pump([0.5] * 20)
        self.assertEqual(self.calls, [])
        self.target = TARGET
        self.clock.pump([0.5] * 20)
        self.assertEqual(self.texts(), ["one"])

    def test_flood(self) -> None:
        """After a 429 nothing goes before its time; the last words come then."""
        self.answers(flood(30.0))
        self.begins("one ", "two ", "three ", seconds=5)
        self.assertEqual(self.texts(), ["one"])
        self.clock.pump([0.5] * 29)
        self.assertEqual(len(self.calls), 1)
        self.clock.pump([0.5] * 4)
        self.assertEqual(self.texts(), ["one", "one two three"])

    def test_rate_limited(self) -> None:
        """The leader's refusal for the budget's sake is waited out."""
        self.answers(Refusal("rate-limited", "so soon", retryAfter=4.0))
        self.begins("one ", seconds=3)
        self.assertEqual(len(self.calls), 1)
        self.clock.pump([0.5] * 4)
        self.assertEqual(len(self.calls), 2)

    def test_nothing_new(self) -> None:
        """A frame that shows the same is not sent."""
        self.begins("one ", "**", "tw", "o", seconds=2)
        self.assertEqual(self.texts(), ["one"])

    def test_pi_gone(self) -> None:
        """The end of Pi, or of the worker, ends it too."""
        for end in (lambda: self.previews.ended("gone"), self.previews.stop):
            self.calls.clear()
            self.begins("one ", "two ", seconds=0)
            end()
            self.clock.pump([1.0] * 10)
            self.assertEqual(self.calls, [])
            self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_rich_drafts_missing(self) -> None:
        """Where only plain drafts are known they are used, the frame is not lost, and nobody asks again."""
        self.answers(NO_METHOD)
        self.begins("**one** ", "two ", seconds=2)
        self.assertEqual(
            self.methods(), ["sendRichMessageDraft", "sendMessageDraft", "sendMessageDraft"]
        )
        self.previews.settled(False)
        self.begins("three ")
        self.assertEqual(self.methods()[3:], ["sendMessageDraft"])


class StandInTests(PreviewCase):
    """Where Telegram has no drafts at all."""

    def setUp(self) -> None:
        """The first two methods are not known."""
        super().setUp()
        self.answers(NO_METHOD, NO_METHOD)

    def ids(self, method: str) -> list[int]:
        """The messages that a method was called for."""
        return [params["message_id"] for name, params, _ in self.calls if name == method]

    def test_message(self) -> None:
        """One silent message, edited every three seconds at most, deleted at the end of the run."""
        begin = self.clock.seconds()
        self.begins(*["word "] * 90, seconds=0.1)
        self.assertEqual(
            self.methods()[:4],
            ["sendRichMessageDraft", "sendMessageDraft", "sendMessage", "editMessageText"],
        )
        sent = self.calls[2][1]
        self.assertEqual((sent["text"], sent["disable_notification"]), (MARK, True))
        self.assertEqual((sent["chat_id"], sent["message_thread_id"]), (100, 7))
        edits = self.ids("editMessageText")
        self.assertLessEqual(len(edits), (self.clock.seconds() - begin) / EDIT_PACE + 1)
        self.assertGreater(len(edits), 1)
        self.previews.settled(False)
        self.assertEqual(self.ids("deleteMessage"), [edits[0]])
        self.assertEqual(len(set(edits)), 1)
        self.assertEqual(self.inbox.get_meta("preview-messages"), "[]")
        self.clock.pump([1.0] * 10)
        self.assertEqual(self.methods()[-1], "deleteMessage")
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_next_message(self) -> None:
        """What Pi said before it goes on is sent by itself: what stood in for it goes, another one comes."""
        self.begins("one ")
        (first,) = self.ids("editMessageText")
        self.previews.assistant_message({"text": "one"})
        self.assertEqual(self.ids("deleteMessage"), [first])
        self.clock.pump([0.5] * 10)
        self.assertEqual(len(self.ids("editMessageText")), 1)
        self.write("two ", seconds=5)
        second = self.ids("editMessageText")[-1]
        self.assertNotEqual(second, first)
        self.assertEqual(self.texts()[-1], "two")
        self.previews.settled(False)
        self.assertEqual(self.ids("deleteMessage"), [first, second])

    def test_next_message_while_it_is_being_sent(self) -> None:
        """Its id comes when its words are old: it is deleted, and the next words have their own."""
        waiting: Deferred[Any] = Deferred()
        self.answers(waiting)
        self.begins("one ")
        self.previews.assistant_message({"text": "one"})
        self.write("two ", seconds=1)
        waiting.callback({"message_id": 55})
        self.assertEqual(self.ids("deleteMessage"), [55])
        self.clock.pump([0.5] * 20)
        self.assertNotIn(55, self.ids("editMessageText"))
        self.assertEqual(self.texts()[-1], "two")

    def test_next_run(self) -> None:
        """The next run has a message of its own; the methods are not asked for again."""
        self.begins("one ")
        self.previews.settled(False)
        self.calls.clear()
        self.begins("two ")
        self.assertEqual(self.methods(), ["sendMessage", "editMessageText"])

    def test_kill(self) -> None:
        """A message that a killed process left is deleted by the next one, once there is a leader."""
        self.begins("one ")
        (message_id,) = self.ids("editMessageText")
        self.calls.clear()
        link, self.link = self.link, None
        self.begin()
        self.previews.placed()
        self.clock.pump([1.0] * 100)
        self.assertEqual(self.calls, [])
        self.link = link
        self.previews.placed()
        self.assertEqual(self.ids("deleteMessage"), [message_id])
        self.previews.placed()
        self.assertEqual(len(self.calls), 1)

    def test_kill_before_its_id_is_known(self) -> None:
        """What such a kill leaves behind says nothing of the answer."""
        self.answers(Deferred())
        self.begins("secret ")
        self.assertEqual(self.methods()[2:], ["sendMessage"])
        self.assertNotIn("secret", repr(self.calls[2]))

    def test_end_while_it_is_being_sent(self) -> None:
        """Its id comes after the end of the run: it is deleted, never edited."""
        waiting: Deferred[Any] = Deferred()
        self.answers(waiting)
        self.begins("one ")
        self.previews.settled(False)
        self.begins("two ")
        waiting.callback({"message_id": 55})
        self.assertEqual(self.ids("deleteMessage"), [55])
        self.assertNotIn(55, self.ids("editMessageText"))
        self.assertEqual(len(self.ids("editMessageText")), 1)

    def test_deletion_is_repeated(self) -> None:
        """Until it is gone: after a flood, an outage of Telegram or of the leader."""
        self.begins("one ")
        self.answers(flood(20.0), Refusal("unavailable", "away"), LinkLost("gone"))
        self.previews.settled(False)
        self.clock.pump([1.0] * 19)
        self.assertEqual(len(self.ids("deleteMessage")), 1)
        self.clock.pump([1.0] * 30)
        self.assertEqual(len(self.ids("deleteMessage")), 4)
        self.clock.pump([1.0] * 100)
        self.assertEqual(len(self.ids("deleteMessage")), 4)
        self.assertEqual(self.inbox.get_meta("preview-messages"), "[]")

    def test_deletion_that_is_refused(self) -> None:
        """The operator deleted it himself, or it is not ours any more: nothing to do."""
        for refusal in (
            Refusal(
                "api", "x", errorCode=400, description="Bad Request: message to delete not found"
            ),
            Refusal("not-allowed", "this worker did not send that message"),
        ):
            self.begins("one ")
            self.answers(refusal)
            self.previews.settled(False)
            self.assertEqual(self.inbox.get_meta("preview-messages"), "[]")

    def test_stop_leaves_no_timer(self) -> None:
        """A worker that ends leaves the rest to the next start."""
        self.begins("one ")
        self.answers(Refusal("unavailable", "away"), Refusal("unavailable", "away"))
        self.previews.settled(False)
        self.previews.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertNotEqual(self.inbox.get_meta("preview-messages"), "[]")

    def test_unsure(self) -> None:
        """Nobody can tell whether it was sent: this run sends no other one, the next run does."""
        for error in (Refusal("commit-unknown", "x"), LinkLost("gone")):
            self.calls.clear()
            self.answers(error)
            self.begins("one ", "two ", "three ", seconds=9)
            self.assertEqual(
                [each for each in self.methods() if "Draft" not in each], ["sendMessage"]
            )
            self.previews.settled(False)
        self.begins("four ")
        self.assertEqual(self.methods()[-2:], ["sendMessage", "editMessageText"])

    def test_away(self) -> None:
        """It was certainly not sent: it is tried again."""
        self.answers(Refusal("unavailable", "x"))
        self.begins("one ", seconds=9)
        self.assertEqual(self.methods()[2:], ["sendMessage", "sendMessage", "editMessageText"])

    def test_damaged_note(self) -> None:
        """What is no list of messages is none."""
        for text in ("{", "[1]", '{"a":1}', "null"):
            self.inbox.set_meta("preview-messages", text)
            self.previews.placed()
        self.assertEqual(self.calls, [])
