"""Thousands of connections to the control socket, most of which speak bad HTTP."""

from __future__ import annotations

import gc
import json
import resource
from random import Random
from typing import Any

from twisted.internet.task import deferLater

from pitelegram.control import status
from pitelegram.control.envelope import is_legal
from pitelegram.kernel.deferring import deferred
from tests.control.test_http import RawClient, ServerCase, get, post, split
from tests.control.test_status import facts

SEED = 20_261_201
CONNECTIONS = 3000
BATCH = 50

MARK = "zqMARKzq"
"""Stands in bodies, paths and headers; no answer may repeat it."""

STATUSES = {100, 200, 400, 404, 405, 413}

BODIES = [
    {"schema_version": 1, "action": "noop"},
    {"schema_version": 1, "action": "get_status"},
    {
        "schema_version": 1,
        "action": "worker.prompt",
        "request_id": "r1",
        "dry_run": False,
        "target": {"name": "a"},
        "args": {"text": MARK},
    },
    {"schema_version": 1, "action": "worker.abort", "request_id": "r2", "target": {"name": MARK}},
    {"schema_version": 1, "action": MARK, "args": {"cwd": MARK, MARK: MARK}},
]
PIECES = (
    *(b"\r\n", b"\r\n\r\n", b"\0", b":", b" ", b"\xff\xfe", b"Content-Length: 7\r\n", b"chunked"),
    *(b"Transfer-Encoding: chunked\r\n", b"HTTP/9.9", b"Expect: 100-continue\r\n", b"%00"),
    b"Content-Length: 99999999999999999999\r\n",
    b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n",
    b"x-" + MARK.encode() + b": " + MARK.encode() + b"\r\n",
)


def right(random: Random) -> bytes:
    """Return a request that is well formed."""
    kind = random.randrange(6)
    if kind == 0:
        path = random.choice((b"/v1/status", b"/metrics", b"/v1/outbox", b"/v1/workers?private=1"))
        return get(path, random.choice((b"GET", b"HEAD")))
    if kind == 1:
        return get(random.choice((b"/", b"/v2", b"*", b"/v1/../etc", b"//", b"/" + MARK.encode())))
    if kind == 2:
        return get(b"/v1/commands", random.choice((b"DELETE", b"OPTIONS", b"get", b"PRI", b"PUT")))
    body = json.dumps(random.choice(BODIES)).encode()
    if kind == 3:
        body = json.dumps(random.choice((None, 7, [], "x", [[]]))).encode()
    if kind == 4:
        cut = random.randrange(len(body))
        head = b"POST /v1/commands HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        chunks = [piece for piece in (body[:cut], body[cut:]) if piece]
        sent = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in chunks)
        return head + b"Transfer-Encoding: chunked\r\n\r\n" + sent + b"0\r\n\r\n"
    return post(body)


def wrong(random: Random, data: bytes) -> bytes:
    """Return the request with some of it cut off, doubled, exchanged or put in."""
    at = random.randrange(len(data) + 1)
    to = min(len(data), at + random.randrange(12))
    kind = random.randrange(6)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + data[to:]
    if kind == 2:
        return data[:at] + random.choice(PIECES) + data[at:]
    if kind == 3:
        return data[:to] + data[at:]
    if kind == 4:
        return data.replace(b"Connection: close\r\n", random.choice(PIECES), 1)
    return data[:at] + random.randbytes(6) + data[to:]


def answers(data: bytes) -> list[tuple[int, bytes]]:
    """Return status and body of each HTTP answer; fails on bytes that are none."""
    found = []
    while data:
        head, gap, rest = data.partition(b"\r\n\r\n")
        assert gap and head.startswith(b"HTTP/1.1 "), head[:80]
        code = int(head.split()[1])
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if not rest or rest.startswith(b"HTTP/1.1 "):
            length = 0  # the answer to a HEAD
        assert len(rest) >= length, (head, rest)
        found.append((code, rest[:length]))
        data = rest[length:]
    return found


class Connections(ServerCase):
    """What comes back is HTTP, of few kinds; nothing fails and nothing is left."""

    timeout = 60

    def setUp(self) -> None:
        """With a whole status document."""
        super().setUp()
        self.daemon.document = status.document(facts())

    @deferred
    async def round_trip(self) -> None:
        """The server has looked at what was written before, and still does its work."""
        self.assertEqual((await self.command({"schema_version": 1, "action": "noop"}))["ok"], True)

    def check(self, data: bytes, sent: bytes) -> list[int]:
        """Look at all that came on one connection; returns the statuses."""
        self.assertNotIn(MARK.encode(), data, sent)
        statuses = []
        for code, body in answers(data):
            self.assertIn(code, STATUSES, sent)
            statuses.append(code)
            if body.startswith(b"{"):
                value = json.loads(body)
                if "disposition" in value:
                    self.assertTrue(is_legal(value), value)
        return statuses

    @deferred
    async def test_mutated(self) -> None:
        """Three thousand connections, most with broken or pipelined requests, in pieces."""
        random = Random(SEED)
        seen: set[int] = set()
        counts = []
        for number in range(CONNECTIONS // BATCH):
            batch = []
            for _ in range(BATCH):
                data = b"".join(right(random) for _ in range(random.choice((1, 1, 1, 2, 3))))
                for _ in range(random.choice((0, 1, 1, 2, 3))):
                    data = wrong(random, data)
                client = await self.connect()
                cut = random.randrange(len(data) + 1)
                client.transport.write(data[:cut])
                batch.append((client, data, cut))
            await self.round_trip()
            for client, data, cut in batch:
                client.transport.write(data[cut:])
            await self.round_trip()
            await self.round_trip()
            for client, data, _ in batch:
                client.transport.abortConnection()
                seen.update(self.check(await client.closed, data))
            if number % 10 == 9:
                gc.collect()
                counts.append(len(gc.get_objects()))
        self.assertLessEqual({200, 400, 404, 405}, seen)
        self.assertEqual(len([1 for *_, name in self.daemon.performed if name == "r1"]), 1)
        self.assertLess(counts[-1], counts[1] * 1.1 + 2000, counts)
        await self.nothing_left()

    @deferred
    async def test_right_ones(self) -> None:
        """A request that is well formed gets one answer, also byte by byte, also pipelined."""
        random = Random(SEED)
        for _ in range(200):
            data = right(random)
            expected = [code for code, _ in answers(await self.ask(data))]
            self.assertEqual(len(expected), 1, data)
            client = await self.connect()
            step = random.choice((1, 7))
            for at in range(0, len(data), step):
                client.transport.write(data[at : at + step])
                if at % 60 == 0:
                    await deferLater(self.reactor, 0)
            self.assertEqual([code for code, _ in answers(await client.closed)], expected)
        await self.nothing_left()

    @deferred
    async def test_thousand_open(self) -> None:
        """A thousand connections that say nothing, or half a request, keep nobody else out."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < 3000:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(3000, hard), hard))
            self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        idle = []
        for number in range(1000):
            client = await self.connect()
            client.transport.write((b"", b"POST /v1/comm", post(b"{}")[:-1])[number % 3])
            idle.append(client)
        await self.round_trip()
        self.assertEqual(split(await self.ask(get(b"/v1/status")))[0], 200)
        for client in idle:
            self.assertFalse(client.closed.called)
            client.transport.abortConnection()
        for client in idle:
            self.assertEqual(await client.closed, b"")
        await self.nothing_left()

    @deferred
    async def test_half_closed(self) -> None:
        """Clients that close their side at once, or go away before reading, leave nothing."""
        for number in range(200):
            client: RawClient = await self.connect()
            client.transport.write(post(json.dumps(BODIES[number % len(BODIES)]).encode()))
            client.transport.loseWriteConnection()
            if number % 2:
                client.transport.abortConnection()
            self.check(await client.closed, b"")
        await self.nothing_left()

    @deferred
    async def nothing_left(self) -> None:
        """No connection, no log of a failure; the server still answers."""
        await self.round_trip()
        site: Any = self.server._site
        while site.channels:
            await deferLater(self.reactor, 0.001)
        self.assertEqual(self.flushLoggedErrors(), [])
