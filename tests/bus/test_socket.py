"""A leader on a real UNIX socket, and peers who do not keep to the contract."""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from twisted.internet import reactor  # noqa: TID253
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase, TestCase

import pitelegram
from pitelegram.bus.boxes import BOX_LIMIT
from pitelegram.bus.follower import BusClient
from pitelegram.bus.leader import BusServer
from pitelegram.errors import SocketInUse
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.peers import PeerIds
from pitelegram.testing.bus import (
    CREDENTIAL,
    SECRET,
    FakeBusFollower,
    FakeBusLeader,
    FixedCredentials,
    FixedEndpoint,
    a_registration,
)
from pitelegram.testing.rawamp import Closed, RawClient, Refused, packed, pieces


def private_dir() -> Path:
    """A short private directory: socket paths are limited."""
    return Path(tempfile.mkdtemp(prefix="bus-"))


class SocketCase(TestCase):
    """A listening server; raw clients run in threads."""

    timeout = 30
    peer_ids: Callable[[Any], PeerIds] | None = None

    def setUp(self) -> None:
        """Listen."""
        self.directory = private_dir()
        self.path = self.directory / "bus.sock"
        self.leader = FakeBusLeader()
        options = {} if self.peer_ids is None else {"peer_ids": self.peer_ids}
        self.server = self.new_server(**options)
        self.server.startService()
        self.addCleanup(self.stop)

    def new_server(self, **options: Any) -> BusServer:
        """Another server for the same path."""
        return BusServer(
            path=self.path,
            credentials=FixedCredentials(),
            leader=self.leader,
            reactor=reactor,
            clock=reactor,
            random_bytes=os.urandom,
            build="test",
            **options,
        )

    @deferred
    async def stop(self) -> None:
        """Stop; the directory is empty then."""
        if self.server.running:
            await self.server.stopService()
        for left in self.directory.iterdir():
            left.unlink()
        self.directory.rmdir()

    def raw(self, work: Callable[[RawClient], Any]) -> Deferred[Any]:
        """Run C{work} with a connected raw client in a thread."""

        def run() -> Any:
            client = RawClient(str(self.path))
            try:
                return work(client)
            finally:
                client.close()

        return deferToThread(run)


def registered(client: RawClient) -> list[tuple[bytes, bytes]]:
    """Handshake and registration; returns the sender's pairs of later calls."""
    client.shake_hands(CREDENTIAL, SECRET)
    answer = client.register(a_registration(pid=os.getpid()))
    return [
        (b"instanceId", answer["instanceId"].encode()),
        (b"registrationGeneration", answer["registrationGeneration"].encode()),
    ]


class RawClientTests(SocketCase):
    """A client that knows nothing but the contract."""

    def test_whole_way(self) -> Deferred[None]:
        """Handshake, registration, heartbeat, calls and their refusals."""
        self.leader.answers["call_api"] = {"message_id": 1, "text": "ü" * 100_000}

        def work(client: RawClient) -> None:
            hello = client.shake_hands(CREDENTIAL, SECRET)
            self.assertEqual(hello[b"protocolVersion"], b"1")
            self.assertEqual((hello[b"epoch"], hello[b"profile"]), (b"epoch-1", b"default"))
            capabilities = client.json_of(hello, "capabilities")
            self.assertEqual(capabilities, sorted(set(capabilities)))
            self.assertIn("durable-follower-admission-v1", capabilities)
            answer = client.register(a_registration(unknown={"x": 1}))
            sender = [
                (b"instanceId", answer["instanceId"].encode()),
                (b"registrationGeneration", answer["registrationGeneration"].encode()),
                (b"unknownKey", b"ignored"),
            ]
            roster = client.call("follower.heartbeat", [*sender, *pieces("state", {})])
            self.assertEqual(client.json_of(roster, "roster")["liveSlots"], [])
            called = client.call(
                "follower.callApi",
                [
                    *sender,
                    (b"requestId", b"r"),
                    (b"method", b"sendMessage"),
                    *pieces("params", {"text": "ü" * 90_000}, 1000),
                    *pieces("options", {}),
                    *pieces("files", []),
                ],
            )
            self.assertEqual(client.json_of(called, "result")["result"]["text"], "ü" * 100_000)

        return self.raw(work)

    @deferred
    async def test_forward(self) -> None:
        """The leader's forward and its receipt, spoken by hand; a wrong settlement is no answer."""
        ready: Deferred[Any] = Deferred()

        def work(client: RawClient) -> dict[bytes, bytes]:
            registered(client)
            reactor.callFromThread(ready.callback, None)
            asked = client.next_asked()
            client.answer(
                asked,
                [
                    (b"settlement", b"accepted"),
                    *pieces("receipt", {"deliveryId": "d", "updateId": 9}),
                    (b"reason", b""),
                ],
            )
            second = client.next_asked()
            client.answer(second, [(b"settlement", b"maybe"), *pieces("receipt", {})])
            client.next_asked()
            return asked

        working = self.raw(work)
        await ready
        link = self.leader.links[-1]
        update = {"update_id": 9, "message": {"text": "€" * 50_000}}
        answer = await link.forward("d", 9, "message", update)
        self.assertEqual(answer["receipt"], {"deliveryId": "d", "updateId": 9})
        await self.assertFailure(link.forward("d", 9, "message", update), Exception)
        last = link.forward("d", 9, "message", update)
        asked = await working
        self.assertEqual(asked[b"_command"], b"leader.forwardMessage")
        self.assertEqual(asked[b"recipientBindingKey"], b"spec-1")
        self.assertEqual(RawClient.json_of(asked, "update"), update)
        await self.assertFailure(last, Exception)

    def test_stale_sender(self) -> Deferred[None]:
        """Calls before registration, or with another instance or generation, are stale."""

        def work(client: RawClient) -> None:
            client.shake_hands(CREDENTIAL, SECRET)
            unknown = [(b"instanceId", b"1:1"), (b"registrationGeneration", b"g1")]
            beat = pieces("state", {})
            for sender in (unknown, registered_sender(client, b"instanceId", b"9:9")):
                refused = self.assertRaises(
                    Refused, client.call, "follower.heartbeat", [*sender, *beat]
                )
                self.assertEqual(str(refused), "STALE_GENERATION")

        def registered_sender(client: RawClient, key: bytes, value: bytes) -> Any:
            answer = client.register(a_registration())
            sender = {
                b"instanceId": answer["instanceId"].encode(),
                b"registrationGeneration": answer["registrationGeneration"].encode(),
                key: value,
            }
            return list(sender.items())

        return self.raw(work)

    def test_bad_requests_end_nothing(self) -> Deferred[None]:
        """Missing and malformed arguments are BAD_REQUEST; unknown commands are unhandled."""

        def work(client: RawClient) -> None:
            sender = registered(client)
            for pairs in (
                sender,
                [*sender, (b"state", b"{")],
                [*sender, (b"state", b"[]")],
                [*sender, (b"state", b"\xff\xfe")],
                [*sender, (b"state", b"[" * 60_000)],
                [(b"instanceId", b"\xff"), *sender[1:], (b"state", b"{}")],
            ):
                refused = self.assertRaises(Refused, client.call, "follower.heartbeat", pairs)
                self.assertEqual(str(refused), "BAD_REQUEST")
            refused = self.assertRaises(Refused, client.call, "StartTLS", [])
            self.assertEqual(str(refused), "UNHANDLED")
            client.call("follower.heartbeat", [*sender, (b"state", b"{}")])

        return self.raw(work)

    def test_bad_registrations(self) -> Deferred[None]:
        """A registration of the wrong form is refused by name and ends nothing."""

        def work(client: RawClient) -> None:
            client.shake_hands(CREDENTIAL, SECRET)
            for change in (
                {"instanceId": "x"},
                {"instanceId": 3},
                {"kind": "daemon"},
                {"pid": "1"},
                {"pid": True},
                {"pid": 0},
                {"cwd": None},
                {"cwd": "a\0b"},
                {"target": 5},
                {"target": {"chatId": "1"}},
                {"profileKey": 4},
                {"processBirthId": ""},
            ):
                refused = self.assertRaises(Refused, client.register, a_registration(**change))
                self.assertEqual(str(refused), "BAD_REQUEST", change)
            client.register(a_registration())

        return self.raw(work).addCallback(
            lambda _: self.assertEqual([c[0] for c in self.leader.calls], ["register"])
        )

    def test_command_that_wants_no_answer(self) -> Deferred[None]:
        """A command without a tag that fails is no reason to end anything."""

        def work(client: RawClient) -> None:
            sender = registered(client)
            client.send(packed([(b"_command", b"follower.heartbeat"), *sender]))
            client.call("follower.heartbeat", [*sender, (b"state", b"{}")])

        return self.raw(work)


class HostileTests(SocketCase):
    """Peers that break the protocol lose their connection, and nobody else does."""

    def ended(self, work: Callable[[RawClient], Any]) -> Deferred[None]:
        """After C{work} the connection is closed, nothing was registered, others still can."""

        def attack(client: RawClient) -> None:
            try:
                work(client)
            except (Closed, Refused):
                pass
            self.assertTrue(client.is_closed())

        def check(_: Any) -> Deferred[None]:
            self.assertEqual([c for c in self.leader.calls if c[0] != "register"], [])
            return self.raw(lambda client: registered(client))

        return self.raw(attack).addCallback(check)

    def test_other_command_first(self) -> Deferred[None]:
        """Nothing goes before the hello."""
        return self.ended(
            lambda c: c.call("follower.register", pieces("registration", a_registration()))
        )

    def test_authenticate_first(self) -> Deferred[None]:
        """A proof for nothing is refused."""
        return self.ended(lambda c: c.authenticate(b"x" * 32))

    def test_command_between(self) -> Deferred[None]:
        """Nothing goes between hello and proof, a second hello neither."""

        def work(client: RawClient) -> None:
            client.hello(CREDENTIAL, b"n" * 32)
            client.hello(CREDENTIAL, b"n" * 32)

        return self.ended(work)

    def test_hello_again(self) -> Deferred[None]:
        """An open connection is not opened again."""

        def work(client: RawClient) -> None:
            client.shake_hands(CREDENTIAL, SECRET)
            client.hello(CREDENTIAL, b"n" * 32)

        return self.ended(work)

    def test_nonces(self) -> Deferred[None]:
        """A nonce has 32 bytes, not one less or more."""

        @deferred
        async def all_of_them() -> None:
            for nonce in (b"", b"n" * 31, b"n" * 33):
                await self.ended(lambda c, nonce=nonce: c.hello(CREDENTIAL, nonce))

        return all_of_them()

    def test_versions_and_capabilities(self) -> Deferred[None]:
        """Another version, a missing or malformed capability list: INCOMPATIBLE_PROTOCOL."""
        need = "durable-follower-admission-v1"

        def work(client: RawClient, version: int, capabilities: Any) -> None:
            refused = self.assertRaises(
                Refused, client.hello, CREDENTIAL, b"n" * 32, version, capabilities
            )
            self.assertEqual(str(refused), "INCOMPATIBLE_PROTOCOL")

        @deferred
        async def all_of_them() -> None:
            for version, capabilities in (
                (2, [need]),
                (0, [need]),
                (1, []),
                (1, ["other"]),
                (1, [need, need]),
                (1, [need, "a"]),
                (1, sorted([need, *(f"a{n:02}" for n in range(32))])),
                (1, need),
                (1, [need, 5]),
            ):
                await self.ended(lambda c, v=version, k=capabilities: work(c, v, k))

        return all_of_them()

    def test_wrong_proofs(self) -> Deferred[None]:
        """A random, empty, reflected or replayed proof, and one for the other role, are refused."""

        @deferred
        async def all_of_them() -> None:
            old: list[bytes] = []

            def record(client: RawClient) -> None:
                nonce = b"n" * 32
                theirs = client.hello(CREDENTIAL, nonce)[b"nonce"]
                old.append(theirs)
                proof = hmac.new(SECRET, b"follower\0" + theirs + nonce, hashlib.sha256).digest()
                old.append(proof)
                client.authenticate(proof)

            await self.raw(record)
            self.assertEqual(len(old[0]), 32)

            def replay(client: RawClient) -> None:
                client.hello(CREDENTIAL, b"n" * 32)
                client.authenticate(old[1])

            def reflect(client: RawClient) -> None:
                client.authenticate(client.hello(CREDENTIAL, b"n" * 32)[b"proof"])

            def leader_role(client: RawClient) -> None:
                nonce = b"n" * 32
                theirs = client.hello(CREDENTIAL, nonce)[b"nonce"]
                client.authenticate(
                    hmac.new(SECRET, b"leader\0" + theirs + nonce, hashlib.sha256).digest()
                )

            def guess(client: RawClient, proof: bytes) -> None:
                client.hello(CREDENTIAL, b"n" * 32)
                client.authenticate(proof)

            for work in (
                replay,
                reflect,
                leader_role,
                lambda c: guess(c, b""),
                lambda c: guess(c, b"x" * 32),
                lambda c: guess(c, b"x" * 60_000),
            ):
                await self.ended(work)

        return all_of_them()

    def test_wrong_secret_of_another_credential(self) -> Deferred[None]:
        """The shared secret does not open a worker's credential, nor the other way round."""

        def work(client: RawClient) -> None:
            nonce = b"n" * 32
            theirs = client.hello(CREDENTIAL, nonce)[b"nonce"]
            client.authenticate(
                hmac.new(b"t" * 32, b"follower\0" + theirs + nonce, hashlib.sha256).digest()
            )

        return self.ended(work)

    def test_early_box(self) -> Deferred[None]:
        """Before authentication a box ends at 16 KiB, complete or not."""
        return self.ended(
            lambda c: c.send(packed([(b"_command", b"bus.hello"), (b"build", b"x" * 17_000)])[:-2])
        )

    def test_early_flood_in_small_values(self) -> Deferred[None]:
        """The same in many small pieces."""
        pairs = [(b"k%d" % number, b"xxxx") for number in range(3000)]
        return self.ended(lambda c: c.send(packed(pairs)))

    def test_long_key(self) -> Deferred[None]:
        """A key over 255 bytes is no AMP."""
        return self.ended(lambda c: c.send(b"\xff\xff" + b"k" * 70_000))

    def test_no_amp_at_all(self) -> Deferred[None]:
        """Another protocol on the socket, and a box with nothing in it."""

        @deferred
        async def all_of_them() -> None:
            await self.ended(lambda c: c.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
            await self.ended(lambda c: c.send(b"\0\0"))
            await self.ended(lambda c: c.send(packed([(b"_answer", b"1")])))
            await self.ended(lambda c: c.send(packed([(b"_error", b"1")])))

        return all_of_them()

    def test_huge_box(self) -> Deferred[None]:
        """After authentication a box ends at 16 MiB, while it is still coming."""

        def work(client: RawClient) -> None:
            sender = registered(client)
            start = packed([(b"_ask", b"77"), (b"_command", b"follower.heartbeat"), *sender])
            client.send(start[:-2])
            piece = b"x" * 65_535
            for number in range(BOX_LIMIT // len(piece) + 2):
                client.send(packed([(b"state.%d" % number, piece)])[:-2])

        return self.ended(work)

    def test_gap(self) -> Deferred[None]:
        """A value with a missing piece ends the connection."""

        def work(client: RawClient) -> None:
            sender = registered(client)
            client.call("follower.heartbeat", [*sender, (b"state", b"{"), (b"state.2", b"}")])

        return self.ended(work)

    def test_answer_to_nothing(self) -> Deferred[None]:
        """An answer that nobody waits for ends the connection."""

        def work(client: RawClient) -> None:
            registered(client)
            client.send(packed([(b"_answer", b"fff"), (b"x", b"y")]))

        return self.ended(work)

    def test_cut_in_the_middle(self) -> Deferred[None]:
        """A peer that goes away in the middle of a box leaves nothing behind."""

        def work(client: RawClient) -> None:
            registered(client)
            client.send(packed([(b"_command", b"follower.heartbeat")])[:9])

        @deferred
        async def check() -> None:
            await self.raw(work)
            while not self.leader.lost_links:
                await deferToThread(lambda: None)
            self.assertEqual(len(self.server._links), 0)

        return check()


class SlowTests(SocketCase):
    """A peer that takes its time."""

    def test_slow_loris(self) -> Deferred[None]:
        """A hello that comes byte by byte is cut off by the time limit of the handshake."""
        self.server._links.clear()
        shortened = self.server.new_link()
        shortened.makeConnection(_Sink())
        self.addCleanup(shortened.connectionLost, None)
        deadline = shortened._deadline
        left = deadline.getTime() - reactor.seconds()
        self.assertTrue(4.0 < left <= 5.0, left)
        for byte in packed([(b"_command", b"bus.hello")])[:-2]:
            shortened.dataReceived(bytes([byte]))
        self.assertTrue(deadline.active())
        deadline.reset(0)
        waiting = shortened.transport.aborted
        return waiting


class _Sink:
    def __init__(self) -> None:
        self.aborted: Deferred[None] = Deferred()

    def write(self, data: bytes) -> None:
        """Swallow."""

    def abortConnection(self) -> None:
        """Note it."""
        self.aborted.callback(None)


class ForeignUserTests(SocketCase):
    """Another user of the machine."""

    def peer_ids(self, transport: Any) -> PeerIds:  # type: ignore[override]
        """The system says that the peer is somebody else."""
        return PeerIds(4242, os.geteuid() + 1)

    def test_refused_first(self) -> Deferred[None]:
        """The connection is closed before a byte is read, whatever secret the peer has."""

        def work(client: RawClient) -> None:
            self.assertRaises(Closed, client.shake_hands, CREDENTIAL, SECRET)

        return self.raw(work)


class PeerPidTests(SocketCase):
    """What the system tells of a peer."""

    def test_pid(self) -> Deferred[None]:
        """The link knows the peer's process id."""
        if not hasattr(socket, "SO_PEERCRED"):
            self.skipTest("this system does not tell")

        def check(_: Any) -> None:
            self.assertEqual(self.leader.links[-1].peer.pid, os.getpid())

        return self.raw(registered).addCallback(check)


class SocketFileTests(SocketCase):
    """The socket's file."""

    def test_mode(self) -> None:
        """It is private."""
        info = os.lstat(self.path)
        self.assertTrue(stat.S_ISSOCK(info.st_mode))
        self.assertEqual(stat.S_IMODE(info.st_mode), 0o600)

    @deferred
    async def test_stop(self) -> None:
        """After a clean stop no file is left."""
        await self.server.stopService()
        self.assertFalse(self.path.exists())

    def test_live_listener(self) -> None:
        """A socket that somebody answers on is not taken."""
        other = self.new_server()
        self.assertRaises(SocketInUse, other.startService)
        self.assertTrue(self.path.exists())


class RealClientTests(SocketCase):
    """Our own follower over the real socket."""

    @deferred
    async def test_both_ends(self) -> None:
        """It registers, is registered again with a restarted leader, and stops clean."""
        follower = FakeBusFollower(registration=a_registration(pid=os.getpid()))
        client = BusClient(
            endpoint=FixedEndpoint((str(self.path), SECRET)),
            credential=CREDENTIAL,
            follower=follower,
            reactor=reactor,
            clock=reactor,
            random=Random(1),
            build="test",
            random_bytes=os.urandom,
        )
        client.startService()
        self.addCleanup(client.stopService)
        while not client.link or not client.link.roster:
            await deferToThread(lambda: None)
        update = {"text": "🛠" * 100_000}
        answer = await self.leader.links[-1].forward("d", 3, "message", update)
        self.assertEqual(answer["settlement"], "accepted")
        await self.server.stopService()
        self.server = self.new_server()
        self.server.startService()
        while len(self.leader.links) < 2 or not client.link or not client.link.roster:
            await deferToThread(lambda: None)
        self.assertEqual(self.leader.links[-1].peer.secret_id, "spawn-1")
        await client.stopService()
        self.assertIsNone(client.link)


class LeanTests(SynchronousTestCase):
    """A worker's side does without OpenSSL."""

    def test_no_openssl(self) -> None:
        """After C{forbid_tls} the follower side and the reactor load no OpenSSL, and can connect."""
        script = (
            "from pitelegram.kernel import lean; lean.forbid_tls(); lean.forbid_tls();"
            "import sys; from pitelegram.bus import follower;"
            "from twisted.internet import reactor;"
            "from pitelegram.bus.connecting import unix_connect; unix_connect(reactor);"
            "bad = [m for m in sys.modules if m.split('.')[0] in"
            " ('OpenSSL', 'cryptography', 'service_identity')];"
            "print(bad, 'twisted.internet.endpoints' in sys.modules)"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=Path(pitelegram.__file__).parents[1],
        )
        self.assertEqual((done.stdout.strip(), done.stderr), ("[] False", ""))
