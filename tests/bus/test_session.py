"""The real leader's end meets the real follower's end, in memory."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from pitelegram import errors
from pitelegram.bus.follower import BusClient
from pitelegram.bus.interfaces import (
    IBusFollower,
    IBusLeader,
    ICredentials,
    IEndpoint,
    IFollowerLink,
    ILeaderLink,
)
from pitelegram.bus.leader import BusServer
from pitelegram.bus.leaderlink import LeaderLink
from pitelegram.testing.bus import (
    CREDENTIAL,
    SECRET,
    FakeBusFollower,
    FakeBusLeader,
    FixedCredentials,
    FixedEndpoint,
    MemoryWire,
    no_peer,
)

UPDATE = {"update_id": 7, "message": {"text": "hello", "unknown": {"kept": True}}}


class Session(SynchronousTestCase):
    """A server and a client on one clock."""

    def setUp(self) -> None:
        """Build both ends; nothing is connected yet."""
        self.clock = Clock()
        self.leader = FakeBusLeader()
        self.follower = FakeBusFollower()
        self.server = BusServer(
            path=Path("/nowhere"),
            credentials=FixedCredentials(),
            leader=self.leader,
            reactor=None,
            clock=self.clock,
            random_bytes=Random(1).randbytes,
            build="test-leader",
            peer_ids=no_peer,
        )
        self.wire = MemoryWire(self.server)
        self.endpoint = FixedEndpoint(("/nowhere", SECRET))
        self.client = BusClient(
            endpoint=self.endpoint,
            credential=CREDENTIAL,
            follower=self.follower,
            reactor=None,
            clock=self.clock,
            random=Random(2),
            build="test-follower",
            random_bytes=Random(3).randbytes,
            connect=self.wire.connect,
        )
        self.addCleanup(self.stop)

    def start(self) -> Any:
        """Connect and register; returns the leader's link."""
        self.client.startService()
        self.wire.flush()
        return self.leader.links[-1]

    def stop(self) -> None:
        """Stop the client; nothing may be left on the clock."""
        if self.client.running:
            stopping = self.client.stopService()
            self.wire.flush()
            self.successResultOf(stopping)
        self.wire.cut()
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def result(self, asking: Deferred[Any]) -> Any:
        """Move bytes, then take a result."""
        self.wire.flush()
        return self.successResultOf(asking)

    def failure(self, asking: Deferred[Any], *kinds: type[Exception]) -> Any:
        """Move bytes, then take a failure."""
        self.wire.flush()
        return self.failureResultOf(asking, *kinds).value

    def named(self, calls: list[tuple[Any, ...]], name: str) -> list[tuple[Any, ...]]:
        """The calls of one name."""
        return [call[1:] for call in calls if call[0] == name]

    def advance(self, seconds: float, step: float = 0.05) -> None:
        """Let time pass, moving bytes all the while."""
        for _ in range(round(seconds / step)):
            self.clock.advance(step)
            self.wire.flush()


class InterfaceTests(Session):
    """Fakes and real objects provide what they say."""

    def test_all(self) -> None:
        """Every object of the bus provides its interface."""
        link = self.start()
        verifyObject(IFollowerLink, link)
        verifyObject(ILeaderLink, self.client.link)
        verifyObject(IBusLeader, self.leader)
        verifyObject(IBusFollower, self.follower)
        verifyObject(ICredentials, FixedCredentials())
        verifyObject(IEndpoint, self.endpoint)


class RegistrationTests(Session):
    """From connecting to heartbeats."""

    def test_registered(self) -> None:
        """Handshake, registration and the first heartbeat follow each other."""
        link = self.start()
        self.assertEqual(link.peer.credential, CREDENTIAL)
        self.assertEqual(link.peer.secret_id, "spawn-1")
        (registration,) = self.named(self.follower.calls, "registered")[0]
        self.assertEqual(registration["registrationGeneration"], "g1")
        self.assertEqual(registration, link.registration)
        self.assertEqual(len(self.named(self.leader.calls, "heartbeat")), 1)
        self.assertIsNotNone(self.client.link.roster)

    def test_heartbeat_each_second(self) -> None:
        """One heartbeat a second, and one soon after each change, joined within 50 ms."""
        self.start()
        self.advance(3.2)
        self.assertEqual(len(self.named(self.leader.calls, "heartbeat")), 4)
        self.advance(0.3)
        self.follower.current_state = {"activity": "active"}
        for _ in range(5):
            self.client.link.heartbeat_now()
        self.advance(0.1)
        beats = self.named(self.leader.calls, "heartbeat")
        self.assertEqual(len(beats), 5)
        self.assertEqual(beats[-1], ({"activity": "active"},))

    def test_no_heartbeat_before_the_inbox(self) -> None:
        """Heartbeats wait until the worker has opened its inbox; a forward till then comes back."""
        opening: Deferred[None] = Deferred()
        self.follower.answers["registered"] = opening
        link = self.start()
        self.assertEqual(self.named(self.leader.calls, "heartbeat"), [])
        early = self.result(link.forward("d1", 7, "message", UPDATE))
        self.assertEqual(early["settlement"], "retryable")
        opening.callback(None)
        self.wire.flush()
        self.assertEqual(len(self.named(self.leader.calls, "heartbeat")), 1)

    def test_stale_generation_registers_again(self) -> None:
        """A leader that does not know the generation any more gets a new registration."""
        self.start()
        self.leader.answers["heartbeat"] = errors.StaleGeneration("who?")
        self.advance(1.0)
        del self.leader.answers["heartbeat"]
        self.advance(1.0)
        self.assertEqual(len(self.wire.pumps), 1)
        self.assertEqual(self.client.link.registration["registrationGeneration"], "g2")

    def test_refused_registration_backs_off(self) -> None:
        """A refused registration is tried again with growing pauses, never in a hot loop."""
        self.leader.answers["register"] = errors.BusBadRequest("a live worker has this key")
        self.start()
        self.advance(20.0)
        tries = len(self.named(self.leader.calls, "register"))
        self.assertTrue(4 <= tries <= 14, tries)

    def test_lost_connection_comes_back(self) -> None:
        """Both sides hear of the loss; the follower connects and registers anew."""
        link = self.start()
        self.wire.cut()
        self.assertEqual(self.leader.lost_links, [link])
        self.assertFalse(link.connected)
        self.assertEqual(self.named(self.follower.calls, "lost"), [()])
        self.advance(1.0)
        self.assertTrue(self.leader.links[-1].connected)
        self.assertIsNot(self.leader.links[-1], link)

    def test_no_leader(self) -> None:
        """Without a leader, and with a dead socket, it keeps looking and finds the new one."""
        self.endpoint.place = None
        self.client.startService()
        self.advance(5.0)
        self.wire.refusing = True
        self.endpoint.place = ("/nowhere", SECRET)
        self.advance(10.0)
        self.assertEqual(self.leader.links, [])
        self.wire.refusing = False
        self.advance(6.0)
        self.assertEqual(len(self.leader.links), 1)
        self.flushLoggedErrors(ConnectionRefusedError)

    def test_silent_leader(self) -> None:
        """A leader that does not answer heartbeats for five seconds is left and looked for anew."""
        link = self.start()
        for _ in range(130):
            self.clock.advance(0.05)
        self.assertTrue(self.client.link is None)
        self.advance(2.0)
        self.assertIsNot(self.leader.links[-1], link)

    def test_stop(self) -> None:
        """Stopping closes the link; the leader hears of it."""
        link = self.start()
        stopping = self.client.stopService()
        self.wire.flush()
        self.successResultOf(stopping)
        self.assertEqual(self.leader.lost_links, [link])

    def test_disconnect(self) -> None:
        """After a disconnect the old generation is stale and no loss is reported."""
        link = self.start()
        outcome = self.result(self.client.link.disconnect("quit", True))
        self.assertEqual(outcome, {"thread": "kept"})
        self.assertEqual(self.named(self.leader.calls, "disconnect"), [("quit", True)])
        self.failure(self.client.link.call_api("getMe", {}), errors.StaleGeneration)
        self.wire.cut()
        self.assertEqual(self.leader.lost_links, [])
        self.assertIsNone(link.registration)


class HandshakeTests(Session):
    """Nobody speaks before both have proven themselves."""

    def refused(self) -> None:
        """Start, and see that nothing got through."""
        self.client.startService()
        self.wire.flush()
        self.assertEqual(self.leader.calls, [])
        self.assertEqual(self.follower.calls, [])

    def test_wrong_secret(self) -> None:
        """A follower with another secret distrusts the leader and sends no proof."""
        self.endpoint.place = ("/nowhere", b"w" * 32)
        self.refused()

    def test_unknown_credential(self) -> None:
        """A credential that nobody spawned is refused."""
        self.client.credential = "worker:ffff"
        self.refused()

    def test_any_of_the_secrets(self) -> None:
        """The follower's proof is compared with every candidate, and the id of that one is kept."""
        self.server.credentials.known[CREDENTIAL].append(("spawn-0", b"o" * 32))
        link = self.start()
        self.assertEqual(link.peer.secret_id, "spawn-1")

    def test_silent_peer(self) -> None:
        """A connection that says nothing is closed after five seconds."""
        idle = LeaderLink(self.follower, self.clock)
        self.wire.join(idle)
        self.advance(4.9)
        self.assertFalse(idle.gone.fired)
        self.advance(0.2)
        self.assertTrue(idle.gone.fired)


class ForwardTests(Session):
    """What the leader asks."""

    def test_kinds(self) -> None:
        """Each kind of update has its command; the receipt carries both ids."""
        link = self.start()
        for kind in ("message", "edited_message", "callback_query", "message_reaction"):
            answer = self.result(link.forward(f"d-{kind}", 7, kind, UPDATE))
            self.assertEqual(
                answer,
                {
                    "settlement": "accepted",
                    "receipt": {"deliveryId": f"d-{kind}", "updateId": 7},
                    "reason": "",
                },
            )
        self.assertEqual(
            [call[2] for call in self.named(self.follower.calls, "admit")],
            ["message", "edited_message", "callback_query", "message_reaction"],
        )

    def test_bytes(self) -> None:
        """Stored JSON travels as it is."""
        link = self.start()
        body = b'{"update_id": 7, "message": {"text": "\xc3\xa4"}}'
        self.result(link.forward("d", 7, "message", body))
        self.assertEqual(
            self.named(self.follower.calls, "admit")[0][3],
            {"update_id": 7, "message": {"text": "ä"}},
        )

    def test_big_update(self) -> None:
        """An update of some megabytes passes."""
        link = self.start()
        update = {"message": {"text": "🛠" * 1_000_000}}
        self.result(link.forward("d", 7, "message", update))
        self.assertEqual(self.named(self.follower.calls, "admit")[0][3], update)

    def test_too_big_update(self) -> None:
        """An update over 16 MiB fails alone; the connection stays."""
        link = self.start()
        huge = {"message": {"text": "x" * (16 * 1024 * 1024)}}
        self.failure(link.forward("d", 7, "message", huge), errors.BusBadRequest)
        self.result(link.forward("d", 7, "message", UPDATE))

    def test_failing_inbox(self) -> None:
        """A worker that cannot store answers retryable; the connection stays."""
        link = self.start()
        self.follower.answers["admit"] = RuntimeError("disk")
        answer = self.result(link.forward("d", 7, "message", UPDATE))
        self.assertEqual(answer["settlement"], "retryable")
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)
        self.assertTrue(link.connected)

    def test_wrong_recipient(self) -> None:
        """A forward for another instance, generation or binding is stale, and not admitted."""
        link = self.start()
        right = link.registration
        for key in ("instanceId", "registrationGeneration", "bindingKey"):
            link.registration = {**right, key: "other"}
            self.failure(link.forward("d", 7, "message", UPDATE), errors.StaleGeneration)
        link.registration = right
        self.assertEqual(self.named(self.follower.calls, "admit"), [])

    def test_no_answer_in_time(self) -> None:
        """After 30 s the outcome is unknown; the late answer disturbs nothing."""
        link = self.start()
        late: Deferred[Any] = Deferred()
        self.follower.answers["admit"] = late
        asking = link.forward("d", 7, "message", UPDATE)
        self.advance(29.5)
        self.assertNoResult(asking)
        self.advance(1.0)
        self.failure(asking, errors.LinkLost)
        late.callback(("accepted", ""))
        self.wire.flush()
        self.assertTrue(link.connected)

    def test_lost_under_way(self) -> None:
        """A cut connection fails every unanswered call as unknown."""
        link = self.start()
        self.follower.answers["admit"] = Deferred()
        asking = link.forward("d", 7, "message", UPDATE)
        mine = self.client.link
        self.leader.answers["call_api"] = Deferred()
        theirs = mine.call_api("sendMessage", {})
        self.wire.flush()
        self.wire.cut()
        self.failureResultOf(asking, errors.LinkLost)
        self.failureResultOf(theirs, errors.LinkLost)
        self.failureResultOf(link.forward("d", 7, "message", UPDATE), errors.LinkLost)

    def test_control_and_the_rest(self) -> None:
        """Control, shutdown, target and confirmations arrive with their arguments."""
        link = self.start()
        self.follower.answers["control"] = {"state": 1}
        self.assertEqual(self.result(link.control("r1", {"type": "get_state"})), {"state": 1})
        self.result(link.shutdown("drain", 5000))
        self.result(link.replace_target({"chatId": 1, "threadId": 2}, None, "created"))
        self.result(link.confirm_settled(["a", "b"]))
        self.assertEqual(
            [call for call in self.follower.calls if call[0] != "registered"],
            [
                ("control", "r1", {"type": "get_state"}),
                ("shutdown", "drain", 5000),
                ("replace_target", {"chatId": 1, "threadId": 2}, None, "created"),
                ("confirm_settled", ["a", "b"]),
            ],
        )

    def test_control_of_another_registration(self) -> None:
        """Nothing is executed that is meant for another instance or generation."""
        link = self.start()
        right = link.registration
        for key in ("instanceId", "registrationGeneration"):
            link.registration = {**right, key: "other"}
            self.failure(link.control("r", {"type": "abort"}), errors.StaleGeneration)
            self.failure(link.shutdown("abort", 5000), errors.StaleGeneration)
            moving = link.replace_target({"chatId": 1}, None, "moved")
            self.failure(moving, errors.StaleGeneration)
        link.registration = right
        self.assertEqual([call[0] for call in self.follower.calls], ["registered"])

    def test_control_refused(self) -> None:
        """A refusal crosses with its code and fields."""
        link = self.start()
        self.follower.answers["control"] = errors.Refusal("unsupported", "no", extra=3)
        refusal = self.failure(link.control("r", {"type": "bash"}), errors.Refusal)
        self.assertEqual(
            (refusal.code, str(refusal), refusal.fields), ("unsupported", "no", {"extra": 3})
        )


class CallTests(Session):
    """What a follower asks."""

    def test_calls(self) -> None:
        """Each call reaches the leader with its arguments and its answer comes back."""
        self.start()
        mine = self.client.link
        self.leader.answers["call_api"] = {"message_id": 5}
        self.assertEqual(
            self.result(mine.call_api("sendMessage", {"text": "x"}, {"aggregate": True})),
            {"message_id": 5},
        )
        found = self.result(mine.download_file("F"))
        self.assertEqual((found["path"], found["size"]), ("/p", 1))
        self.assertEqual(self.result(mine.submit_delivery("d.1", {"kind": "final"})), "accepted")
        self.assertEqual(
            self.named(self.leader.calls, "call_api"),
            [("sendMessage", {"text": "x"}, {"aggregate": True}, [])],
        )

    def test_refusal(self) -> None:
        """A refusal of the Bot API keeps its fields."""
        self.start()
        self.leader.answers["call_api"] = errors.Refusal(
            "api", "Bad", errorCode=400, description="Bad"
        )
        refusal = self.failure(self.client.link.call_api("sendMessage", {}), errors.Refusal)
        self.assertEqual(refusal.code, "api")
        self.assertEqual(refusal.fields, {"errorCode": 400, "description": "Bad"})

    def test_collision(self) -> None:
        """A refused delivery is a refusal, not a broken link."""
        self.start()
        self.leader.answers["submit_delivery"] = errors.Refusal("delivery-id-collision", "other")
        refusal = self.failure(self.client.link.submit_delivery("d", {}), errors.Refusal)
        self.assertEqual(refusal.code, "delivery-id-collision")

    def test_bug_inside(self) -> None:
        """A bug of the leader is logged there, answered as INTERNAL, and ends nothing."""
        link = self.start()
        self.leader.answers["call_api"] = ZeroDivisionError("bug")
        error = self.failure(self.client.link.call_api("sendMessage", {}), errors.BusError)
        self.assertEqual(error.code, "INTERNAL")
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
        self.assertTrue(link.connected)

    def test_fenced(self) -> None:
        """A leader whose store belongs to a newer one says that it does not lead."""
        self.start()
        self.leader.answers["submit_delivery"] = errors.Fenced("newer")
        self.failure(self.client.link.submit_delivery("d", {}), errors.NotLeader)

    def test_big_answer(self) -> None:
        """An answer of megabytes passes; one over 16 MiB becomes a refusal."""
        link = self.start()
        self.leader.answers["call_api"] = {"text": "€" * 2_000_000}
        answer = self.result(self.client.link.call_api("x", {}))
        self.assertEqual(len(answer["text"]), 2_000_000)
        self.leader.answers["call_api"] = {"text": "x" * (17 * 1024 * 1024)}
        refusal = self.failure(self.client.link.call_api("x", {}), errors.Refusal)
        self.assertEqual(refusal.code, "too-large")
        self.assertTrue(link.connected)

    def test_form(self) -> None:
        """What is wrong in form never reaches the leader."""
        self.start()
        mine = self.client.link
        for asking in (
            mine.submit_delivery("no spaces", {}),
            mine.submit_delivery("x" * 129, {}),
            mine.call_api("sendMessage", [1]),  # type: ignore[arg-type]
            mine.disconnect("because", False),
        ):
            self.failure(asking, errors.BusBadRequest)
        self.assertEqual(
            [c for c in self.leader.calls if c[0] not in ("register", "heartbeat")], []
        )
