"""Client, long poll and Threads together, against the local Telegram."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase
from zope.interface import implementer

from pitelegram.botapi.client import BotApi
from pitelegram.botapi.interfaces import IUpdateSink
from pitelegram.botapi.longpoll import LongPoll
from pitelegram.errors import CertainlyUnsent, Refusal, Uncertain
from pitelegram.sandbox.chat import Attachment
from pitelegram.sandbox.server import SandboxTelegram
from pitelegram.store.bindings import Bindings
from pitelegram.store.leadership import Leadership
from pitelegram.testing.stores import leader_database
from pitelegram.threads.loss import ThreadLoss
from pitelegram.threads.provision import Threads


@implementer(IUpdateSink)
class Sink:
    """Keeps ids in order, and shows service messages to Threads."""

    def __init__(self, created: Callable[[dict[str, Any]], Any]) -> None:
        self.cursor: int | None = None
        self.ids: list[int] = []
        self.texts: list[str] = []
        self._created = created

    def next_offset(self) -> int | None:
        """The cursor."""
        return self.cursor

    def accept(self, updates: Sequence[dict[str, Any]], next_offset: int) -> Deferred[None]:
        """Store."""
        self.cursor = next_offset
        for update in updates:
            self.ids.append(update["update_id"])
            message = update.get("message", {})
            if "forum_topic_created" in message:
                self._created(message)
            elif "text" in message:
                self.texts.append(message["text"])
        return succeed(None)


class SandboxTests(TestCase):
    """The edge of the program on a Telegram that misbehaves to order."""

    timeout = 30

    def setUp(self) -> None:
        """Start everything."""
        from twisted.internet import reactor

        self.reactor: Any = reactor
        self.sandbox = SandboxTelegram(reactor, reactor, Random(3))
        self.sandbox.startService()
        self.addCleanup(self.sandbox.stopService)
        self.faults = self.sandbox.faults
        self.owner = self.sandbox.chat.owner["id"]
        self.api = BotApi(self.sandbox.token, self.sandbox.api_root, reactor)
        self.addCleanup(self.api.close)
        self.database = leader_database(reactor)
        self.addCleanup(self.database.stopService)
        self.bindings = Bindings(self.database)
        self.threads = Threads(
            self.api,
            self.bindings,
            Leadership(self.database),
            reactor,
            Random(1),
            lambda: self.owner,
        )
        self.sink = Sink(self.threads.created)
        self.poll = LongPoll(self.api, self.sink, reactor, Random(2), monotonic)
        self.addCleanup(self._stop)

    async def _stop(self) -> None:
        if self.threads.running:
            await self.threads.stopService()
        if self.poll.running:
            await self.poll.stopService()

    async def start(self) -> None:
        """Learn what the bot can, make Threads, poll."""
        self.threads.startService()
        self.threads.learn(await self.api.call("getMe", {}))
        self.poll.startService()

    async def until(self, true: Callable[[], Any]) -> None:
        """Wait for a condition."""
        while not true():
            await deferLater(self.reactor, 0.005)

    def thread_of(self, key: str) -> int | None:
        """The Thread of a binding."""
        binding = self.bindings.get(key)
        return None if binding is None else binding.thread_id

    async def test_first_threads(self) -> None:
        """The Control Thread and a worker's Thread appear with their titles."""
        await self.start()
        await self.threads.ensure("daemon", "daemon", None)
        await self.threads.ensure("spec-1", "managed", "/x")
        await self.until(lambda: self.thread_of("spec-1") and self.thread_of("daemon"))
        self.assertEqual({each.name for each in self.sandbox.chat.threads}, {"🛠 Control", "A"})

    async def test_lost_answer(self) -> None:
        """An answer that never came: the Thread is found by its service message."""
        await self.start()
        self.faults.add("createForumTopic", "html502", applied=True)
        await self.threads.ensure("spec-1", "managed", "/x")
        await self.until(lambda: self.thread_of("spec-1"))
        self.assertEqual(self.thread_of("spec-1"), self.sandbox.chat.thread_named("A").thread_id)
        self.assertEqual(len(self.sandbox.chat.threads), 1)

    async def test_deleted_by_the_user(self) -> None:
        """A Thread that the user deleted is proven gone and replaced; a living one is not."""
        await self.start()
        await self.threads.ensure("spec-1", "managed", "/x")
        await self.until(lambda: self.thread_of("spec-1"))
        loss = ThreadLoss(self.api, self.bindings, self.threads)
        self.assertEqual(await loss.examine("spec-1"), "alive")
        old = self.thread_of("spec-1")
        self.sandbox.chat.user_deletes_thread(old)
        self.faults.add("editForumTopic", "html502")
        self.assertEqual(await loss.examine("spec-1"), "unknown")
        self.assertEqual(await loss.examine("spec-1"), "lost")
        await self.until(lambda: self.thread_of("spec-1") not in (None, old))
        self.assertEqual([each.name for each in self.sandbox.chat.threads], ["A"])

    async def test_updates_survive_faults(self) -> None:
        """Whatever happens to polls, every message comes once."""
        await self.start()
        for kind in ("cut", "html502"):
            self.faults.add("getUpdates", kind)
            self.sandbox.chat.user_sends(f"with {kind}")
            await self.until(lambda kind=kind: f"with {kind}" in self.sink.texts)
        self.assertEqual(len(self.sink.texts), 2)
        self.assertEqual(len(self.sink.ids), len(set(self.sink.ids)))
        self.sandbox.chat.user_sends("at last")
        await self.until(lambda: "at last" in self.sink.texts)
        self.assertEqual(self.poll.snapshot()["phase"], "long-poll")

    async def test_conflict(self) -> None:
        """Another poller's displacement is shown, and passes."""
        await self.start()
        await self.until(lambda: any(c.method == "getUpdates" for c in self.sandbox.calls))
        other = BotApi(self.sandbox.token, self.sandbox.api_root, self.reactor)
        self.addCleanup(other.close)
        theirs = other.call("getUpdates", {"timeout": 25})
        await self.until(lambda: self.poll.snapshot()["phase"] == "conflict")
        theirs.addErrback(lambda failure: None)
        theirs.cancel()
        self.sandbox.chat.user_sends("after")
        await self.until(lambda: self.sink.texts == ["after"])
        await self.until(lambda: self.poll.snapshot()["phase"] == "long-poll")

    async def test_away_and_back(self) -> None:
        """Telegram goes away and comes back on the same address."""
        await self.start()
        await self.sandbox.go_offline()
        self.sandbox.chat.user_sends("meanwhile")
        await self.until(lambda: self.poll.snapshot()["phase"] == "retrying")
        params = {"chat_id": self.owner, "text": "x"}
        await self.assertFailure(self.api.call("sendMessage", params), CertainlyUnsent)
        self.sandbox.go_online()
        await self.until(lambda: self.sink.texts == ["meanwhile"])

    async def test_sends(self) -> None:
        """A send whose answer is cut is uncertain, and has arrived once."""
        self.faults.add("sendMessage", "cut", applied=True)
        params = {"chat_id": self.owner, "text": "once"}
        await self.assertFailure(self.api.call("sendMessage", params), Uncertain)
        self.assertEqual([m.text for m in self.sandbox.chat.from_bot()], ["once"])

    async def test_download(self) -> None:
        """A file the owner sent is streamed to disk; one over the limit is not."""
        sent = self._attachment(b"z" * 200_000)
        destination = Path(self.mktemp())
        size = await self.api.download(sent, destination, 1_000_000)
        self.assertEqual((size, destination.read_bytes()), (200_000, b"z" * 200_000))
        await self.assertFailure(self.api.download(sent, Path(self.mktemp()), 1000), Refusal)

    def _attachment(self, content: bytes) -> str:
        attachment = Attachment(kind="document", data=content, name="a.bin")
        message = self.sandbox.chat.user_sends(attachment=attachment)
        return message.content["document"]["file_id"]
