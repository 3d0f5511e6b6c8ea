"""One chat, five workers that say everything at once, and a Telegram that slows them down."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.botapi import limits
from pitelegram.botapi.limits import SendGate
from pitelegram.delivery.service import DeliveryService
from pitelegram.errors import CertainlyUnsent, Refusal
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.routing.busleader import BusLeader
from pitelegram.routing.owners import MessageOwners
from pitelegram.routing.turns import Turns
from pitelegram.routing.weights import SharedActions
from pitelegram.store.bindings import Bindings
from pitelegram.store.inbox import Inbox
from pitelegram.store.leadership import Leadership
from pitelegram.store.outbox import Outbox
from pitelegram.targets import TelegramTarget
from pitelegram.testing.botapi import Call, FakeBotApi
from pitelegram.testing.delivery import FakeThreadLoss
from pitelegram.testing.stores import leader_database, worker_database
from pitelegram.worker.chataction import ChatAction
from pitelegram.worker.posting import Limited, Poster
from pitelegram.worker.previews import Canvas, Previews
from pitelegram.worker.standin import StandIn
from pitelegram.worker.trying import Trying
from tests.delivery.world import OWNER, delivery, text_call

KEYS = "abcde"
DELIVERIES, PARTS = 6, 2
STEP = 0.05
ROUND = 400
"""Steps between two answers of a worker."""

LATENCY = 0.15
FLOODS = ((12.0, 22.0), (40.0, 65.0), (80.0, 95.0))
"""When the server takes nothing, in seconds from the beginning."""

DRAFTS = ("sendMessageDraft", "sendRichMessageDraft")


class Server:
    """Answers a moment later, and with 429 while it is flooded; knows every call that it got.

    @ivar calls: C{(seconds, method, text)}, refused ones included.
    @ivar taken: the same without the refused ones.
    @ivar told_until: the end of the flood limit that the last refusal named, once that had arrived.
    @ivar disobeyed: calls before that.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.calls: list[tuple[float, str, str]] = []
        self.taken: list[tuple[float, str, str]] = []
        self.told_until = 0.0
        self.disobeyed = 0
        self._ids = 0

    def answer(self, call: Call) -> Any:
        """Take a call or refuse it."""
        now = self.clock.seconds()
        seen = (now, call.method, str(call.params.get("text", "")))
        self.calls.append(seen)
        self.disobeyed += now < self.told_until - 1e-6
        until = next((end for begin, end in FLOODS if begin <= now < end), None)
        result: Deferred[Any] = Deferred()
        if until is None:
            self.taken.append(seen)
            self._ids += 1
            message = {
                "message_id": self._ids,
                "message_thread_id": call.params.get("message_thread_id"),
            }
            self.clock.callLater(LATENCY, result.callback, message)
        else:
            self.clock.callLater(LATENCY, self._refuse, result, call.method, until)
        return result

    def _refuse(self, result: Deferred[Any], method: str, until: float) -> None:
        self.told_until = until
        left = until - self.clock.seconds()
        result.errback(CertainlyUnsent(method, 429, "Too Many Requests", max(left, 0.0)))

    def most(self, methods: tuple[str, ...], window: float) -> int:
        """Return the most calls of some methods that were made in any stretch of so many seconds."""
        times = [at for at, method, _ in self.calls if method in methods]
        return max(
            (sum(1 for at in times if begin <= at < begin + window) for begin in times), default=0
        )


class Worker:
    """What a busy worker says beside its answers, through a real leader's front door."""

    def __init__(self, case: BudgetTests, key: str, thread: int) -> None:
        self.key, self.clock = key, case.clock
        self.target = {"chatId": OWNER, "threadId": thread}
        self.registration = {"instanceId": key}
        self.leader = case.leader
        self.link = SimpleNamespace(key=key, capabilities=frozenset())
        self.asked: list[str] = []
        self.shown: list[str] = []
        database = worker_database(case.clock)
        case.addCleanup(database.stopService)
        random = Random(thread)
        trying = Trying(case.clock, lambda: self)  # type: ignore[arg-type,return-value]
        stand_in = StandIn(case.clock, random, Inbox(database), trying, lambda: True)
        self.typing = ChatAction(case.clock, trying, lambda: self.target)
        self.previews = Previews(
            case.clock,
            random,
            Canvas(trying, stand_in, lambda: self.target),
            {"draftPreviews": True, "rendering": "rich"}.__getitem__,
            lambda: True,
        )
        self.poster = Poster(lambda: self, lambda _: Path("none"))  # type: ignore[arg-type,return-value]

    def call_api(self, method: str, params: Any, options: Any = None, files: Any = ()) -> Any:
        """Call as over the bus."""
        return self.leader.call_api(self.link, "r", method, params, options or {}, files)  # type: ignore[arg-type]

    @deferred
    async def ask(self, text: str) -> None:
        """Ask a question, as often as it takes."""
        while True:
            outcome = await self.poster.question(self.target, text, {"inline_keyboard": []})
            if not isinstance(outcome, Limited):
                self.asked.append(text)
                return
            await sleep(self.clock, min(outcome.seconds, 1.0))

    @deferred
    async def be_active(self, text: str) -> None:
        """Say and change what nobody waits for, once."""
        place = {"chat_id": OWNER, "message_thread_id": self.target["threadId"]}
        try:
            message = await self.call_api("sendMessage", {**place, "text": text})
            self.shown.append(text)
            where = {"chat_id": OWNER, "message_id": message["message_id"]}
            await self.call_api("editMessageText", {**where, "text": text + "!"})
        except Refusal:
            pass


class BudgetTests(SynchronousTestCase):
    """Who is heard when not everybody can be."""

    def setUp(self) -> None:
        """A leader with five workers in one chat."""
        self.clock = Clock()
        database = leader_database(self.clock)
        self.addCleanup(database.stopService)
        self.outbox, self.bindings = Outbox(database), Bindings(database)
        self.server = Server(self.clock)
        self.api = FakeBotApi()
        for method in (
            "sendMessage",
            "editMessageText",
            "sendChatAction",
            "deleteMessage",
            *DRAFTS,
        ):
            self.api.script(method, *([self.server.answer] * 5000))
        self.gate = SendGate(self.clock)
        threads = {key: 70 + number for number, key in enumerate(KEYS)}
        for key, thread in threads.items():
            self.successResultOf(self.bindings.ensure(key, "managed", f"/{key}"))
            self.successResultOf(self.bindings.set_target(key, OWNER, thread, None))
        self.delivery = DeliveryService(
            self.clock,
            Random(3),
            self.outbox,
            self.bindings,
            Leadership(database),
            self.api,
            self.gate,
            FakeThreadLoss(),
            Path(self.mktemp()),
            run_blocking=lambda work: self.fail("no files here"),
        )
        unused: Any = None
        self.leader = BusLeader(
            epoch="e",
            profile="default",
            registry=SimpleNamespace(  # type: ignore[arg-type]
                of_link=lambda link: SimpleNamespace(binding_key=link.key, instance_id=link.key)
            ),
            places=SimpleNamespace(  # type: ignore[arg-type]
                target_of=lambda key: TelegramTarget(OWNER, threads[key])
            ),
            owners=MessageOwners(self.bindings, self.clock),
            bindings=self.bindings,
            api=self.api,
            gate=self.gate,
            delivery=unused,
            uploads_of=unused,
            downloads=unused,
            random_bytes=unused,
            threads=unused,
            titles=unused,
            settings=unused,
            turns=Turns(self.gate, self.clock),
            actions=SharedActions(self.clock),
        )
        self.workers = [Worker(self, key, thread) for key, thread in threads.items()]
        self.successResultOf(self.delivery.startService())
        self.addCleanup(self.stop)

    def stop(self) -> None:
        """End everything."""
        for worker in self.workers:
            worker.typing.stop()
            worker.previews.stop()
        stopping = self.delivery.stopService()
        self.clock.advance(10)
        self.successResultOf(stopping)

    def finals(self) -> list[str]:
        """The answers as the chat shows them, in order."""
        return [text for _, method, text in self.server.taken if text.startswith("final")]

    def answer(self, number: int) -> None:
        """Every worker's run ends with an answer."""
        for key in KEYS:
            calls = [text_call(f"final {key} {number}.{part}") for part in range(PARTS)]
            taking = self.delivery.intake.submit(key, f"d{number}", delivery(*calls), None)
            self.successResultOf(taking)

    def storm(self, noisy: bool, seconds: float = 300.0) -> float:
        """Let it go on until every answer is there; returns how long that took."""
        wanted = len(KEYS) * DELIVERIES * PARTS
        ticks = 0
        while len(self.finals()) < wanted and self.clock.seconds() < seconds:
            if ticks % ROUND == 0 and ticks // ROUND < DELIVERIES:
                self.answer(ticks // ROUND)
            if noisy:
                self.noise(ticks)
            self.clock.advance(STEP)
            ticks += 1
        return self.clock.seconds()

    def noise(self, ticks: int) -> None:
        """Everything beside the answers."""
        for worker in self.workers:
            if ticks % ROUND == 0:
                worker.typing.show(True)
                worker.previews.run_started()
                worker.ask(f"question {worker.key} {ticks}")
            if ticks % 10 == 0:
                worker.previews.text_delta(f"some words {ticks} ")
            if ticks % 30 == 0:
                worker.be_active(f"active {worker.key} {ticks}")

    def test_answers(self) -> None:
        """Each part arrives once and in order, whatever else is said."""
        self.storm(noisy=True)
        finals = self.finals()
        self.assertEqual(len(finals), len(KEYS) * DELIVERIES * PARTS)
        self.assertEqual(set(Counter(finals).values()), {1})
        for key in KEYS:
            own = [text for text in finals if text.startswith(f"final {key}")]
            self.assertEqual(own, sorted(own))
        self.assertEqual(self.outbox.counts()["uncertain"], 0)

    def test_questions(self) -> None:
        """Every question is asked, once."""
        self.storm(noisy=True)
        self.clock.pump([STEP] * 600)
        for worker in self.workers:
            self.assertEqual(len(worker.asked), len(set(worker.asked)))
            self.assertGreaterEqual(len(worker.asked), DELIVERIES)
        sent = Counter(text for _, _, text in self.server.taken if text.startswith("question"))
        self.assertEqual(set(sent.values()), {1})
        self.assertEqual(sum(sent.values()), sum(len(worker.asked) for worker in self.workers))

    def test_noise_costs_the_answers_little(self) -> None:
        """What nobody waits for does not make answers late: only questions take turns with them."""
        noisy = self.storm(noisy=True)
        questions = sum(1 for _, _, text in self.server.taken if text.startswith("question"))
        self.stop()
        self.doCleanups()
        self.setUp()
        quiet = self.storm(noisy=False)
        self.assertLess(noisy - quiet, questions / limits.CHAT_RATE + 5)

    def test_obeys(self) -> None:
        """Nothing is called while a flood limit lasts that was told, and of each kind no more than may."""
        self.storm(noisy=True)
        self.assertEqual(self.server.disobeyed, 0)
        refused = len(self.server.calls) - len(self.server.taken)
        self.assertLessEqual(refused, len(FLOODS) * (len(KEYS) + 12))
        messages = ("sendMessage", "editMessageText", "deleteMessage", *DRAFTS)
        for window in (5.0, 20.0, 60.0):
            for methods, burst, rate in (
                (messages, limits.CHAT_BURST, limits.CHAT_RATE),
                (("editMessageText",), limits.EDIT_BURST, limits.EDIT_RATE),
                (DRAFTS, limits.DRAFT_BURST, limits.DRAFT_RATE),
                (("sendChatAction",), limits.ACTION_BURST, limits.ACTION_RATE),
            ):
                self.assertLessEqual(
                    self.server.most(methods, window), burst + rate * window + 1, methods
                )

    def test_who_starves(self) -> None:
        """What nobody waits for takes what the others leave, and is there when they are silent."""
        self.storm(noisy=True)
        kinds = Counter(method for _, method, _ in self.server.taken)
        waited_for = sum(
            1 for _, _, text in self.server.taken if text.startswith(("final", "question"))
        )
        rest = sum(kinds.values()) - kinds["sendChatAction"] - waited_for
        self.assertGreater(waited_for, 2 * rest)
        self.assertGreater(kinds["sendChatAction"], 5 * 20)
        begin = len(self.server.taken)
        for ticks in range(1200):
            if ticks % 10 == 0:
                self.workers[0].previews.text_delta(f"more words {ticks} ")
            self.clock.advance(STEP)
        late = Counter(method for _, method, _ in self.server.taken[begin:])
        self.assertGreater(late["sendRichMessageDraft"], 15)
