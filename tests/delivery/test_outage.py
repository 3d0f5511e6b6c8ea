"""Telegram is away for a while, and daemons are killed meanwhile."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pitelegram.delivery.sender import LONGEST_WAIT
from pitelegram.errors import CertainlyUnsent
from pitelegram.testing.botapi import Call
from tests.delivery.world import OWNER, START, DeliveryCase, text_call

KEYS = "abcd"
TURNS = 5
OUTAGE = 600.0


class OutageTests(DeliveryCase):
    """Twenty answers of four workers, all of them while nothing can be sent."""

    def setUp(self) -> None:
        """Four Threads, and a Telegram that cannot be reached for ten minutes."""
        super().setUp()
        for key, thread in (("c", 90), ("d", 100)):
            self.successResultOf(self.bindings.ensure(key, "managed", f"/{key}"))
            self.give(key, thread)
        self.away_until = START + OUTAGE
        self.shown: list[tuple[float, int, str]] = []
        self.api.script("sendMessage", *([self.answer] * 3000))

    def answer(self, call: Call) -> Any:
        """Show a message, unless Telegram is away."""
        now = self.clock.seconds()
        if now < self.away_until:
            return CertainlyUnsent(call.method, 0, "no route")
        thread = call.params["message_thread_id"]
        self.shown.append((now, thread, call.params["text"]))
        return {"message_id": len(self.shown), "message_thread_id": thread}

    def finish_turns(self, turn: int) -> None:
        """Each worker ends a turn; every second receipt gets lost, so it submits again."""
        for key in KEYS:
            calls = [text_call(f"{key}{turn}.{part}") for part in range(1 + turn % 2)]
            for _ in range(1 + turn % 2):
                self.submit(key, f"d{turn}", *calls)

    def pass_time(self, seconds: float) -> None:
        """Let time pass in small steps."""
        self.clock.pump([0.5] * int(seconds * 2))

    def texts_of(self, thread: int) -> list[str]:
        """What a Thread shows, in order."""
        return [text for _, place, text in self.shown if place == thread]

    def test_ten_minutes(self) -> None:
        """Every answer comes in order and once when it is over, though the daemon was killed twice."""
        self.start()
        for turn in range(TURNS):
            self.finish_turns(turn)
            self.pass_time(100)
            if turn in (1, 3):
                self.restart()
        self.assertEqual(self.shown, [])
        self.assertEqual(
            self.outbox.counts(), {**dict.fromkeys(self.outbox.counts(), 0), "pending": 20}
        )
        self.assertEqual(self.service.sender.problem, None)
        self.pass_time(100 + LONGEST_WAIT + 30)
        wanted = [f"{turn}.{part}" for turn in range(TURNS) for part in range(1 + turn % 2)]
        for thread, key in zip((70, 80, 90, 100), KEYS, strict=True):
            self.assertEqual(self.texts_of(thread), [key + each for each in wanted])
        self.assertEqual(set(Counter(text for _, _, text in self.shown).values()), {1})
        self.assertEqual(sum(self.outbox.counts().values()), 0)

    def test_soon_after_it(self) -> None:
        """The first answer comes within the longest wait, the others as fast as the chat takes them."""
        self.start()
        for turn in range(TURNS):
            self.finish_turns(turn)
        self.pass_time(OUTAGE + 2 * LONGEST_WAIT)
        times = [at - START - OUTAGE for at, _, _ in self.shown]
        self.assertEqual(len(times), 28)
        self.assertLessEqual(min(times), LONGEST_WAIT)
        self.assertLessEqual(max(times), LONGEST_WAIT + 28)

    def test_calls_meanwhile(self) -> None:
        """While it lasts each worker tries about once a minute, however many answers wait."""
        self.start()
        for turn in range(TURNS):
            self.finish_turns(turn)
        self.pass_time(120)
        before = len(self.api.made("sendMessage"))
        self.pass_time(OUTAGE - 121)
        self.assertLess(len(self.api.made("sendMessage")) - before, len(KEYS) * 20)

    def test_an_outage_within_another_kind(self) -> None:
        """Away, then slowing down, then away: still once and in order."""
        self.start()
        for turn in range(TURNS):
            self.finish_turns(turn)
        self.pass_time(OUTAGE + 5)
        self.gate.flood(OWNER, 60)
        self.pass_time(30)
        self.away_until = self.clock.seconds() + 120
        self.pass_time(120 + LONGEST_WAIT + 60)
        texts = [text for _, _, text in self.shown]
        self.assertEqual(len(texts), 28)
        self.assertEqual(set(Counter(texts).values()), {1})
        self.assertEqual(self.texts_of(70), sorted(self.texts_of(70)))
