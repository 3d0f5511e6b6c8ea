"""Followers that are not the process made for their spec: nothing of theirs is taken, nothing moves."""

from __future__ import annotations

from typing import Any

from pitelegram import errors
from pitelegram.bus.interfaces import Peer
from pitelegram.routing.claims import Claim
from pitelegram.routing.witness import Witness
from pitelegram.store.specs import Specs
from pitelegram.targets import TelegramTarget
from pitelegram.testing.bus import a_registration
from pitelegram.testing.followers import FakeLink
from tests.routing.support import ALPHA, BETA, OWNER, RoutingCase

REAL, OTHER = (4242, "4242:start:1"), (99, "99:start:7")


class WitnessCase(RoutingCase):
    """Two specs with a spawn each; two processes live."""

    def build(self) -> None:
        """As in the daemon, with the store's own record of the spawns."""
        self.births = dict([REAL, OTHER])
        self.specs = Specs(self.database)
        self.real = Witness(self.specs, self.births.get)
        for spec, name in (("a", "alpha"), ("b", "beta")):
            self.successResultOf(self.specs.create(spec, name, f"/projects/{name}"))
            self.successResultOf(self.specs.intend(f"spawn-{spec}", spec, b"c" * 32))
        super().build()

    def witness(self, claim: Claim, registration: dict[str, Any]) -> None:
        """The real one."""
        self.real.check(claim, registration)

    def record(self, spec: str, pid: int, birth: str) -> None:
        """The process of a spawn was made."""
        self.successResultOf(self.specs.made(f"spawn-{spec}", pid, birth))

    def connect(self, credential: str, pid: int | None) -> FakeLink:
        """Somebody who has proven a credential."""
        secret = f"spawn-{credential[-1]}" if credential != "shared" else "epoch-1"
        peer = Peer(credential=credential, secret_id=secret, pid=pid)
        return FakeLink(peer, leader=self.registry)

    def picture(self) -> Any:
        """Everything that a follower could move."""
        return (
            self.bindings.list(),
            {key: self.places.target_of(key) for key in (ALPHA, BETA)},
            {key: self.bindings.last_worker(key) for key in (ALPHA, BETA)},
            [(each.binding_key, each.generation, each.state) for each in self.registry.followers()],
            self.specs.list(),
            self.specs.live_spawns("a"),
        )

    def refused(self, link: FakeLink, **changes: Any) -> str:
        """It may not register, and nothing has moved; returns why."""
        before = self.picture()
        registration = a_registration(**{"ownerId": None, **changes})
        failing = self.registry.register(link, registration, False)
        why = str(self.failureResultOf(failing, errors.BusBadRequest).value)
        self.assertEqual(self.picture(), before)
        return why


class ManagedTests(WitnessCase):
    """With the credential of a spawn."""

    def test_not_known_yet(self) -> None:
        """Before a birth is recorded, the credential and a living process are enough."""
        self.register(self.connect("worker:a", 4242))
        self.assertIsNotNone(self.registry.live(ALPHA))

    def test_the_one_that_was_made(self) -> None:
        """The recorded process registers, and again after a lost connection."""
        self.record("a", *REAL)
        for _ in range(2):
            link = self.connect("worker:a", 4242)
            self.register(link)
            link.cut()

    def test_another_process(self) -> None:
        """A living process with the right credential that is not the recorded one is refused."""
        self.record("a", *REAL)
        self.follow()
        old = self.registry.live(ALPHA)
        assert old is not None
        why = self.refused(
            self.connect("worker:a", 99),
            pid=99,
            processBirthId="99:start:7",
            instanceId="99:1",
            previousInstanceId=old.instance_id,
        )
        self.assertTrue(why.startswith("continuity_unavailable"), why)
        self.assertIs(self.registry.live(ALPHA), old)
        self.assertTrue(old.link.connected)

    def test_wrong_births(self) -> None:
        """A birth that is not the process's own, and a process that is gone, are refused."""
        for recorded in (False, True):
            if recorded:
                self.record("a", *REAL)
            for changes in (
                {"processBirthId": "4242:start:2"},
                {"processBirthId": "99:start:7"},
                {"pid": 99, "processBirthId": "4242:start:1"},
                {"pid": 7, "processBirthId": "7:start:1"},
            ):
                link = self.connect("worker:a", None)
                self.assertIn("continuity_unavailable", self.refused(link, **changes))

    def test_not_the_peer(self) -> None:
        """Somebody who speaks for the recorded process without being it is refused."""
        self.record("a", *REAL)
        self.assertIn("pid", self.refused(self.connect("worker:a", 99)))

    def test_other_spec(self) -> None:
        """The process of one spec is not that of another, with either credential."""
        self.record("a", *REAL)
        self.record("b", *OTHER)
        link = self.connect("worker:b", 4242)
        self.assertIn("continuity_unavailable", self.refused(link))
        self.assertIn("bindingKey", self.refused(link, bindingKey=ALPHA))
        self.assertIn("ownerId", self.refused(link, ownerId="worker:alpha"))

    def test_ended_spawn(self) -> None:
        """A credential whose spawn has ended, or was never there, is nobody's."""
        self.successResultOf(self.specs.ended("spawn-a", "exit code 0"))
        self.assertIn("continuity_unavailable", self.refused(self.connect("worker:a", 4242)))

    def test_gone_before_it_was_looked_at(self) -> None:
        """Nobody is the process whose birth could not be seen any more."""
        self.record("a", 4242, "gone")
        self.assertIn("continuity_unavailable", self.refused(self.connect("worker:a", 4242)))

    def test_restored_later(self) -> None:
        """After impostors the right one still finds everything as it was."""
        self.record("a", *REAL)
        target = self.places.target_of(ALPHA)
        self.refused(self.connect("worker:a", 99), pid=99, processBirthId="99:start:7")
        answer = self.register(self.connect("worker:a", 4242))
        self.assertEqual(TelegramTarget.from_json(answer["target"]), target)
        self.assertEqual(self.successResultOf(self.specs.registered("spawn-a", *REAL)), None)


class SharedTests(WitnessCase):
    """With the secret of the epoch."""

    def test_cannot_take_a_managed_place(self) -> None:
        """It moves nothing of a managed worker, by whatever name it asks."""
        self.record("a", *REAL)
        self.follow()
        old = self.registry.live(ALPHA)
        assert old is not None
        for changes in (
            {"kind": "managed"},
            {"kind": "managed", "bindingKey": ALPHA},
            {"kind": "attached", "bindingKey": ALPHA},
            {"kind": "attached", "ownerId": "worker:alpha"},
            {"kind": "attached", "profileKey": "worker:a"},
            {"kind": "attached", "target": {"chatId": OWNER, "threadId": 11}},
            {
                "kind": "attached",
                "target": {"chatId": OWNER, "threadId": 11},
                "previousInstanceId": old.instance_id,
                "processBirthId": old.birth.birth,
            },
        ):
            link = self.connect("shared", 99)
            merged = {"pid": 99, "processBirthId": "99:start:7", "cwd": "/projects/alpha"}
            self.refused(link, **{**merged, **changes})
        self.assertIs(self.registry.live(ALPHA), old)

    def test_borrowed_birth(self) -> None:
        """Another process does not replace an attached worker by naming that one's birth."""
        mine = self.connect("shared", 4242)
        first = self.register(mine, kind="attached", cwd="/x", profileKey="manual:1")
        target = {"chatId": OWNER, "threadId": 55}
        self.give(first["bindingKey"], 55)
        mine.registration["target"] = target  # type: ignore[index]
        why = self.refused(
            self.connect("shared", 99),
            kind="attached",
            pid=99,
            cwd="/y",
            target=target,
            instanceId="99:1",
            previousInstanceId=first["instanceId"],
        )
        self.assertIn("live", why)
        self.assertTrue(mine.connected)


class SourceTests(WitnessCase):
    """What a worker says of its own keys."""

    def test_stripped(self) -> None:
        """Neither registration nor heartbeat brings a name like ours, at any depth."""
        link = self.connect("worker:a", 4242)
        answer = self.register(
            link, stableKey="wsk1_" + "0" * 64, more=[{"STABLE-KEY.version": 1, "kept": 2}]
        )
        self.assertNotIn("stableKey", answer)
        self.assertEqual(answer["more"], [{"kept": 2}])
        self.registry.heartbeat(link, {"activity": "idle", "meta": {"stable_key": "x", "n": [1]}})
        live = self.registry.live(ALPHA)
        assert live is not None
        self.assertEqual(live.state, {"activity": "idle", "meta": {"n": [1]}})
