"""C{typing…}, by the clock, against a scripted leader."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import LinkLost, Refusal
from pitelegram.testing.leaderlink import FakeLeaderLink
from pitelegram.worker.chataction import COMPACTION, LONGEST, PERIOD, RUN, ChatAction
from pitelegram.worker.trying import Fate, Trying

THREAD, ALL = 7, None


class TypingTests(SynchronousTestCase):
    """When it is sent, where, and when it is not."""

    def setUp(self) -> None:
        """A worker that does nothing."""
        self.clock = Clock()
        self.clock.advance(1000)
        self.link: FakeLeaderLink | None = FakeLeaderLink()
        self.calls = self.link.api_calls
        self.target: dict[str, int] | None = {"chatId": 100, "threadId": THREAD}
        self.trying = Trying(self.clock, lambda: self.link)
        self.typing = ChatAction(self.clock, self.trying, lambda: self.target)

    def answers(self, *results: Any) -> None:
        """The next calls end so."""
        assert self.link is not None
        self.link.api_results += results

    def places(self) -> list[Any]:
        """Where it was sent since the last question."""
        found = [params.get("message_thread_id") for _, params, _ in self.calls]
        self.calls.clear()
        return found

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.pump([0.25] * int(seconds * 4))

    def test_thread_and_all(self) -> None:
        """Every 2.5 s in both, until the end; then nothing at all."""
        self.typing.show(True, RUN)
        self.assertEqual(
            self.calls,
            [
                (
                    "sendChatAction",
                    {"chat_id": 100, "message_thread_id": THREAD, "action": "typing"},
                    {},
                ),
                ("sendChatAction", {"chat_id": 100, "action": "typing"}, {"aggregate": True}),
            ],
        )
        self.places()
        self.typing.show(True, RUN)
        self.wait(10)
        self.assertEqual(self.places(), [THREAD, ALL] * 4)
        self.typing.show(False, RUN)
        self.wait(60)
        self.assertEqual((self.places(), self.clock.getDelayedCalls()), ([], []))

    def test_no_threads(self) -> None:
        """In a chat without Threads once is enough; without a target there is nowhere to send it."""
        self.target = {"chatId": 100}
        self.typing.show(True, RUN)
        self.assertEqual(self.places(), [ALL])
        self.target = None
        self.wait(5)
        self.assertEqual(self.places(), [])
        self.target = {"chatId": 100, "threadId": 9}
        self.wait(PERIOD)
        self.assertEqual(self.places(), [9, ALL])

    def test_reasons(self) -> None:
        """It lasts as long as any reason for it."""
        self.typing.show(True, RUN)
        self.typing.show(True, COMPACTION)
        self.places()
        self.typing.show(False, RUN)
        self.wait(5)
        self.assertEqual(self.places(), [THREAD, ALL] * 2)
        self.typing.show(False, COMPACTION)
        self.wait(60)
        self.assertEqual((self.places(), self.clock.getDelayedCalls()), ([], []))

    def test_compaction_without_an_end(self) -> None:
        """It is shown for five minutes at most."""
        self.typing.show(True, COMPACTION)
        self.wait(LONGEST + 10)
        self.assertEqual(len(self.places()), 2 * LONGEST / PERIOD)
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.typing.show(False, COMPACTION)
        self.typing.show(True, COMPACTION)
        self.assertEqual(self.places(), [THREAD, ALL])

    def test_serialised(self) -> None:
        """One that does not return leaves out the next ones, and keeps nobody waiting."""
        waiting: Deferred[Any] = Deferred()
        self.answers(waiting)
        self.typing.show(True, RUN)
        self.wait(20)
        self.assertEqual(self.places(), [THREAD])
        waiting.callback(True)
        self.assertEqual(self.places(), [ALL])
        self.wait(PERIOD)
        self.assertEqual(self.places(), [THREAD, ALL])

    def test_end_while_it_is_under_way(self) -> None:
        """What returns after the end is not followed by the other place."""
        waiting: Deferred[Any] = Deferred()
        self.answers(waiting)
        self.typing.show(True, RUN)
        self.typing.show(False, RUN)
        waiting.callback(True)
        self.wait(20)
        self.assertEqual(self.places(), [THREAD])

    def test_refused(self) -> None:
        """A refusal ends it; the next run tries again."""
        for refusal in (
            Refusal(
                "api", "x", errorCode=403, description="Forbidden: bot was blocked by the user"
            ),
            Refusal("not-allowed", "x"),
        ):
            self.answers(refusal)
            self.typing.show(True, RUN)
            self.wait(30)
            self.assertEqual(self.places(), [THREAD])
            self.typing.show(False, RUN)
            self.typing.show(True, RUN)
            self.assertEqual(self.places(), [THREAD, ALL])
            self.typing.show(False, RUN)

    def test_away(self) -> None:
        """What fails for now is left out; it goes on by itself."""
        self.answers(Refusal("unavailable", "x"), LinkLost("x"))
        self.typing.show(True, RUN)
        self.wait(2 * PERIOD)
        self.assertEqual(self.places(), [THREAD, THREAD, THREAD, ALL])
        link, self.link = self.link, None
        self.wait(10)
        self.link = link
        self.wait(PERIOD)
        self.assertEqual(self.places(), [THREAD, ALL])

    def test_flood(self) -> None:
        """After a 429 nobody of this worker calls before its time, typing or preview."""
        flood = Refusal("api", "x", errorCode=429, description="Too Many", retryAfter=30)
        self.answers(flood)
        self.typing.show(True, RUN)
        self.wait(29)
        self.assertEqual(self.places(), [THREAD])
        other = self.successResultOf(
            Deferred.fromCoroutine(self.trying.call("sendMessageDraft", {}))
        )
        self.assertEqual((other.fate, self.calls), (Fate.LIMITED, []))
        self.assertAlmostEqual(other.seconds, 1.0)
        self.wait(PERIOD)
        self.assertEqual(self.places(), [THREAD, ALL])

    def test_budget(self) -> None:
        """The leader's refusal for the budget's sake leaves out that one, and nothing of others."""
        self.answers(Refusal("rate-limited", "x", retryAfter=30))
        self.typing.show(True, RUN)
        self.wait(PERIOD)
        self.assertEqual(self.places(), [THREAD, THREAD, ALL])

    def test_stop(self) -> None:
        """A worker that ends leaves no timer."""
        self.typing.show(True, RUN)
        self.typing.show(True, COMPACTION)
        self.typing.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])
