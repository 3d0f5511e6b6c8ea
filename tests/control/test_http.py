"""The control socket on the wire: a real UNIX socket, raw bytes."""

import json
import os
import stat
from pathlib import Path

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.endpoints import UNIXClientEndpoint, connectProtocol
from twisted.internet.protocol import Protocol
from twisted.internet.task import Clock, LoopingCall
from twisted.trial.unittest import TestCase

from pitelegram.control import status
from pitelegram.control.connections import MAX_BODY
from pitelegram.control.envelope import is_legal
from pitelegram.control.http import MAX_STREAMS, ControlServer
from pitelegram.errors import ConfigError, Refusal, SocketInUse, UnsafeFile
from pitelegram.kernel.deferring import deferred
from pitelegram.store.commands import Commands
from pitelegram.testing.control import FakeDaemon
from pitelegram.testing.stores import leader_database
from tests.control.test_status import facts


class RawClient(Protocol):
    """Collects bytes until the other side closes, or until something is there."""

    def __init__(self):
        self.data = b""
        self.closed = Deferred()
        self._wanted = []

    def dataReceived(self, data):
        """More bytes."""
        self.data += data
        for want in [want for want in self._wanted if want[0] in self.data]:
            self._wanted.remove(want)
            want[1].callback(self.data)

    def connectionLost(self, reason):
        """The end."""
        self.closed.callback(self.data)

    def when(self, part):
        """Fire once C{part} has come."""
        wanted = Deferred()
        self._wanted.append((part, wanted))
        self.dataReceived(b"")
        return wanted


def post(body, *headers, method=b"POST", path=b"/v1/commands"):
    """The bytes of a request that closes its connection."""
    lines = [
        b"%b %b HTTP/1.1" % (method, path),
        b"Host: x",
        b"Connection: close",
        b"Content-Length: %d" % len(body),
        *headers,
    ]
    return b"\r\n".join([*lines, b"", body])


def get(path, method=b"GET"):
    """The bytes of a GET that closes its connection."""
    return b"%b %b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % (method, path)


def split(answer):
    """Return status and parsed body of an HTTP answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body) if body.strip() else None


class ServerCase(TestCase):
    """Base: a running control server."""

    timeout = 30

    def setUp(self):
        """Start it in a fresh private directory."""
        directory = Path(self.mktemp())
        directory.mkdir(parents=True)
        # A socket path must be short; trial's own directories are not.
        from twisted.internet import reactor

        self.reactor = reactor
        self.path = Path(os.path.relpath(directory)) / "private" / "c.sock"
        self.daemon = FakeDaemon()
        database = leader_database(Clock())
        self.addCleanup(database.stopService)
        self.commands = Commands(database, "host")
        self.server = self.make()
        self.server.startService()
        self.addCleanup(self.stop)

    def make(self, path=None, group=None):
        """Build another server."""
        return ControlServer(
            path or self.path, self.daemon, self.commands, self.reactor, self.reactor, group
        )

    def stop(self):
        """Stop it if it runs."""
        return self.server.stopService() if self.server.running else None

    @deferred
    async def connect(self):
        """Open a raw connection."""
        endpoint = UNIXClientEndpoint(self.reactor, str(self.path), timeout=5)
        return await connectProtocol(endpoint, RawClient())

    @deferred
    async def ask(self, data):
        """Send bytes, return all that comes until the server closes."""
        client = await self.connect()
        client.transport.write(data)
        return await client.closed

    @deferred
    async def command(self, value):
        """Post a command, return its envelope."""
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        status, envelope = split(await self.ask(post(body)))
        self.assertEqual(status, 200)
        self.assertTrue(is_legal(envelope), envelope)
        return envelope


class ReadingTests(ServerCase):
    """GET paths."""

    @deferred
    async def test_status(self):
        """The status document is given as JSON."""
        answer = await self.ask(get(b"/v1/status"))
        self.assertIn(b"Content-Type: application/json", answer)
        self.assertEqual(split(answer), (200, self.daemon.document))

    @deferred
    async def test_workers(self):
        """Private fields are given only when they are asked for."""
        self.daemon.public_workers = [{"name": "a"}]
        self.daemon.private_fields = {"pid": 7}
        expected = {"schema_version": 1, "workers": [{"name": "a"}]}
        for query in (b"", b"?private=0", b"?private", b"?private=1&private=0"):
            self.assertEqual(split(await self.ask(get(b"/v1/workers" + query))), (200, expected))
        _, body = split(await self.ask(get(b"/v1/workers?private=1")))
        self.assertEqual(body["workers"], [{"name": "a", "pid": 7}])

    @deferred
    async def test_outbox(self):
        """The outbox is a list of items."""
        self.daemon.items = [{"key": "k", "state": "uncertain"}]
        status, body = split(await self.ask(get(b"/v1/outbox")))
        self.assertEqual(body, {"schema_version": 1, "items": self.daemon.items})

    @deferred
    async def test_metrics(self):
        """Metrics come as Prometheus text, made of the status document."""
        self.daemon.document = status.document(facts())
        answer = await self.ask(get(b"/metrics"))
        head, _, body = answer.partition(b"\r\n\r\n")
        self.assertIn(b"HTTP/1.1 200", head)
        self.assertIn(b"Content-Type: text/plain; version=0.0.4; charset=utf-8", head)
        self.assertIn(b'pitelegram_health{health="ok"} 1\n', body)
        self.assertEqual(split(await self.ask(get(b"/metrics", b"POST")))[0], 405)

    @deferred
    async def test_last_look(self):
        """Whatever a part says, secrets and places do not leave."""
        self.daemon.document = {"health": "ok", "problems": ["in /home/bob"], "cwd": "/x"}
        _, body = split(await self.ask(get(b"/v1/status")))
        self.assertEqual(body, {"health": "ok", "problems": ["in [redacted]"]})
        self.daemon.items = [{"key": "k", "reason": "at /home/bob", "chat_id": 5}]
        _, body = split(await self.ask(get(b"/v1/outbox")))
        self.assertEqual(body["items"], [{"key": "k", "reason": "at [redacted]"}])

    @deferred
    async def test_head(self):
        """HEAD gives the headers alone."""
        for path in (b"/v1/status", b"/v1/events"):
            self.assertEqual(split(await self.ask(get(path, b"HEAD"))), (200, None))

    @deferred
    async def test_unknown_paths(self):
        """Other paths do not exist, however they are written."""
        for path in (
            b"/",
            b"/v1",
            b"/v1/status/",
            b"//v1/status",
            b"/v1/../v1/status",
            b"/V1/status",
        ):
            self.assertEqual(split(await self.ask(get(path)))[0], 404, path)

    @deferred
    async def test_wrong_method(self):
        """A path answers to its own method and names it."""
        answer = await self.ask(get(b"/v1/commands"))
        self.assertEqual(split(answer)[0], 405)
        self.assertIn(b"Allow: POST", answer)
        for method in (b"POST", b"PUT", b"DELETE"):
            self.assertEqual(split(await self.ask(get(b"/v1/status", method)))[0], 405)

    @deferred
    async def test_defect(self):
        """A defect is answered without its text."""
        self.daemon.document = {"x": object()}
        status, body = split(await self.ask(get(b"/v1/status")))
        self.assertEqual(status, 500)
        self.assertNotIn("object", json.dumps(body))
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)

    @deferred
    async def test_keep_alive(self):
        """Several requests use one connection, also when they are sent at once."""
        client = await self.connect()
        request = b"GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n"
        client.transport.write(request + request + get(b"/v1/outbox"))
        answer = await client.closed
        self.assertEqual(answer.count(b"HTTP/1.1 200"), 3)


class CommandTests(ServerCase):
    """POST /v1/commands."""

    PROMPT = {
        "schema_version": 1,
        "action": "worker.prompt",
        "request_id": "r",
        "target": {"name": "a"},
        "args": {"text": "x"},
    }

    @deferred
    async def test_accepted(self):
        """A command's envelope comes with 200, whatever it says."""
        self.assertEqual((await self.command(self.PROMPT))["status"], "accepted")
        self.daemon.answers["worker.prompt"] = Refusal("not-running", "it is stopped")
        envelope = await self.command({**self.PROMPT, "request_id": "s"})
        self.assertEqual(envelope["disposition"], "terminal_rejected")

    @deferred
    async def test_content_type_does_not_matter(self):
        """curl's default form type does not change how the body is read."""
        body = json.dumps(self.PROMPT).encode()
        for header in (
            b"Content-Type: application/x-www-form-urlencoded",
            b"Content-Type: multipart/form-data; boundary=x",
        ):
            self.assertEqual(split(await self.ask(post(body, header)))[0], 200)

    @deferred
    async def test_no_object(self):
        """What is not a JSON object is a bad request, with no envelope."""
        for body in (b"", b"{", b"[]", b"null", b"\xff\xfe", b"1"):
            status, answer = split(await self.ask(post(body)))
            self.assertEqual((status, answer["error"]["code"]), (400, "bad_request"), body)

    @deferred
    async def test_ambiguous(self):
        """An ambiguous object is an invalid request."""
        for body in (
            b'{"a":1,"a":1}',
            b'{"a":NaN}',
            b'{"a":"\\ud800"}',
            b'{"a":99999999999999999999}',
        ):
            envelope = await self.command(body)
            self.assertEqual((envelope["status"], envelope["action"]), ("invalid_request", ""))
        self.assertEqual(self.daemon.performed, [])

    @deferred
    async def test_concurrent(self):
        """Twenty equal requests at once have one effect and one envelope."""
        work = self.daemon.answers["worker.prompt"] = Deferred()
        asking = [self.command(self.PROMPT) for _ in range(20)]
        self.reactor.callLater(0.05, work.callback, {"queued": 1})
        envelopes = await gatherResults(asking)
        self.assertEqual(envelopes, [envelopes[0]] * 20)
        self.assertEqual(len(self.daemon.performed), 1)

    @deferred
    async def test_client_goes_away(self):
        """A client that leaves does not stop its command; the answer is there for the next one."""
        work = self.daemon.answers["worker.prompt"] = Deferred()
        client = await self.connect()
        client.transport.write(post(json.dumps(self.PROMPT).encode()))
        while not self.daemon.performed:
            await _turn()
        client.transport.abortConnection()
        await client.closed
        work.callback({})
        self.assertEqual((await self.command(self.PROMPT))["status"], "accepted")
        self.assertEqual(len(self.daemon.performed), 1)


class HostileTests(ServerCase):
    """Bytes that no friend sends."""

    @deferred
    async def test_broken_http(self):
        """Broken HTTP is answered with 400 and the connection ends."""
        for data in (
            b"hello\r\n\r\n",
            b"GET /v1/status\r\n\r\n",
            b"GET /v1/status HTTP/1.1\r\nbroken header\r\n\r\n",
            b"POST /v1/commands HTTP/1.1\r\nContent-Length: x\r\n\r\n",
            b"POST /v1/commands HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
            b"POST /v1/commands HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
            b"POST /v1/commands HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"GET / HTTP/1.1\r\n" + b"x: " + b"y" * 20_000 + b"\r\n\r\n",
            b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 600 + b"\r\n",
        ):
            answer = await self.ask(data)
            self.assertTrue(answer.startswith(b"HTTP/1.1 400"), (data[:60], answer[:60]))
        self.assertEqual(split(await self.ask(get(b"/v1/status")))[0], 200)

    @deferred
    async def test_announced_too_large(self):
        """A body that is announced too large is refused before it is sent."""
        client = await self.connect()
        client.transport.write(
            b"POST /v1/commands HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY + 1)
        )
        answer = await client.when(b"}")
        self.assertTrue(answer.startswith(b"HTTP/1.1 413 "))
        client.transport.loseConnection()
        await client.closed
        self.assertEqual(self.daemon.performed, [])

    @deferred
    async def test_sent_too_large(self):
        """A larger body, announced or in chunks, is answered with 413 to a client that sends it all."""
        body = b" " * (2 * MAX_BODY)
        self.assertEqual(split(await self.ask(post(body)))[0], 413)
        head = b"POST /v1/commands HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        answer = await self.ask(head + chunk * 17 + b"0\r\n\r\n")
        self.assertTrue(answer.startswith(b"HTTP/1.1 413 "))

    @deferred
    async def test_exactly_large_enough(self):
        """A body of exactly 1 MiB is read."""
        body = json.dumps({"schema_version": 1, "action": "noop"}).encode()
        body += b" " * (MAX_BODY - len(body))
        self.assertEqual((await self.command(body))["status"], "noop")

    @deferred
    async def test_endless_body(self):
        """A body that never ends is cut off."""
        client = await self.connect()
        head = b"POST /v1/commands HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999999\r\n\r\n"
        client.transport.write(head)

        writing = LoopingCall(lambda: client.transport.write(b" " * 1_000_000))
        writing.start(0.001).addErrback(lambda _: None)
        try:
            self.assertTrue((await client.closed).startswith(b"HTTP/1.1 413 "))
        finally:
            writing.stop()


class EventTests(ServerCase):
    """GET /v1/events."""

    @deferred
    async def test_past_then_live(self):
        """The newest events come first, then each new one; a reader that leaves is forgotten."""
        self.daemon.past = [{"n": 1}, {"n": 2}]
        client = await self.connect()
        client.transport.write(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
        await client.when(b'data: {"n":2}\n\n')
        self.assertLess(client.data.index(b'{"n":1}'), client.data.index(b'{"n":2}'))
        self.assertIn(b"Content-Type: text/event-stream", client.data)
        self.daemon.happen({"n": 3})
        await client.when(b'data: {"n":3}\n\n')
        client.transport.abortConnection()
        await client.closed
        while self.daemon.observers:
            await _turn()

    @deferred
    async def test_slow_reader(self):
        """A reader that does not read costs no memory; he is told how much he missed."""
        client = await self.connect()
        client.transport.write(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
        await client.when(b"events")
        client.transport.pauseProducing()
        for _ in range(500):
            self.daemon.happen({"message": "x " * 5_000})
            await _turn()
        client.transport.resumeProducing()
        await client.when(b"event: dropped\n")
        self.assertLess(len(client.data), 2_500_000)
        client.transport.abortConnection()
        await client.closed

    @deferred
    async def test_many_readers(self):
        """There are at most so many readers; when one leaves there is room again."""
        readers = []
        for _ in range(MAX_STREAMS):
            client = await self.connect()
            client.transport.write(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
            await client.when(b"events")
            readers.append(client)
        status_, body = split(await self.ask(get(b"/v1/events")))
        self.assertEqual((status_, body["error"]["code"]), (503, "too_many"))
        readers[0].transport.abortConnection()
        while len(self.daemon.observers) == MAX_STREAMS:
            await _turn()
        client = await self.connect()
        client.transport.write(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
        await client.when(b"events")

    @deferred
    async def test_stop_ends_streams(self):
        """Stopping the server ends the readers."""
        client = await self.connect()
        client.transport.write(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
        await client.when(b"events")
        await self.server.stopService()
        await client.closed
        self.assertEqual(self.daemon.observers, [])


class SocketTests(ServerCase):
    """The socket as a file."""

    def mode(self, path):
        """The permission bits of a path."""
        return stat.S_IMODE(os.lstat(path).st_mode)

    @deferred
    async def test_private(self):
        """Socket and directory are for this user alone, whatever the umask."""
        await self.server.stopService()
        os.rmdir(self.path.parent)
        before = os.umask(0)
        try:
            self.server.startService()
        finally:
            os.umask(before)
        self.assertEqual((self.mode(self.path), self.mode(self.path.parent)), (0o600, 0o700))

    @deferred
    async def test_stop_removes(self):
        """Stopping removes the socket and ends idle connections; starting again works."""
        client = await self.connect()
        await self.server.stopService()
        self.assertFalse(os.path.lexists(self.path))
        await client.closed
        self.server.startService()
        self.assertEqual(split(await self.ask(get(b"/v1/status")))[0], 200)

    def test_live_listener(self):
        """A path where somebody listens is refused, and he is left alone."""
        with self.assertRaises(SocketInUse):
            self.make().startService()
        self.assertTrue(os.path.exists(self.path))

    def test_open_directory(self):
        """A directory that others may write to is refused, and not changed."""
        directory = Path(self.mktemp())
        directory.mkdir()
        directory.chmod(0o777)
        with self.assertRaises(UnsafeFile):
            self.make(directory / "c.sock").startService()
        self.assertEqual((self.mode(directory), os.listdir(directory)), (0o777, []))

    def test_readable_directory(self):
        """A directory of ours that others may only read is taken as it is."""
        directory = Path(self.mktemp())
        directory.mkdir(mode=0o755)
        directory.chmod(0o755)
        server = self.make(Path(os.path.relpath(directory)) / "c.sock")
        server.startService()
        self.addCleanup(server.stopService)
        self.assertEqual((self.mode(directory), self.mode(server.path)), (0o755, 0o600))

    def test_unknown_group(self):
        """A group that does not exist is refused before anything is made."""
        path = self.path.with_name("g.sock")
        for group in ("no-such-group-here", "", "a\0b"):
            with self.assertRaises(ConfigError):
                self.make(path, group).startService()
        self.assertFalse(os.path.lexists(path))

    def test_group(self):
        """Members of a group may connect when it is asked for and its directory is right."""
        import grp

        name = grp.getgrgid(os.getegid()).gr_name
        path = self.path.with_name("g.sock")
        with self.assertRaises(UnsafeFile):
            self.make(path, name).startService()  # the directory has mode 0700
        path.parent.chmod(0o710)
        server = self.make(path, name)
        server.startService()
        self.addCleanup(server.stopService)
        self.assertEqual(self.mode(path), 0o660)


def _turn():
    """Let the reactor run once."""
    from twisted.internet import reactor

    turned = Deferred()
    reactor.callLater(0.001, turned.callback, None)
    return turned
