"""The private socket of the agent's tools, and what they do."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.endpoints import UNIXClientEndpoint
from twisted.internet.protocol import Factory
from twisted.internet.task import Clock
from twisted.protocols.basic import LineOnlyReceiver
from twisted.trial.unittest import SynchronousTestCase, TestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from pitelegram.bridge.attaching import attached_answers, takes_files
from pitelegram.bridge.composing import raw_answer
from pitelegram.delivery.shape import parse_delivery
from pitelegram.errors import ToolRefused, UnsafeFile
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.files import ensure_private_dir
from pitelegram.store.inbox import Inbox
from pitelegram.store.outfiles import OutFiles
from pitelegram.store.outgoing import Outgoing
from pitelegram.store.rows import AttachedFile
from pitelegram.testing.stores import worker_database
from pitelegram.worker.agenttools import LARGEST, AgentTools
from pitelegram.worker.interfaces import IAgentTools
from pitelegram.worker.toollink import LONGEST_LINE, MOST_CALLS, ToolLink
from tests.system.test_tools import a_png
from tests.worker.test_queue import Replaced


@implementer(IAgentTools)
class FakeTools:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.waiting: list[Deferred[Any]] = []
        self.cancelled = 0

    def call(self, tool: str, params: dict[str, Any]) -> Deferred[Any]:
        """See L{IAgentTools}."""
        self.calls.append((tool, params))
        result: Deferred[Any] = Deferred(self._cancel)
        self.waiting.append(result)
        return result

    def _cancel(self, _: Deferred[Any]) -> None:
        self.cancelled += 1


class Client(LineOnlyReceiver):
    """What the extension would be."""

    delimiter = b"\n"
    MAX_LENGTH = LONGEST_LINE

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.closed: Deferred[None] = Deferred()
        self._wanted: list[tuple[int, Deferred[None]]] = []

    def say(self, record: Any) -> None:
        """Send one record, or raw bytes."""
        self.sendLine(record if isinstance(record, bytes) else json.dumps(record).encode())

    def lineReceived(self, line: bytes) -> None:
        """Keep it."""
        self.records.append(json.loads(line))
        for entry in list(self._wanted):
            if len(self.records) >= entry[0]:
                self._wanted.remove(entry)
                entry[1].callback(None)

    def count(self, number: int) -> Deferred[None]:
        """Fire when that many records came."""
        if len(self.records) >= number:
            return succeed(None)
        waiter: Deferred[None] = Deferred()
        self._wanted.append((number, waiter))
        return waiter

    def connectionLost(self, reason: Any = None) -> None:
        """The worker closed it."""
        self.closed.callback(None)


class LinkTests(TestCase):
    """L{ToolLink} on a real socket."""

    @deferred
    async def setUp(self) -> None:
        """Listen for this very process."""
        from twisted.internet import reactor

        self.reactor = reactor
        base = Path(self.mktemp())
        self.path = Path(os.path.relpath(base / "links" / "a.sock"))
        ensure_private_dir(self.path.parent.absolute().parent)
        self.tools = FakeTools()
        self.pid: int | None = os.getpid()
        self.link = ToolLink(reactor, self.path, lambda: self.pid, self.tools)
        self.link.startService()
        self.addCleanup(self.link.stopService)

    def client(self) -> Deferred[Client]:
        """Connect as the extension does."""
        endpoint = UNIXClientEndpoint(self.reactor, str(self.path))
        return endpoint.connect(Factory.forProtocol(Client))

    @deferred
    async def test_a_call(self) -> None:
        """The welcome names tools and guidance; an answer goes to its call, whatever comes between."""
        client = await self.client()
        client.say({"type": "hello", "version": 1})
        await client.count(1)
        welcome = client.records[0]
        self.assertEqual(welcome["type"], "welcome")
        self.assertIn("telegram_attach", [tool["name"] for tool in welcome["tools"]])
        for tool in welcome["tools"]:
            self.assertEqual(tool["parameters"]["type"], "object")
            self.assertNotIn("anyOf", str(tool["parameters"]))
        for noise in (b"{", b"[]", b"5", {"type": "news"}, {"type": "call", "id": 5}):
            client.say(noise)
        for number in ("1", "2"):
            client.say({"type": "call", "id": number, "tool": "t", "params": {"n": number}})
        client.say({"type": "cancel", "id": "9"})
        client.say({"type": "hello"})
        await client.count(2)
        self.assertEqual(self.tools.calls, [("t", {"n": "1"}), ("t", {"n": "2"})])
        self.tools.waiting[1].callback(("\ndone", {"x": 1}))
        self.tools.waiting[0].errback(ToolRefused("\nno"))
        await client.count(4)
        self.assertEqual(
            client.records[2:],
            [
                {"type": "result", "id": "2", "ok": True, "text": "\ndone", "details": {"x": 1}},
                {"type": "result", "id": "1", "ok": False, "text": "\nno", "details": {}},
            ],
        )
        client.transport.loseConnection()
        await client.closed

    @deferred
    async def test_only_pi_and_once(self) -> None:
        """A second connection, and any other process, is closed at once; Pi may come again later."""
        first = await self.client()
        second = await self.client()
        await second.closed
        first.transport.loseConnection()
        await first.closed
        self.pid = os.getpid() + 1
        stranger = await self.client()
        await stranger.closed
        self.assertEqual((stranger.records, second.records), ([], []))
        self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o600)
        self.assertEqual(os.stat(self.path.parent).st_mode & 0o777, 0o700)

    @deferred
    async def test_bounds(self) -> None:
        """Too many calls are refused, a line without an end closes, and calls end with the connection."""
        client = await self.client()
        for number in range(MOST_CALLS + 1):
            client.say({"type": "call", "id": str(number), "tool": "t"})
        await client.count(1)
        self.assertEqual(client.records[0]["ok"], False)
        self.assertEqual(len(self.tools.calls), MOST_CALLS)
        client.transport.write(b"x" * (LONGEST_LINE + 2))
        await client.closed
        self.assertEqual(self.tools.cancelled, MOST_CALLS)


class ToolTests(SynchronousTestCase):
    """L{AgentTools}."""

    def setUp(self) -> None:
        """A project with some files."""
        self.project = Path(self.mktemp()).resolve()
        self.project.mkdir()
        database = worker_database(Clock())
        self.addCleanup(database.close)
        self.inbox, self.outgoing = Inbox(database), Outgoing(database)
        self.files = OutFiles(self.project.parent / f"{self.project.name}.files")
        self.inside = self.turn = False
        self.stored = 0
        self.tools = AgentTools(
            self.inbox,
            self.outgoing,
            self.files,
            self.project,
            lambda work, *arguments: succeed(work(*arguments)),
            lambda: self.inside,
            lambda: self.turn,
            self._stored,
            lambda: 5,
        )

    def _stored(self) -> None:
        self.stored += 1

    def call(self, tool: str, **params: Any) -> str:
        """Call one that works."""
        text, _ = self.successResultOf(self.tools.call(tool, params))
        return text

    def refused(self, tool: str, **params: Any) -> str:
        """Call one that is refused."""
        return str(self.failureResultOf(self.tools.call(tool, params), ToolRefused).value)

    def test_interface(self) -> None:
        """It has the interface's method."""
        self.assertTrue(verifyObject(IAgentTools, self.tools))

    def test_copies(self) -> None:
        """A file is copied when it is attached, its mode untouched; pictures that Telegram takes are photos."""
        (self.project / "a.txt").write_text("first")
        (self.project / "a.txt").chmod(0o644)
        (self.project / "b.png").write_bytes(a_png())
        (self.project / "tall.png").write_bytes(a_png(1, 40))
        text = self.call("telegram_attach", paths=["a.txt", "b.png", "tall.png"], caption="c")
        self.assertEqual(text, "\nQueued 3 Telegram attachments.")
        (self.project / "a.txt").write_text("second")
        found = self.outgoing.attached()
        self.assertEqual(
            [(f.name, f.photo, f.caption) for f in found],
            [("a.txt", False, "c"), ("b.png", True, None), ("tall.png", False, None)],
        )
        self.assertEqual(Path(found[0].path).read_text(), "first")
        self.assertEqual(os.stat(found[0].path).st_mode & 0o777, 0o600)
        self.assertEqual(os.stat(self.project / "a.txt").st_mode & 0o777, 0o644)

    def test_refusals(self) -> None:
        """What is no file, too large, too many, or outside is told, and nothing is attached."""
        (self.project / "a.txt").write_text("x")
        (self.project / "empty").touch()
        (self.project / "directory").mkdir()
        with open(self.project / "large", "wb") as large:
            large.truncate(LARGEST + 1)
        os.mkfifo(self.project / "pipe")
        for path in ("missing", "directory", "pipe", "a\0b"):
            self.assertEqual(self.refused("telegram_attach", paths=[path]), f"\nNot a file: {path}")
        self.assertIn("exceeds size limit", self.refused("telegram_attach", paths=["large"]))
        self.assertIn("empty", self.refused("telegram_attach", paths=["empty"]))
        self.assertIn("limit reached", self.refused("telegram_attach", paths=["a.txt"] * 11))
        for wrong in ([], "a.txt", [5], None):
            self.assertTrue(self.refused("telegram_attach", paths=wrong).startswith("\n"))
        self.inside = True
        outside = self.project.parent / f"{self.project.name}.txt"
        outside.write_text("x")
        (self.project / "link").symlink_to(outside)
        self.assertIn("Outside of the project", self.refused("telegram_attach", paths=["link"]))
        self.assertEqual(self.outgoing.attached(), [])
        self.call("telegram_attach", paths=["a.txt"] * 10)
        self.assertIn("limit reached", self.refused("telegram_attach", paths=["a.txt"]))

    def test_all_or_none(self) -> None:
        """When one cannot be copied none is attached, so that a repeat sends nothing twice."""
        for name in ("a.txt", "b.txt"):
            (self.project / name).write_text(name)
        real, taken = self.files.take, []

        def take(path: str, owner: str, most: int) -> str:
            taken.append(path)
            if len(taken) == 2:
                raise OSError("gone")
            return real(path, owner, most)

        self.tools._files = Replaced(self.files, take=take)
        self.refused("telegram_attach", paths=["a.txt", "b.txt"])
        self.assertEqual((len(taken), self.outgoing.attached()), (2, []))
        self.call("telegram_attach", paths=["a.txt", "b.txt"])
        self.assertEqual([f.name for f in self.outgoing.attached()], ["a.txt", "b.txt"])

    def test_swapped_on_the_way(self) -> None:
        """A directory that is a link by the time of the copy leads nowhere."""
        outside = self.project.parent / f"{self.project.name}.outside"
        outside.mkdir()
        (outside / "a.txt").write_text("not yours")
        (self.project / "sub").mkdir()
        (self.project / "sub" / "a.txt").write_text("mine")
        self.inside, real = True, self.files.take

        def swap(*arguments: Any) -> str:
            (self.project / "sub").rename(self.project / "away")
            (self.project / "sub").symlink_to(outside)
            return real(*arguments)

        self.tools._files = Replaced(self.files, take=swap)
        self.refused("telegram_attach", paths=["sub/a.txt"])
        self.assertEqual((self.outgoing.attached(), list(self.files.root.iterdir())), ([], []))

    def test_grows_while_it_is_copied(self) -> None:
        """The limit holds for what is copied, and nothing of it stays."""
        (self.project / "a.txt").write_text("12345")
        with self.assertRaises(UnsafeFile):
            self.files.take(str(self.project / "a.txt"), "owner", 4)
        self.assertEqual(list(self.files.root.iterdir()), [])

    def test_messages(self) -> None:
        """From work of its own; in a turn of Telegram, and to others, it is refused."""
        self.assertIn("Sent Telegram message", self.call("telegram_message", text="**hi**"))
        raw = self.outgoing.raw()
        assert raw is not None
        self.assertEqual((raw["delivery"]["text"], self.stored), ("**hi**", 1))
        self.assertEqual(
            self.refused("telegram_message", text="hi", thread="Other"),
            "\nTelegram agent target is unavailable, ambiguous, or not live.",
        )
        self.turn = True
        self.assertIn("routing is unavailable", self.refused("telegram_message", text="hi"))
        self.assertTrue(self.refused("telegram_message", text=" ").startswith("\ntext"))
        self.assertIn("no such tool", self.refused("telegram_bind"))

    def test_help(self) -> None:
        """On a topic, or on all."""
        self.assertIn("column 0", self.call("telegram_help", topic="buttons"))
        self.assertIn("voice:", self.call("telegram_help", topic="nonsense"))


class DeliveryTests(SynchronousTestCase):
    """L{attached_answers}."""

    def test_groups(self) -> None:
        """Photos side by side are an album of ten at most; each delivery is one that a leader takes."""
        kinds = [True] * 12 + [False, False, True]
        files = [
            AttachedFile(
                path=f"/files/{number}",
                name=f"{number}",
                mime="image/png",
                size=1,
                photo=photo,
                caption="c" if number == 0 else None,
                seq=number + 1,
            )
            for number, photo in enumerate(kinds)
        ]
        found = attached_answers(raw_answer("final-1", "x", 5), files)
        methods = [each["delivery"]["calls"][0]["method"] for each in found]
        self.assertEqual(
            methods,
            ["sendMediaGroup", "sendMediaGroup", "sendDocument", "sendDocument", "sendPhoto"],
        )
        self.assertEqual(
            [each["delivery_id"] for each in found],
            ["final-1.a1", "final-1.a11", "final-1.a13", "final-1.a14", "final-1.a15"],
        )
        for each in found:
            parsed = parse_delivery(each["delivery_id"], each["delivery"])
            self.assertTrue(parsed.has_files)
        said = ("comment-1-1", "message-1")
        self.assertFalse(any(takes_files(raw_answer(name, "x", 5)) for name in said))
        self.assertTrue(takes_files(raw_answer("final-1", "x", 5)))
        media = found[0]["delivery"]["calls"][0]["params"]["media"]
        self.assertEqual((len(media), media[0].get("caption")), (10, "c"))
