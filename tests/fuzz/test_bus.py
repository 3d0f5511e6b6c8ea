"""A registered follower that has lost its mind."""

from __future__ import annotations

import gc
import os
from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from pitelegram.bus.boxes import BOX_LIMIT, BoxReader
from pitelegram.bus.commands import WIRE_ERRORS
from pitelegram.bus.handshake import CAPABILITIES, follower_proof
from pitelegram.delivery.shape import parse_delivery
from pitelegram.testing.bus import a_registration
from pitelegram.testing.delivery import FakeDelivery
from pitelegram.testing.rawamp import RawClient, packed, pieces
from tests.routing.support import OWNER
from tests.routing.test_busleader import BusLeaderCase, sent

SEED = 20_261_202
BOXES = 4000

CODES = {*WIRE_ERRORS.values(), b"UNHANDLED"}

VALUES: list[Any] = [
    *(None, True, 0, -1, 7, 2**40, 2**63, -(2**70), 1.5, 1e308, "", "x", "\0", "ü\U0001f600", "-5"),
    *([], {}, [[]], [None], {"a": None}, {"chat_id": 666}, [{}] * 70, "y" * 70_000, "file:///etc"),
    {"chatId": "x", "threadId": []},
    {"method": "sendMessage", "params": {}},
    {"text": "x", "chat_id": OWNER, "message_thread_id": 12},
]
RAW: list[bytes] = [
    *(b"", b"null", b"{", b"[" * 5000, b"{}", b"\xff", b"NaN", b"-0", b"99999999999999999999"),
    *(b"True", b"False", b"true", b'"\\ud800"', b'{"a":1,"a":2}', b"1e999", b" {} ", b"{}{}"),
]

Pairs = list[tuple[bytes, bytes]]


def calls(random: Random, sender: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """Return a command with right arguments."""
    here = {"chat_id": OWNER, "message_thread_id": 11}
    file = {"field": "f", "path": "/nowhere/f", "filename": "f", "mimeType": "text/plain"}
    delivery = {"kind": "final", "calls": [{"method": "sendMessage", "params": {"text": "x"}}]}
    place = {"chatId": OWNER, "threadId": 11}
    beat = {"activity": "idle", "queued": 1, "cwd": "/p", "sessionId": "s", "slot": "A"}
    api = {"requestId": "r", "options": {}, "files": []}
    options: list[tuple[str, dict[str, Any]]] = [
        ("follower.heartbeat", {"state": beat}),
        ("follower.callApi", {**api, "method": "sendMessage", "params": {**here, "text": "x"}}),
        ("follower.callApi", {**api, "method": "editMessageText", "params": {"message_id": 9}}),
        ("follower.callApi", {**api, "method": "setMyCommands", "params": {"commands": []}}),
        ("follower.callApi", {**api, "method": "sendDocument", "params": here, "files": [file]}),
        ("follower.downloadFile", {"requestId": "r", "fileId": "f"}),
        ("follower.submitDelivery", {"deliveryId": "d-1", "delivery": delivery}),
        ("follower.resolveTarget", {"selector": {"threadId": 12, "threadName": "beta"}}),
        ("follower.routeAgentMessage", {"requestId": "r", "message": {}}),
        ("follower.renameThread", {"target": place, "name": "n"}),
        ("follower.setDisplayMode", {"target": place, "mode": "m"}),
        ("follower.disconnect", {"reason": "quit", "deleteThread": False}),
        ("follower.register", {"registration": registration()}),
    ]
    command, arguments = random.choice(options)
    return command, {**arguments, **({} if "register" in command else sender)}


def registration(**changes: Any) -> dict[str, Any]:
    """What alpha's process says of itself."""
    return a_registration(ownerId=None, instanceId="97:1", pid=97, **changes)


def crooked(random: Random, value: Any) -> Any:
    """Return a value, one part of which is something else, one more or one less."""
    if isinstance(value, dict) and value and random.random() < 0.8:
        name = random.choice(list(value))
        rest = {key: item for key, item in value.items() if key != name}
        if random.random() < 0.2:
            return rest
        if random.random() < 0.2:
            return {**value, random.choice(["chat_id", "thread", "x", ""]): random.choice(VALUES)}
        return {**value, name: crooked(random, value[name])}
    if isinstance(value, list) and value and random.random() < 0.6:
        return [crooked(random, value[0]), *value[1:]]
    return random.choice(VALUES)


class Peer(Protocol):
    """Alpha's end of a connection, by hand."""

    transport: Any = None

    def __init__(self) -> None:
        self.reader = BoxReader(BOX_LIMIT)
        self.boxes: list[dict[bytes, bytes]] = []
        self.lost = False

    def dataReceived(self, data: bytes) -> None:
        """Keep the boxes."""
        self.boxes += [dict(box) for box in self.reader.feed(data)]

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """It is over."""
        self.lost = True


class CheckedDelivery(FakeDelivery):
    """An outbox that looks at what it is given as the real one does."""

    def submit(
        self, binding_key: str, delivery_id: str, delivery: dict[str, Any], uploads: Any | None
    ) -> Deferred[str]:
        """Check the form, then take it."""
        self.refuse = None
        try:
            parse_delivery(delivery_id, delivery)
        except Exception as error:  # whatever it is, the bus has to bear it
            self.refuse = error
        return super().submit(binding_key, delivery_id, delivery, uploads)


class FollowerTests(BusLeaderCase):
    """Each box is answered, refused by its code, or ends that connection; nobody else notices."""

    def setUp(self) -> None:
        """Alpha is ours; beta is well."""
        super().setUp()
        self.bus_leader.delivery = self.delivery = CheckedDelivery()
        self.api.answer = sent(77)
        stopping = self.clients.pop("a").stopService()
        self.wire.flush()
        self.successResultOf(stopping)
        del self.wire.pumps[0]
        self.random = Random(SEED)
        self.sender: dict[str, str] = {}
        self.connections = 0

    def connect(self) -> Peer:
        """A new connection, proven and registered."""
        self.connections += 1
        peer, nonce = Peer(), os.urandom(32)
        del self.wire.pumps[1:]  # beta's is the first
        self.wire.join(peer)
        hello = self.ask(
            peer,
            "bus.hello",
            [
                (b"protocolVersion", b"1"),
                (b"build", b"fuzz"),
                *pieces("capabilities", sorted(CAPABILITIES)),
                (b"nonce", nonce),
                (b"credential", b"worker:a"),
            ],
        )
        proof = follower_proof(b"s" * 32, nonce, hello[b"nonce"])
        self.ask(peer, "bus.authenticate", [(b"proof", proof)])
        answer = self.ask(peer, "follower.register", pieces("registration", registration()))
        mine = RawClient.json_of(answer, "registration")
        self.sender = {key: mine[key] for key in ("instanceId", "registrationGeneration")}
        return peer

    def ask(self, peer: Peer, command: str, pairs: Pairs) -> dict[bytes, bytes]:
        """Ask what must be answered."""
        peer.boxes.clear()
        self.send(peer, packed([(b"_ask", b"1"), (b"_command", command.encode()), *pairs]))
        (answer,) = [box for box in peer.boxes if box.get(b"_answer") == b"1"]
        return answer

    def send(self, peer: Peer, data: bytes) -> None:
        """Write bytes in pieces, and let them arrive."""
        cut = self.random.randrange(len(data) + 1)
        for piece in (data[:cut], data[cut:]):
            if not peer.lost and piece:
                peer.transport.write(piece)
                self.wire.flush()

    def box(self) -> bytes:
        """The next box, most often a crooked one."""
        random = self.random
        command, arguments = calls(random, self.sender)
        for _ in range(random.choice((0, 1, 1, 2))):
            name = random.choice(list(arguments))
            arguments[name] = crooked(random, arguments[name])
        pairs: Pairs = [(b"_ask", b"%d" % random.randrange(100)), (b"_command", command.encode())]
        for name, value in arguments.items():
            if isinstance(value, str) and random.random() < 0.9:
                pairs.append((name.encode(), value.encode()[:65_535]))
            elif isinstance(value, bool):
                pairs.append((name.encode(), b"True" if value else b"False"))
            else:
                pairs += pieces(name, value, random.choice((65_535, 1000, 50)))
        kind = random.randrange(12)
        at = random.randrange(len(pairs))
        if kind == 0:
            del pairs[at]
        elif kind == 1:
            pairs[at] = (pairs[at][0], random.choice(RAW))
        elif kind == 2:
            pairs.append((random.choice((b"state.1", b"x", b"_answer", b"_error", b"\xff")), b"1"))
        data = packed(pairs)
        if random.random() < 0.1:
            cut = random.randrange(len(data))
            data = data[:cut] + random.randbytes(random.randrange(3)) + data[cut + 1 :]
        return data

    def check(self, box: dict[bytes, bytes]) -> None:
        """An answer is JSON throughout; an error has a code of the contract, and names nothing."""
        if b"_command" in box:
            return
        if b"_error" in box:
            self.assertIn(box[b"_error_code"], CODES)
            return
        self.assertIn(b"_answer", box)
        for name in ("result", "roster", "receipt", "target", "outcome", "registration"):
            if name.encode() in box:
                self.assertIsInstance(RawClient.json_of(box, name), dict)

    def test_mutated(self) -> None:
        """Four thousand boxes."""
        peer = self.connect()
        answered = errors = 0
        counts = []
        beta = self.clients["b"].link
        for number in range(BOXES):
            if peer.lost or self.random.random() < 0.01:
                if not peer.lost:
                    peer.transport.abortConnection()
                    self.wire.flush()
                peer = self.connect()
            peer.boxes.clear()
            self.send(peer, self.box())
            for box in peer.boxes:
                self.check(box)
                answered += b"_answer" in box
                errors += b"_error" in box
            self.assert_own_calls()
            if number % 500 == 499:
                self.api.answer = sent(78, 12)
                self.call("b", "sendMessage", {**self.place(12), "text": "still here"})
                self.api.answer = sent(77)
                self.api.calls.clear()
                self.delivery.submitted.clear()
                gc.collect()
                counts.append(len(gc.get_objects()))
        self.assertIs(self.clients["b"].link, beta)
        self.assertNotIn(("lost",), self.followers["b"].calls)
        self.assertGreater(min(answered, errors, self.connections), 100)
        self.assertLess(counts[-1], counts[1] * 1.1 + 2000, counts)
        self.assertEqual(self.flushLoggedErrors(), [])
        peer.transport.abortConnection()
        self.wire.flush()

    def assert_own_calls(self) -> None:
        """Nothing that alpha asked for went to another chat or Thread."""
        for method, params, files in self.api.calls:
            if method.startswith(("send", "edit", "delete")):
                self.assertEqual(params.get("chat_id"), OWNER, method)
                self.assertEqual(params.get("message_thread_id"), 11, method)
            self.assertEqual(list(files), [])
        self.assertEqual({each[0] for each in self.delivery.submitted} - {"spec-a"}, set())
