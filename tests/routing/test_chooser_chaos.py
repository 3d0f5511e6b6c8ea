"""Whatever happens in whatever order: nothing goes where it was not chosen to, or goes twice."""

from __future__ import annotations

from random import Random
from typing import Any

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred, fail

from pitelegram.errors import CertainlyUnsent, Refused, Uncertain
from pitelegram.routing import choosertexts
from pitelegram.routing.choosertexts import token_of
from pitelegram.testing.botapi import FakeBotApi
from pitelegram.testing.followers import FakeLink, Forward
from tests.routing.support import ALPHA, BETA, OWNER, jsonio
from tests.routing.test_chaos import Inbox, LockedInboxes
from tests.routing.test_chooser import ChooserCase

SPECS = {"a": ALPHA, "b": BETA}
FAULTY = ("sendMessage", "deleteForumTopic", "deleteMessage", "editMessageText")


class Telegram(FakeBotApi):
    """Fails now and then, and proves at each deletion that it was a right one."""

    def __init__(self, world: ChooserWorld) -> None:
        super().__init__()
        self.world = world
        self.keyboards: dict[int, list[str]] = {}
        self.gone: set[int] = set()

    def call(self, method: str, params: dict[str, Any], *rest: Any, **more: Any) -> Deferred[Any]:
        """Answer a call, or lose it, or lose its answer."""
        fault = self.world.random.random() if method in FAULTY and self.world.faulty else 1.0
        if method == "deleteForumTopic":
            self.world.check_deletion(params["message_thread_id"])
        if fault < 0.1:
            return fail(CertainlyUnsent(method, 0, "no network"))
        thread = params.get("message_thread_id")
        if thread in self.gone:
            words = "TOPIC_ID_INVALID" if method == "deleteForumTopic" else "thread not found"
            return fail(Refused(method, 400, f"Bad Request: {words}"))
        done = super().call(method, params, *rest, **more)
        if method == "deleteForumTopic":
            self.gone.add(params["message_thread_id"])
        done.addCallback(self._look, params)
        return done if fault >= 0.2 else fail(Uncertain(method, 502, "bad gateway"))

    def _look(self, answer: Any, params: dict[str, Any]) -> Any:
        rows = params.get("reply_markup", {}).get("inline_keyboard")
        if rows is not None:
            message_id = params.get("message_id") or answer["message_id"]
            self.keyboards[message_id] = [b["callback_data"] for row in rows for b in row]
        return answer


@attrs.define
class Word:
    """One message of the operator's.

    @ivar allowed: whom it may reach: the owners that its Thread had, and those chosen for it.
    @ivar may_end: it may end without reaching anybody.
    """

    thread: int | None
    text: str
    allowed: set[str] = attrs.field(factory=set)
    may_end: bool = False


class ChooserWorld(ChooserCase):
    """Two workers, an operator who writes anywhere and presses anything, and a faulty Telegram."""

    def setUp(self) -> None:
        """Nothing is left to clean up but what an example makes."""

    def begin(self, seed: int) -> None:
        """Start anew (one test method runs many examples)."""
        self.random, self.faulty = Random(seed), True
        self.telegram = Telegram(self)
        self.inboxes = {ALPHA: Inbox(), BETA: Inbox()}
        self.links: dict[str, FakeLink | None] = {"a": None, "b": None}
        self.words: dict[str, Word] = {}
        self.unowned = [97, 98, 99]
        self.wrong: list[str] = []
        super().setUp()
        self._cleanups.pop()

    def build(self) -> None:
        """The same Telegram and inboxes, whoever leads."""
        self.api = self.telegram
        self.probe = LockedInboxes(self)  # type: ignore[arg-type, assignment]
        super().build()

    # --- what happens ---------------------------------------------------------------------------

    def step(self, what: str) -> None:
        """One thing happens."""
        spec = self.random.choice("ab")
        link = self.links[spec]
        if what == "come" and (link is None or not link.connected):
            self.links[spec] = self.follow(spec)
        elif what == "cut" and link is not None:
            link.cut()
        elif what in ("write", "command", "start"):
            self.write(what)
        elif what == "press":
            self.press_something()
        elif what == "attach":
            self.attach(SPECS[spec])
        elif what == "restore":
            self.restore(SPECS[spec])
        elif what == "crash":
            self.crash()
        elif what == "wait":
            self.clock.advance(self.random.choice([0.6, 1.1, 4, 16, 61]))
        elif what == "hour":
            self.clock.advance(3700)
        elif link is not None and link.connected and link.waiting:
            self.answer(what, SPECS[spec], link.waiting[0])
        self.note_owners()

    def write(self, what: str) -> None:
        """The operator writes."""
        if what == "write":
            place = self.random.choice(self.unowned)
            if place in self.telegram.gone:
                self.unowned.remove(place)
                place = max(self.unowned, default=99) + 10
                self.unowned.append(place)
            word = Word(place, f"w{len(self.words)}")
        else:
            word = Word(None, f"/c{len(self.words)}" if what == "command" else "/start")
        key = f"{word.text}#{len(self.words)}"
        self.words[key] = word
        update = self.message(word.thread, word.text, date=round(self.clock.seconds()), caption=key)
        self.accept(update)
        self.note_owners()

    def unsettled(self) -> dict[str, Any]:
        """The rows of messages that are not over, by their word."""
        found = {}
        for row in self.journal.unsettled():
            message = jsonio.loads(row.body).get("message")
            if message is not None:
                found[message["caption"]] = row
        return found

    def note_owners(self) -> None:
        """Whoever has a Thread may get what waits in it."""
        for key in self.unsettled():
            word = self.words[key]
            owner = self.bindings.by_target(OWNER, word.thread) if word.thread else None
            if owner is not None:
                word.allowed.add(owner.binding_key)

    def press_something(self) -> None:
        """The operator presses any button that was ever shown."""
        if not self.telegram.keyboards:
            return
        message_id = self.random.choice(sorted(self.telegram.keyboards))
        buttons = self.telegram.keyboards[message_id]
        if buttons:
            self.press_one(message_id, self.random.choice(buttons))

    def restore(self, key: str) -> None:
        """The operator gives an unknown Thread to a worker, old messages and all."""
        asked = [c for c in self.choosers.all() if c.thread_id is not None and c.message_id]
        if asked:
            chooser = self.random.choice(asked)
            assert chooser.message_id is not None
            self.press_one(chooser.message_id, f"reroutenew:{chooser.chooser_id}:{token_of(key)}")

    def press_one(self, message_id: int, data: str) -> None:
        """Press one, and note what that allows."""
        chooser_id, _, token = data.partition(":")[2].partition(":")
        asked = next((c for c in self.choosers.all() if c.chooser_id == chooser_id), None)
        free = self.unsettled()
        about = [
            self.words[key]
            for key, row in free.items()
            if asked is not None
            and row.recipient is None
            and (row.seq == asked.source_seq or row.thread_id == asked.thread_id is not None)
        ]
        allowed = next((key for key in SPECS.values() if token_of(key) == token), None)
        # What is allowed before the press may be delivered within it.
        before = [set(word.allowed) for word in about]
        for word in about if allowed is not None else []:
            word.allowed.add(allowed)
        toast = self.press(message_id, data, None)
        if allowed is not None and toast not in (choosertexts.ROUTED, choosertexts.RESTORED):
            for word, earlier in zip(about, before, strict=True):
                word.allowed = earlier
        if toast == choosertexts.DISMISSED:
            for word in about:
                word.may_end = True

    def attach(self, key: str) -> None:
        """The operator gives a free Thread to a worker by command."""
        place = self.random.choice(self.unowned)
        if place not in self.telegram.gone and self.bindings.by_target(OWNER, place) is None:
            for word_key, row in self.unsettled().items():
                if row.thread_id == place and row.recipient is None:
                    self.words[word_key].allowed.add(key)
            self.successResultOf(self.threads.reassign(key, OWNER, place))

    def answer(self, what: str, key: str, forward: Forward) -> None:
        """A worker does something with its oldest forward."""
        text = forward.update["message"]["caption"]
        fresh = forward.delivery_id not in self.inboxes[key].admitted
        if what in ("accept", "lose-after"):
            if key not in self.words[text].allowed:
                self.wrong.append(f"{key} was not chosen for {text}")
            if fresh:
                self.inboxes[key].admitted[forward.delivery_id] = text
                self.inboxes[key].runs.append(text)
        if what == "accept":
            forward.settle()
        elif what in ("lose-after", "lose-before"):
            forward.lose()
        elif what == "refuse" and fresh:
            forward.settle("retryable")
        elif what == "never" and fresh:
            self.words[text].may_end = True
            forward.settle("terminal-rejected", "no")

    def crash(self) -> None:
        """The leader is killed: every connection ends; another one starts on the same store."""
        self.router.running = 0
        self.desk.stop()
        for link in self.links.values():
            if link is not None:
                link.leader = None
                link.connected = False
        for call in list(self.clock.getDelayedCalls()):
            call.cancel()
        self.build()
        self.router.startService()

    # --- what must hold -------------------------------------------------------------------------

    def check_deletion(self, thread: int) -> None:
        """A Thread that is deleted belongs to nobody, and no message waits in it."""
        if self.bindings.by_target(OWNER, thread) is not None:
            self.wrong.append("a bound Thread was deleted")
        for row in self.journal.unsettled():
            if row.kind == "message" and row.thread_id == thread:
                self.wrong.append("a message waits in a Thread that was deleted")

    def end(self) -> None:
        """All is well again: workers live, the operator chooses for everything."""
        self.faulty = False
        for _ in range(300):
            for spec, key in SPECS.items():
                link = self.links[spec]
                if link is None or not link.connected:
                    link = self.links[spec] = self.follow(spec)
                while link.waiting:
                    self.answer("accept", key, link.waiting[0])
            for chooser in self.choosers.all():
                if chooser.state == "sent" and chooser.message_id is not None:
                    data = f"reroute:{chooser.chooser_id}:{token_of(ALPHA)}"
                    self.press_one(chooser.message_id, data)
            if set(self.states()) <= {"settled", "failed"}:
                break
            self.clock.advance(5)
        self.stop()


EVENTS = st.sampled_from(
    ["write"] * 4
    + ["command", "command", "start"]
    + ["press"] * 5
    + ["accept"] * 4
    + ["come", "come", "cut", "attach", "restore", "restore", "crash", "wait", "wait", "hour"]
    + ["lose-after", "lose-before", "refuse", "never"]
)


class ChaosTests(ChooserWorld):
    """Never by guess, exactly once, and no bound Thread is deleted."""

    @given(events=st.lists(EVENTS, min_size=5, max_size=70), seed=st.integers(0, 2**32))
    @settings(max_examples=150, deadline=None)
    def test_only_where_chosen(self, events: list[str], seed: int) -> None:
        """Each row ends once: at a worker that was chosen for it, or as the operator was shown."""
        self.begin(seed)
        for event in events:
            self.step(event)
        self.end()
        self.assertEqual(set(self.states()) - {"settled", "failed"}, set())
        runs = self.inboxes[ALPHA].runs + self.inboxes[BETA].runs
        self.assertEqual(len(runs), len(set(runs)), "a message reached workers twice")
        expired = "hour" in events or events.count("wait") > 50
        for key in set(self.words) - set(runs):
            word = self.words[key]
            in_all = word.thread is None
            started = in_all and word.text == "/start" and events.count("start") > 1
            self.assertTrue(word.may_end or (in_all and expired) or started, key)
        left = {chooser.state for chooser in self.choosers.all()}
        self.assertLessEqual(left, {"cleaning"})
        self.assertEqual(self.wrong, [])
