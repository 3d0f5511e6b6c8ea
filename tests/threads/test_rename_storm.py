"""All titles change while Telegram refuses most edits: nothing else waits, all come right."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred

from pitelegram.botapi.limits import SendGate
from pitelegram.delivery.service import DeliveryService
from pitelegram.errors import CertainlyUnsent, Refused
from pitelegram.store.outbox import Outbox
from pitelegram.testing.botapi import Call
from pitelegram.testing.delivery import FakeThreadLoss
from pitelegram.threads.loss import ThreadLoss
from pitelegram.threads.titler import Titler
from tests.threads.test_provision import OWNER, ThreadsCase

WORKERS = 26
PERIOD, MOST = 10.0, 3
"""At most so many titles in so many seconds."""


class RenameStormTests(ThreadsCase):
    """26 connected workers, another display mode, and C{editForumTopic} under 429."""

    def setUp(self) -> None:
        """Begin with every title right; answers can be delivered."""
        super().setUp()
        self.random = Random(9)
        self.keys = [f"spec-{number:02}" for number in range(WORKERS)]
        for key in self.keys:
            self.ensure(key)
        gate = SendGate(self.clock)
        self.outbox = Outbox(self.database)
        self.delivery = DeliveryService(
            self.clock,
            Random(3),
            self.outbox,
            self.bindings,
            self.leadership,
            self.api,
            gate,
            FakeThreadLoss(),
            Path(self.mktemp()),
            run_blocking=lambda work: maybeDeferred(work),
        )
        self.successResultOf(self.delivery.startService())
        self.addCleanup(self.delivery.stopService)
        titler = Titler(
            self.clock, self.threads, self.threads.budget, lambda: dict.fromkeys(self.keys, False)
        )
        titler.startService()
        self.addCleanup(titler.stopService)
        self.forbidden_until = 0.0
        self.limited = 0

    def storm(self, refusals: int) -> None:
        """The next edits are refused, some with a long wait; an edit before its end is a fault."""

        def answer(call: Call) -> Any:
            self.assertGreaterEqual(self.clock.seconds(), self.forbidden_until)
            wait = self.random.choice([0, 3, 20, 35, 60])
            if wait == 0:
                self.api.topics[OWNER, call.params["message_thread_id"]] = call.params["name"]
                return True
            self.limited += 1
            self.forbidden_until = self.clock.seconds() + wait
            return CertainlyUnsent("editForumTopic", 429, "Too Many Requests", float(wait))

        self.api.script("editForumTopic", *[answer] * refusals)

    def say(self, number: int) -> None:
        """A worker's answer is there at once."""
        key = self.keys[number % WORKERS]
        call = {"method": "sendMessage", "params": {"text": f"answer {number}"}}
        delivery = {"kind": "final", "createdAtMs": 1, "calls": [call]}
        self.successResultOf(self.delivery.intake.submit(key, f"d{number}", delivery, None))
        sent = self.api.made("sendMessage")[-1].params
        target = self.target(key)
        assert target is not None
        self.assertEqual(
            (sent["text"], sent["message_thread_id"]), (call["params"]["text"], target.thread_id)
        )

    def right(self) -> bool:
        """Whether every Thread is called as its mode wants it, and we know it."""
        titles = [(self.bindings.get(key).title, self.threads.title(key)) for key in self.keys]
        real = [self.api.topics[OWNER, self.target(key).thread_id] for key in self.keys]
        return all(mine == wanted for mine, wanted in titles) and real == [w for _, w in titles]

    def test_storm(self) -> None:
        """Telegram's waits are kept, answers go meanwhile, edits are no more than needed."""
        self.storm(30)
        self.display = "names"
        rounds = 0
        while not self.right():
            before = len(self.api.made("editForumTopic"))
            self.clock.pump([1.0] * int(PERIOD))
            self.assertLessEqual(len(self.api.made("editForumTopic")) - before, MOST)
            self.say(rounds)
            rounds += 1
            self.assertLess(rounds, 500)
        self.assertGreater(self.limited, 10)
        self.assertEqual(len(self.api.made("editForumTopic")), WORKERS + self.limited)
        self.clock.pump([PERIOD] * 5)
        self.assertEqual(len(self.api.made("editForumTopic")), WORKERS + self.limited)

    def test_changed_in_the_middle(self) -> None:
        """Titles that were wanted for a while only are not asked for any more."""
        self.storm(20)
        for mode in ("names", "directory-title", "letters", "directory-snake"):
            self.display = mode
            self.clock.pump([PERIOD] * 4)
        self.clock.pump([PERIOD] * 60)
        self.assertTrue(self.right())
        self.assertLessEqual(len(self.api.made("editForumTopic")), self.limited + 3 * 4 * MOST + 26)

    def test_found_dead_in_it(self) -> None:
        """A Thread that is looked for meanwhile is not taken for dead: a 429 proves nothing."""
        loss = ThreadLoss(self.api, self.bindings, self.threads)
        flood = CertainlyUnsent("editForumTopic", 429, "Too Many Requests", 30.0)
        unmodified = Refused("editForumTopic", 400, "Bad Request: TOPIC_NOT_MODIFIED")
        self.api.script("editForumTopic", flood, unmodified)
        self.display = "names"
        self.assertEqual(self.successResultOf(loss.examine("spec-03")), "unknown")
        self.assertEqual(self.successResultOf(loss.examine("spec-03")), "alive")
        asked = [call.params["name"] for call in self.api.made("editForumTopic")]
        self.assertEqual(asked, [self.bindings.get("spec-03").title] * 2)
        self.assertEqual(len(self.made()), WORKERS)

    def test_looked_for_beside_an_edit(self) -> None:
        """The proof of life waits for an edit that is under way, and takes no new title away."""
        loss = ThreadLoss(self.api, self.bindings, self.threads)
        slow: Deferred[bool] = Deferred()
        self.api.script("editForumTopic", slow)
        self.display = "names"
        editing = self.threads.retitle("spec-03")
        looking = loss.examine("spec-03")
        self.assertEqual(len(self.api.made("editForumTopic")), 1)
        slow.callback(True)
        self.successResultOf(editing)
        self.assertEqual(self.successResultOf(looking), "alive")
        asked = [call.params["name"] for call in self.api.made("editForumTopic")]
        self.assertEqual(asked, [self.threads.title("spec-03")] * 2)

    def test_wait_that_a_proof_was_told(self) -> None:
        """No title is edited before it is over."""
        loss = ThreadLoss(self.api, self.bindings, self.threads)
        self.api.script(
            "editForumTopic", CertainlyUnsent("editForumTopic", 429, "Too Many Requests", 45.0)
        )
        self.assertEqual(self.successResultOf(loss.examine("spec-03")), "unknown")
        self.display = "names"
        self.clock.pump([5.0] * 8)
        self.assertEqual(len(self.api.made("editForumTopic")), 1)
        self.clock.pump([5.0] * 4)
        self.assertGreater(len(self.api.made("editForumTopic")), 1)
