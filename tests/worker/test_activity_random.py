"""What shows activity, under random events and a leader that does what it likes."""

from __future__ import annotations

from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.cutting import utf16_length
from pitelegram.errors import LinkLost, Refusal
from pitelegram.pi.observing import CompactionStep, Retry
from pitelegram.store.inbox import Inbox
from pitelegram.testing.leaderlink import FakeLeaderLink
from pitelegram.testing.pihost import FakePiHost
from pitelegram.testing.stores import worker_database
from pitelegram.testing.worker import CHAT, THREAD
from pitelegram.worker.activity import Activity
from pitelegram.worker.frames import MOST_WAITING, Frames
from tests.worker.test_activity import result, said


class OneAtATime(FakeLeaderLink):
    """Counts calls that are under way at the same time.

    @ivar most: the most so far.
    """

    most = flying = 0

    def call_api(self, *arguments: Any, **options: Any) -> Deferred[Any]:
        """See L{FakeLeaderLink}."""
        self.flying += 1
        self.most = max(self.most, self.flying)
        return super().call_api(*arguments, **options).addBoth(self._over)

    def _over(self, outcome: Any) -> Any:
        self.flying -= 1
        return outcome


class RandomRunTests(SynchronousTestCase):
    """Any order of events, against a leader that does what it likes."""

    def setUp(self) -> None:
        """Only what shows activity."""
        self.clock = Clock()
        self.database = worker_database(self.clock)

    def answer(self, random: Random) -> Any:
        """What becomes of the next call."""
        kind = random.random()
        if kind < 0.1:
            return Refusal("rate-limited", "x", retryAfter=random.choice((0.5, 3, 30)))
        if kind < 0.2:
            return random.choice(
                (
                    LinkLost("gone"),
                    Refusal("unavailable", "x"),
                    Refusal("commit-unknown", "x"),
                    Refusal("api", "x", errorCode=400, description="message to edit not found"),
                )
            )
        late: Deferred[Any] = Deferred()
        result = {"message_id": random.randint(1, 10**9)}
        self.clock.callLater(random.choice((0, 0.1, 0.1, 5)), late.callback, result)
        return late

    def test_random_runs(self) -> None:
        """Never two calls at once, never too many, never too long, and nothing is left at the end."""
        for seed in range(12):
            try:
                self.one(Random(seed))
            except Exception as error:
                raise AssertionError(f"seed {seed}: {error!r}") from error

    def one(self, random: Random) -> None:
        """Some runs of one worker."""
        link = OneAtATime({})
        inbox = Inbox(self.database)
        host = FakePiHost(self.clock)
        place = {"chatId": CHAT, "threadId": THREAD}
        lost = False
        frames = Frames(self.clock, inbox, lambda: None if lost else link, lambda: place)
        activity = Activity(host, frames, lambda: "verbose", lambda: True)
        activity.run_started()
        for _ in range(200):
            link.api_results = [self.answer(random)]
            if random.random() < 0.02:
                lost = not lost
            self.happen(random, activity)
            self.assertLessEqual(len(frames._frames), MOST_WAITING + 80)
            link.api_results = [self.answer(random) for _ in range(50)]
            self.clock.advance(random.choice((0.01, 0.3, 3)))
        activity.settled(False)
        activity.ended("over")
        fired: list[Any] = []
        activity.before_final().addCallback(fired.append)
        self.clock.pump([0.1] * 22)
        self.assertEqual(fired, [None])
        self.assertLessEqual(link.most, 1, "calls at the same time")
        sent = sum(method == "sendMessage" for method, _, _ in link.api_calls)
        lost, link.api_results = False, []
        self.clock.pump([1.0] * 120)
        self.assertEqual(sent, sum(method == "sendMessage" for method, _, _ in link.api_calls))
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertEqual(inbox.get_meta("activity") or "[]", "[]")
        for _, params, _ in link.api_calls:
            self.assertLessEqual(utf16_length(params.get("text", "")), 3900)

    def happen(self, random: Random, activity: Activity) -> None:
        """One event of Pi."""
        call = f"c{random.randint(1, 9)}"
        text = "😀 word " * random.choice((0, 1, 9, 90, 250))
        random.choice(
            (
                lambda: activity.thinking_delta(text),
                lambda: activity.tool_started(call, "bash", {"command": text}),
                lambda: activity.tool_updated(call, "bash", result(text)),
                lambda: activity.tool_ended(call, "bash", result(text), random.random() < 0.3),
                lambda: activity.assistant_message(said(random.choice(("", "x")), "toolUse")),
                lambda: activity.retrying(Retry(attempt=1, of=3, delay=2.0, reason=text)),
                lambda: activity.retried(True, ""),
                lambda: activity.compaction(CompactionStep(reason="threshold")),
                lambda: activity.compaction(CompactionStep(reason="threshold", over=True)),
                lambda: activity.before_final(),
            )
        )()
