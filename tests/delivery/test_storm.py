"""Everything at once: a store with its thread, a server that fails at random, restarts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock, LoopingCall, deferLater
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from pitelegram.botapi.limits import SendGate
from pitelegram.delivery.service import DeliveryService
from pitelegram.errors import CertainlyUnsent, Uncertain
from pitelegram.kernel.deferring import deferred
from pitelegram.store.bindings import Bindings
from pitelegram.store.database import Database
from pitelegram.store.leadership import Leadership
from pitelegram.store.outbox import Outbox
from pitelegram.testing.botapi import Call, FakeBotApi
from pitelegram.testing.delivery import FakeThreadLoss
from tests.delivery.world import OWNER, delivery, text_call

BINDINGS = ("a", "b", "c")
DELIVERIES = 12


class Server:
    """Answers after a while: well, badly, or not at all; remembers what it really showed."""

    def __init__(self, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._random = random
        self.shown: list[tuple[int, str]] = []

    def answer(self, call: Call) -> Any:
        """Decide the fate of one call."""
        if "reply_markup" in call.params:
            return {"message_id": 1}
        thread, text = call.params["message_thread_id"], call.params["text"]
        result: Deferred[Any] = Deferred()
        fate = self._random.random()
        if fate < 0.6 or 0.6 <= fate < 0.7:
            self.shown.append((thread, text))
        identity = len(self.shown)
        if fate < 0.6:
            message = {"message_id": identity, "message_thread_id": thread}
            self._clock.callLater(self._random.random(), self._end, result, message)
        elif fate < 0.8:
            self._clock.callLater(1, self._end, result, Uncertain("sendMessage", 502, "x"))
        elif fate < 0.95:
            error = CertainlyUnsent("sendMessage", 0, "refused")
            self._clock.callLater(0.1, self._end, result, error)
        else:
            return CertainlyUnsent("sendMessage", 429, "slow down", 7.0)
        return result

    def _end(self, result: Deferred[Any], outcome: Any) -> None:
        if result.called:
            return
        if isinstance(outcome, Exception):
            result.errback(outcome)
        else:
            result.callback(outcome)


class StormTests(TestCase):
    """Nothing missing, nothing doubled, whatever happens."""

    timeout = 60

    async def setUp(self) -> None:
        """Open a file with its thread; time runs a hundred times too fast."""
        from twisted.internet import reactor

        self.reactor: Any = reactor
        self.clock = Clock()
        self.random = Random(11)
        self.server = Server(self.clock, self.random)
        self.path = Path(self.mktemp())
        ticking = LoopingCall(self.clock.advance, 0.5)
        ticking.start(0.005)
        self.addCleanup(ticking.stop)
        self.database = Database(self.path, "leader", self.clock, self.reactor)
        self.database.open()
        self.addCleanup(lambda: self.database.close())
        await self.database.acquire("1")
        self.outbox, bindings = Outbox(self.database), Bindings(self.database)
        for number, key in enumerate(BINDINGS):
            await bindings.ensure(key, "managed", None)
            await bindings.set_target(key, OWNER, 70 + number, None)

    def make(self) -> DeliveryService:
        """Return a delivery service over the file."""
        api = FakeBotApi()
        api.script("sendMessage", *([self.server.answer] * 2000))
        return DeliveryService(
            self.clock,
            self.random,
            self.outbox,
            Bindings(self.database),
            Leadership(self.database),
            api,
            SendGate(self.clock),
            FakeThreadLoss(),
            Path(self.path.name + "-spool"),
            run_blocking=deferToThread,
        )

    @deferred
    async def submit_all(self, service: DeliveryService, key: str) -> None:
        """Submit a binding's deliveries, some of them twice, as a worker would."""
        for number in range(DELIVERIES):
            calls = [text_call(f"{key}{number}.{part}") for part in range(1 + number % 3)]
            for _ in range(1 + number % 2):
                await service.intake.submit(key, f"d{number}", delivery(*calls), None)

    def parts(self) -> dict[str, str]:
        """Return the state of every part by its text."""
        rows = self.database.read(
            "SELECT o.binding_key AS b, o.delivery_id AS d, p.part AS p, p.state AS s"
            " FROM outbox AS o JOIN outbox_parts AS p ON p.key = o.key"
        )
        return {f"{row['b']}{row['d'][1:]}.{row['p']}": row["s"] for row in rows}

    async def test_exactly_once_or_visible(self) -> None:
        """Each part is shown once if delivered, at most once if uncertain, and in order."""
        service = self.make()
        await service.startService()
        first = [self.submit_all(service, key) for key in BINDINGS]
        for _ in range(3):
            await deferLater(self.reactor, 0.1, lambda: None)
            await service.stopService()
            service = self.make()
            await service.startService()
        for submission in first:
            await submission
        for key in BINDINGS:
            await self.submit_all(service, key)
        while self.outbox.live_bindings():
            await deferLater(self.reactor, 0.02, lambda: None)
        await service.stopService()
        shown = Counter(text for _, text in self.server.shown)
        states = self.parts()
        self.assertEqual(len(states), len(BINDINGS) * DELIVERIES // 3 * 6)
        self.assertEqual(set(states.values()), {"delivered", "uncertain"})
        for text, state in states.items():
            if state == "delivered":
                self.assertEqual(shown[text], 1, text)
            else:
                self.assertLessEqual(shown[text], 1, text)
        for thread, key in enumerate(BINDINGS, 70):
            order = [text for place, text in self.server.shown if place == thread]
            wanted = [text for text in states if text[0] == key]
            wanted.sort(key=lambda text: [int(each) for each in text[1:].split(".")])
            self.assertEqual(order, [text for text in wanted if shown[text]])
