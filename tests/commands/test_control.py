"""Commands over the control socket, as processes."""

import json
import os
import re

from twisted.internet.defer import gatherResults
from twisted.internet.endpoints import UNIXServerEndpoint
from twisted.internet.protocol import Factory, Protocol

from pitelegram.control import envelope as envelopes
from pitelegram.control.commands import CommandDesk
from pitelegram.control.envelope import is_legal
from pitelegram.errors import LinkLost, Refusal
from pitelegram.kernel.deferring import deferred
from pitelegram.store.commands import Commands
from pitelegram.store.database import Database
from pitelegram.testing.control import FakeDaemon
from tests.commands.support import CommandCase, ServedCase


class WorkerTests(ServedCase):
    """C{workers …}."""

    @deferred
    async def test_list(self):
        """The list as a table, as JSON, and with private fields only when asked for."""
        self.daemon.public_workers = [
            {
                "name": "blue",
                "state": "running",
                "activity": "idle",
                "queued": 2,
                "restarts": 0,
                "thread_name": "Cedar",
                "slot": "C",
            }
        ]
        self.daemon.private_fields = {"directory": "/projects/blue", "pid": 77}
        table = await self.cli("workers", "list")
        self.assertEqual(table.code, 0)
        self.assertRegex(table.out, r"NAME .*\nblue +running +idle +2 +0 +C\n")
        self.assertNotIn("\033", table.out)
        self.assertNotIn("/projects/blue", table.out)
        listed = await self.cli("workers", "list", "--json")
        self.assertEqual(
            json.loads(listed.out), {"schema_version": 1, "workers": self.daemon.public_workers}
        )
        private = await self.cli("workers", "list", "--private")
        self.assertIn("/projects/blue", private.out)

    @deferred
    async def test_empty_list(self):
        """Without workers the way to the first one is shown."""
        ended = await self.cli("workers", "list")
        self.assertIn("pi-telegram workers start", ended.out)

    @deferred
    async def test_changes(self):
        """Every simple change becomes its action with its arguments, done once each."""
        cases = (
            (["stop", "a"], "worker.stop", {}),
            (["restart", "a"], "worker.restart", {}),
            (["forget", "a"], "worker.forget", {}),
            (["abort", "a"], "worker.abort", {}),
            (["clear-queue", "a"], "worker.clear_queue", {}),
            (["new-session", "a"], "worker.new_session", {}),
            (["compact", "a"], "worker.compact", {}),
            (
                ["compact", "a", "--instructions", "short"],
                "worker.compact",
                {"instructions": "short"},
            ),
            (["prompt", "a", "hello\nthere"], "worker.prompt", {"text": "hello\nthere"}),
            (["prompt", "a", "--", "-x"], "worker.prompt", {"text": "-x"}),
            (["steer", "a", "ü"], "worker.steer", {"text": "ü"}),
            (["set-model", "a", "p/m/n"], "worker.set_model", {"provider": "p", "model": "m/n"}),
            (["set-thinking", "a", "high"], "worker.set_thinking_level", {"level": "high"}),
            (
                ["switch-session", "a", "d/s.jsonl"],
                "worker.switch_session",
                {"session_ref": "d/s.jsonl"},
            ),
            (
                ["answer", "a", "d1", "--option", "2"],
                "worker.answer",
                {"dialog_ref": "d1", "option": 2},
            ),
            (
                ["answer", "a", "d1", "--confirm", "no"],
                "worker.answer",
                {"dialog_ref": "d1", "confirm": False},
            ),
            (
                ["answer", "a", "d1", "--cancel"],
                "worker.answer",
                {"dialog_ref": "d1", "cancel": True},
            ),
        )
        ended = await gatherResults([self.cli("workers", *words) for words, _, _ in cases[:9]])
        ended += await gatherResults([self.cli("workers", *words) for words, _, _ in cases[9:]])
        self.assertEqual([(each.code, each.err) for each in ended], [(0, "")] * len(cases))
        done = sorted((action, json.dumps(args)) for action, _, args, _ in self.daemon.performed)
        self.assertEqual(done, sorted((action, json.dumps(args)) for _, action, args in cases))
        self.assertEqual({subject for _, subject, _, _ in self.daemon.performed}, {"spec:a"})
        self.assertEqual(len({request_id for *_, request_id in self.daemon.performed}), len(cases))

    @deferred
    async def test_prompt_from_stdin(self):
        """C{-} reads the prompt from standard input."""
        ended = await self.cli("workers", "prompt", "a", "-", stdin="größer\nals".encode())
        self.assertEqual(ended.out, "prompt a: taken; the answer comes in its Thread.\n")
        self.assertEqual(self.daemon.performed[0][2], {"text": "größer\nals"})

    @deferred
    async def test_request_id(self):
        """The same request id is one effect and one envelope; another command under it conflicts."""
        words = ["workers", "prompt", "a", "hi", "--request-id", "once"]
        first = await self.envelope(*words)
        self.assertEqual((first["status"], first["request_id"]), ("accepted", "once"))
        self.assertEqual(await self.envelope(*words), first)
        words[3] = "other"
        conflict = await self.envelope(*words, code=1)
        self.assertEqual(conflict["status"], "duplicate_request")
        self.assertEqual(len(self.daemon.performed), 1)

    @deferred
    async def test_refused(self):
        """A refusal is exit code 1: words for a person, the envelope with C{--json}."""
        self.daemon.answers["worker.stop"] = Refusal("unknown_worker", "there is no such worker")
        ended = await self.cli("workers", "stop", "nobody")
        self.assertEqual((ended.code, ended.out), (1, ""))
        self.assertIn("there is no such worker", ended.err)
        envelope = await self.envelope("workers", "stop", "nobody", code=1)
        self.assertEqual(envelope["disposition"], "terminal_rejected")

    @deferred
    async def test_uncertain(self):
        """An uncertain end is an envelope too, with exit code 1."""
        self.daemon.answers["worker.stop"] = LinkLost("the link broke")
        envelope = await self.envelope("workers", "stop", "a", code=1)
        self.assertEqual(envelope["disposition"], "terminal_uncertain")

    @deferred
    async def test_wrong_form(self):
        """A value of wrong form is a usage error for a person, an envelope for a program."""
        ended = await self.cli("workers", "set-thinking", "a", "bogus")
        self.assertEqual((ended.code, ended.out), (2, ""))
        self.assertIn("must be one of off", ended.err)
        envelope = await self.envelope("workers", "stop", "a", "--request-id", "ä", code=1)
        self.assertEqual((envelope["status"], envelope["dry_run"]), ("invalid_request", True))
        ended = await self.cli("workers", "set-model", "a", "nomodel")
        self.assertEqual(ended.code, 2)
        self.assertEqual(self.daemon.performed, [])

    @deferred
    async def test_state(self):
        """The state of a worker's Pi."""
        self.daemon.answers["worker.get_state"] = {"streaming": True, "queued": 3}
        ended = await self.cli("workers", "state", "a")
        self.assertEqual(ended.out, "streaming: True\nqueued: 3\n")
        envelope = await self.envelope("workers", "state", "a")
        self.assertEqual(envelope["result"], {"streaming": True, "queued": 3})


class StartTests(ServedCase):
    """C{workers start}."""

    def setUp(self):
        """The daemon starts a worker called blue."""
        super().setUp()
        self.daemon.answers["worker.start"] = {"worker_id": None, "name": "blue"}

    def be(self, state, **fields):
        """The worker is in this state."""
        self.daemon.public_workers = [{"name": "blue", "state": state, **fields}]

    @deferred
    async def test_waits(self):
        """The command returns when the worker is ready; the directory arrives as an absolute path."""
        self.be("spawning")
        starting = self.cli("workers", "start", "sub/../dir", directory=str(self.agent))
        self.reactor.callLater(0.6, self.be, "running")
        ended = await starting
        self.assertEqual(ended.code, 0, ended.err)
        self.assertIn("blue is ready", ended.out)
        expected = os.path.join(os.path.realpath(self.agent), "dir")
        self.assertEqual(
            self.daemon.performed[0][:3],
            ("worker.start", f"spec:{expected}", {"directory": expected}),
        )

    @deferred
    async def test_warned(self):
        """What speaks against a start is said to a person too; it is no failure."""
        self.be("running")
        self.daemon.answers["worker.start"]["warnings"] = ["memory is short"]
        ended = await self.cli("workers", "start", "/x")
        self.assertEqual((ended.code, ended.err), (0, "pi-telegram: warning: memory is short\n"))
        self.assertIn("blue is ready", ended.out)

    @deferred
    async def test_fails(self):
        """A worker that does not come up is exit code 1 with the reason."""
        self.be("failed", last_error="no such Pi")
        ended = await self.cli("workers", "start", "/x")
        self.assertEqual(ended.code, 1)
        self.assertIn("no such Pi", ended.err)

    @deferred
    async def test_json(self):
        """With C{--json} standard output is the envelope alone."""
        self.be("running")
        envelope = await self.envelope("workers", "start", "/x")
        self.assertEqual(envelope["result"]["name"], "blue")
        self.be("failed")
        envelope = await self.envelope("workers", "start", "/y", code=1)
        self.assertTrue(envelope["ok"])

    @deferred
    async def test_no_wait(self):
        """C{--no-wait} returns at once."""
        self.be("spawning")
        ended = await self.cli("workers", "start", "/x", "--no-wait")
        self.assertEqual(ended.code, 0)
        self.assertIn("is starting", ended.out)

    @deferred
    async def test_refused(self):
        """A refused directory is not waited for."""
        self.daemon.answers["worker.start"] = Refusal("outside-roots", "outside the roots")
        ended = await self.cli("workers", "start", "/etc")
        self.assertEqual(ended.code, 1)
        self.assertIn("outside the roots", ended.err)


class OutboxTests(ServedCase):
    """C{outbox …}."""

    @deferred
    async def test_inspect(self):
        """Parked deliveries as a table and as JSON."""
        self.assertIn("Nothing", (await self.cli("outbox", "inspect")).out)
        self.daemon.items = [
            {"key": "k1", "state": "uncertain", "reason": "cut", "attempts": 1, "created_at_ms": 0}
        ]
        self.assertRegex((await self.cli("outbox", "inspect")).out, r"k1 +uncertain +1 +\d+-.* cut")
        listed = json.loads((await self.cli("outbox", "inspect", "--json")).out)
        self.assertEqual(listed["items"], self.daemon.items)

    @deferred
    async def test_retry(self):
        """One is sent again."""
        ended = await self.cli("outbox", "retry", "k1")
        self.assertEqual((ended.code, ended.out), (0, "It is sent again.\n"))
        self.assertEqual(self.daemon.performed[0][:3], ("outbox.retry", "", {"key": "k1"}))


class ThreadsTests(ServedCase):
    """C{threads}."""

    @deferred
    async def test_list(self):
        """The workers' Threads; nothing of the private part."""
        self.assertIn("No worker", (await self.cli("threads", "list")).out)
        worker = {"name": "blue", "state": "stopped", "thread_name": "Cedar", "slot": "C"}
        self.daemon.public_workers = [worker]
        self.assertIn("Cedar", (await self.cli("threads", "list")).out)
        shown = json.loads((await self.cli("threads", "list", "--json")).out)
        self.assertEqual(shown, {"schema_version": 1, "threads": [worker]})

    @deferred
    async def test_review_and_delete(self):
        """Each is its own command; with an id it is done once."""
        self.daemon.answers["threads.review"] = {"inactive": ["Cedar", "Dune"]}
        ended = await self.cli("threads", "review")
        self.assertEqual(ended.code, 0, ended.err)
        self.assertTrue(ended.out.startswith("Cedar\nDune\n"), ended.out)
        self.daemon.answers["threads.review"] = {"inactive": []}
        self.assertIn("Nothing is inactive", (await self.cli("threads", "review")).out)
        self.daemon.answers["threads.delete_reviewed"] = {"deleted": 1, "kept": 1}
        for _ in range(2):
            ended = await self.cli("threads", "delete-reviewed", "--request-id", "d1")
            self.assertIn("Deleted: 1, kept because they are in use: 1.", ended.out)
        ended = await self.cli("threads", "delete-reviewed", "--dry-run")
        self.assertIn("dry run", ended.out)
        done = [action for action, *_ in self.daemon.performed]
        self.assertEqual(done, ["threads.review"] * 2 + ["threads.delete_reviewed"])

    @deferred
    async def test_refused(self):
        """Without a review there is nothing to delete: exit code 1 and the reason."""
        self.daemon.answers["threads.delete_reviewed"] = Refusal("stale", "review again")
        ended = await self.cli("threads", "delete-reviewed")
        self.assertEqual((ended.code, ended.err), (1, "pi-telegram: review again\n"))


class SocketPathTests(ServedCase):
    """Where the socket is looked for."""

    @deferred
    async def test_published_path(self):
        """The path that a live owner published wins over the default; a dead one's does not."""
        await self.server.stopService()
        elsewhere = self.agent / "private" / "c.sock"
        await self.serve(elsewhere, self.server._resource._desk.commands).stopService()
        self.server.path = elsewhere
        self.server.startService()
        self.own(controlSocketPath=str(elsewhere))
        self.assertEqual((await self.cli("workers", "list")).code, 0)
        self.own(birth="1:start:1", controlSocketPath=str(elsewhere))
        self.assertEqual((await self.cli("workers", "list")).code, 1)
        told = await self.cli("workers", "list", "--control-socket", str(elsewhere))
        self.assertEqual(told.code, 0)


class WithoutDaemonTests(CommandCase):
    """Nobody listens."""

    @deferred
    async def test_changes(self):
        """Nothing was begun: an envelope that says so, exit code 1."""
        ended = await self.cli("workers", "stop", "a", "--json")
        envelope = json.loads(ended.out)
        self.assertTrue(is_legal(envelope))
        self.assertEqual(
            (ended.code, envelope["status"], envelope["disposition"]),
            (1, "backend_unavailable", "no_receipt"),
        )

    @deferred
    async def test_dry_run_needs_nobody(self):
        """A dry run is answered without a daemon, without a directory, and makes nothing."""
        nowhere = self.agent / "nowhere"
        ended = await self.cli(
            "workers", "start", "/x", "--dry-run", "--json", "--agent-dir", str(nowhere)
        )
        envelope = json.loads(ended.out)
        self.assertEqual((ended.code, envelope["status"]), (0, "dry_run"))
        self.assertFalse(nowhere.exists())

    @deferred
    async def test_reads(self):
        """Listings fail with a hint."""
        for words in (["workers", "list"], ["outbox", "inspect"], ["workers", "state", "a"]):
            ended = await self.cli(*words)
            self.assertEqual((ended.code, ended.out), (1, ""))
            self.assertIn("pi-telegram status", ended.err)

    @deferred
    async def test_stale_socket(self):
        """A socket that nobody listens on, and one that is open to all, are not used."""
        import socket

        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(self.paths.control_socket))
        ended = await self.cli("workers", "list")
        self.assertIn("no daemon listens", ended.err)
        self.paths.control_socket.chmod(0o666)
        ended = await self.cli("workers", "list")
        self.assertIn("not private", ended.err)


class Lying(Protocol):
    """Answers a whole request with fixed bytes, then closes."""

    def connectionMade(self):
        """Nothing has come yet."""
        self.data = b""

    def dataReceived(self, data):
        """Answer once the body is there."""
        self.data += data
        head, end, body = self.data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        if end and len(body) >= (int(length[1]) if length else 0):
            self.factory.requests.append(self.data)
            self.transport.write(self.factory.answer)
            self.transport.loseConnection()


class FateTests(CommandCase):
    """A daemon that breaks off or talks nonsense: exit code 2 and an empty standard output."""

    @deferred
    async def answer(self, data):
        """Listen with fixed bytes as the only answer."""
        self.factory = Factory.forProtocol(Lying)
        self.factory.answer = data
        self.factory.requests = []
        path = str(self.paths.control_socket)
        port = await UNIXServerEndpoint(self.reactor, path, mode=0o600).listen(self.factory)
        self.addCleanup(port.stopListening)

    def http(self, value):
        """The bytes of an HTTP answer."""
        body = json.dumps(value).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)

    def right(self, **changes):
        """A right envelope with changes."""
        value = envelopes.make(
            action="worker.stop",
            request_id="r",
            dry_run=False,
            status="accepted",
            disposition="terminal_accepted",
            result={},
        )
        return {**value, **changes}

    @deferred
    async def test_right_answer(self):
        """The server of these tests is understood when it tells no lies."""
        await self.answer(self.http(self.right()))
        ended = await self.cli("workers", "stop", "a", "--request-id", "r", "--json")
        self.assertEqual((ended.code, json.loads(ended.out)), (0, self.right()))

    @deferred
    async def test_unproven(self):
        """Cut, broken, illegal and foreign answers prove nothing."""
        await self.answer(b"")
        legal = self.right()
        for data in (
            b"",
            b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
            b"nonsense\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{",
            b"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\n{}",
            self.http({}),
            self.http([]),
            self.http({key: value for key, value in legal.items() if key != "warnings"}),
            self.http({**legal, "pane_id": 1}),
            self.http({**legal, "disposition": "in_progress"}),
            self.http({**legal, "request_id": "other"}),
            self.http({**legal, "action": "worker.start"}),
            self.http({**legal, "schema_version": True}),
        ):
            self.factory.answer = data
            ended = await self.cli("workers", "stop", "a", "--request-id", "r", "--json")
            self.assertEqual((ended.code, ended.out), (2, ""), data)
            self.assertIn("--request-id r", ended.err)

    @deferred
    async def test_broken_request(self):
        """A daemon that took it for broken HTTP began nothing."""
        await self.answer(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\n{}")
        ended = await self.cli("workers", "stop", "a", "--request-id", "r", "--json")
        self.assertEqual(ended.code, 1)
        self.assertEqual(json.loads(ended.out)["disposition"], "no_receipt")

    @deferred
    async def test_looked_up(self):
        """A lost answer is read from the daemon's store, if it is there for exactly this request."""
        await self.answer(b"")
        database = Database(self.paths.database, "leader", self.reactor, self.reactor)
        database.startService()
        self.addCleanup(database.stopService)
        await database.acquire("epoch")
        desk = CommandDesk(FakeDaemon(), Commands(database, "host"), self.reactor)
        stop = {"action": "worker.stop", "request_id": "r", "target": {"name": "a"}}
        right = await desk.submit({"schema_version": 1, **stop})
        self.assertTrue(right["ok"])
        ended = await self.cli("workers", "stop", "a", "--request-id", "r", "--json")
        self.assertEqual((ended.code, json.loads(ended.out)), (0, right))
        for verb, name, request_id in (("stop", "b", "r"), ("abort", "a", "r"), ("stop", "a", "q")):
            ended = await self.cli("workers", verb, name, "--request-id", request_id, "--json")
            self.assertEqual((ended.code, ended.out), (2, ""), (verb, name, request_id))

    @deferred
    async def test_sent_once(self):
        """The client never sends a change twice by itself."""
        await self.answer(b"")
        await self.cli("workers", "stop", "a")
        self.assertEqual(len(self.factory.requests), 1)

    @deferred
    async def test_reads_are_only_refused(self):
        """A read whose answer is lost is exit code 1."""
        await self.answer(b"")
        ended = await self.cli("workers", "state", "a")
        self.assertEqual((ended.code, ended.out), (1, ""))
        self.assertEqual((await self.cli("workers", "list")).code, 1)


class RawTests(ServedCase):
    """C{command --stdin}."""

    @deferred
    async def raw(self, data, code):
        """Give a raw request; returns the envelope."""
        ended = await self.cli("command", "--stdin", stdin=data)
        self.assertEqual(ended.code, code, ended.err)
        envelope = json.loads(ended.out)
        self.assertTrue(is_legal(envelope))
        self.assertEqual(ended.out.count("\n"), 1)
        return envelope

    @deferred
    async def test_command(self):
        """A request goes through as it is; its envelope comes out."""
        request = {
            "schema_version": 1,
            "action": "worker.abort",
            "request_id": "x",
            "target": {"worker_id": "w1"},
        }
        envelope = await self.raw(json.dumps(request).encode(), 0)
        self.assertEqual((envelope["status"], envelope["request_id"]), ("accepted", "x"))
        self.assertEqual(self.daemon.performed, [("worker.abort", "spec:w1", {}, "x")])

    @deferred
    async def test_wrong(self):
        """Garbage, ambiguous and invalid requests are answered with an envelope, exit code 1."""
        for data in (b"", b"garbage", b"[]", b'{"a":1,"a":2}', b"\xff", b" " * 1_100_000):
            envelope = await self.raw(data, 1)
            self.assertEqual((envelope["status"], envelope["action"]), ("invalid_request", ""))
        self.assertEqual(self.daemon.performed, [])

    @deferred
    async def test_without_daemon(self):
        """Dry runs and reads without a daemon."""
        await self.server.stopService()
        request = {
            "schema_version": 1,
            "action": "worker.stop",
            "dry_run": True,
            "target": {"name": "a"},
        }
        envelope = await self.raw(json.dumps(request).encode(), 0)
        self.assertEqual(envelope["status"], "dry_run")
        del request["dry_run"]
        request["action"] = "resolve_target"
        envelope = await self.raw(json.dumps(request).encode(), 1)
        self.assertEqual(envelope["status"], "backend_unavailable")
