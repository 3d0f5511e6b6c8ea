"""Whatever is lost in whatever order: each message reaches exactly one inbox, exactly once."""

from __future__ import annotations

from random import Random

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred, succeed
from zope.interface import implementer

from pitelegram.routing.interfaces import IInboxProbe
from pitelegram.testing.followers import FakeLink, Forward
from tests.routing.support import ALPHA, BETA, RoutingCase

SPECS = {"a": ALPHA, "b": BETA}


@attrs.define(eq=False)
class Inbox:
    """A worker's durable side: what it has admitted, and what ran."""

    admitted: dict[str, str] = attrs.field(factory=dict)
    runs: list[str] = attrs.field(factory=list)

    def admit(self, forward: Forward) -> None:
        """Admit a delivery once."""
        if forward.delivery_id not in self.admitted:
            text = forward.update["message"]["text"]
            self.admitted[forward.delivery_id] = text
            self.runs.append(text)


@implementer(IInboxProbe)
@attrs.define(eq=False)
class LockedInboxes:
    """A live worker holds its lock; else its inbox is looked into."""

    world: World

    def admitted(self, binding_key: str, delivery_id: str) -> Deferred[bool | None]:
        """See L{IInboxProbe.admitted}."""
        if self.world.registry.live(binding_key) is not None:
            return succeed(None)
        return succeed(delivery_id in self.world.inboxes[binding_key].admitted)


class World(RoutingCase):
    """Two workers that come, go, lose answers and exchange Threads."""

    def begin(self, seed: int) -> None:
        """Start anew (one test method runs many examples)."""
        self.setUp()
        self.random = Random(seed)
        self.inboxes = {ALPHA: Inbox(), BETA: Inbox()}
        self.links: dict[str, FakeLink | None] = {"a": None, "b": None}
        self.sent: list[str] = []
        self.probe = LockedInboxes(self)  # type: ignore[assignment]
        self.build()
        self.router.startService()

    def step(self, what: str) -> None:
        """One thing happens."""
        spec = self.random.choice("ab")
        link = self.links[spec]
        if what == "send":
            text = f"m{len(self.sent)}"
            self.sent.append(text)
            self.accept(self.message(self.random.choice([11, 12]), text))
        elif what == "come" and (link is None or not link.connected):
            self.links[spec] = self.follow(spec)
        elif what == "cut" and link is not None:
            link.cut()
        elif what == "swap":
            self.swap()
        elif what == "restart":
            self.crash()
        elif what == "wait":
            self.clock.advance(self.random.choice([0.6, 1.1, 4, 16, 61]))
        elif link is not None and link.connected and link.waiting:
            self.answer(what, SPECS[spec], link.waiting[0])

    def answer(self, what: str, key: str, forward: Forward) -> None:
        """A worker does something with its oldest forward."""
        if what in ("accept", "lose-after", "lie"):
            self.inboxes[key].admit(forward)
        if what == "accept":
            forward.settle()
        elif what in ("lose-after", "lose-before"):
            forward.lose()
        elif what == "lie":
            forward.settle("accepted", updateId=forward.update_id + 1)
        elif what == "refuse" and forward.delivery_id not in self.inboxes[key].admitted:
            forward.settle("retryable")

    def swap(self) -> None:
        """The two workers exchange their Threads."""
        targets = {key: self.bindings.get(key).thread_id for key in SPECS.values()}  # type: ignore[union-attr]
        self.give(ALPHA, 999)
        self.give(BETA, targets[ALPHA] or 11)
        self.give(ALPHA, targets[BETA] or 12)
        self.router.kick()

    def crash(self) -> None:
        """The leader is killed: every connection ends; another one starts on the same store."""
        dead = self.router
        dead.running = 0
        for link in self.links.values():
            if link is not None:
                link.leader = None
                link.connected = False
        for call in list(self.clock.getDelayedCalls()):
            call.cancel()
        self.build()
        self.router.startService()

    def end(self) -> None:
        """All is well again: workers live, answer everything, until nothing is left."""
        for spec in SPECS:
            link = self.links[spec]
            if link is None or not link.connected:
                self.links[spec] = self.follow(spec)
        for _ in range(400):
            for spec, key in SPECS.items():
                link = self.links[spec]
                assert link is not None
                while link.waiting:
                    self.answer("accept", key, link.waiting[0])
            if set(self.states()) <= {"settled", "failed"}:
                break
            self.clock.advance(5)
        self.successResultOf(self.router.stopService())


EVENTS = st.sampled_from(
    ["send"] * 4
    + ["accept"] * 4
    + ["come", "cut", "swap", "restart", "wait", "wait"]
    + ["lose-after", "lose-before", "lie", "refuse"]
)


class ChaosTests(World):
    """Exactly once."""

    @given(events=st.lists(EVENTS, min_size=5, max_size=60), seed=st.integers(0, 2**32))
    @settings(max_examples=60, deadline=None)
    def test_exactly_once(self, events: list[str], seed: int) -> None:
        """No message is lost, doubled, or given to two workers; only lies end in a failed row."""
        self.begin(seed)
        for event in events:
            self.step(event)
        self.end()
        failed = self.states().count("failed")
        self.assertEqual(set(self.states()) - {"settled", "failed"}, set())
        self.assertLessEqual(failed, events.count("lie"))
        runs = self.inboxes[ALPHA].runs + self.inboxes[BETA].runs
        self.assertEqual(len(runs), len(set(runs)), "a message ran twice")
        self.assertEqual(set(self.sent) - set(runs), set(), "a message is missing")
