"""The product's own Bot API client on the sandbox: they mean the same."""

from __future__ import annotations

from pathlib import Path

from pitelegram.botapi.client import BotApi
from pitelegram.botapi.interfaces import Upload
from pitelegram.errors import CertainlyUnsent, Conflict, Refused, Unauthorized, Uncertain
from pitelegram.kernel.deferring import deferred
from tests.sandbox.wire import WireTestCase


class ClientTests(WireTestCase):
    """Results, refusals, faults and files through C{BotApi}."""

    def setUp(self) -> None:
        """Make a client."""
        super().setUp()
        self.api = BotApi(self.sandbox.token, self.sandbox.api_root, self.reactor)
        self.addCleanup(self.api.close)
        self.message = {"chat_id": self.owner, "text": "x"}

    @deferred
    async def test_results(self) -> None:
        """Sends, Threads and an edit that changes nothing."""
        topic = await self.api.call("createForumTopic", {"chat_id": self.owner, "name": "A"})
        place = {"message_thread_id": topic["message_thread_id"]}
        sent = await self.api.call("sendMessage", self.message | place)
        self.assertEqual(sent["message_thread_id"], topic["message_thread_id"])
        edit = self.message | {"message_id": sent["message_id"]}
        self.assertIs(await self.api.call("editMessageText", edit), True)
        self.assertFalse(self.sandbox.chat.world.warnings)

    @deferred
    async def test_faults_are_classified(self) -> None:
        """Each fault is what it should be: uncertain, certainly unsent, refused."""
        for kind, expected in (
            ("html502", Uncertain),
            ("cut", Uncertain),
            ("empty", Uncertain),
            ("no-result", Uncertain),
            ("reset", Uncertain),
            ("drop", Uncertain),
            ("429", CertainlyUnsent),
            ("409", Conflict),
            ("401", Unauthorized),
            ("error", Refused),
        ):
            self.sandbox.faults.add("sendMessage", kind, applied=True)
            await self.assertFailure(self.api.call("sendMessage", self.message), expected)
        self.assertEqual(len(self.sandbox.chat.from_bot()), 10)

    @deferred
    async def test_offline(self) -> None:
        """Off the network nothing is sent, and the client is sure of it."""
        await self.sandbox.go_offline()
        await self.assertFailure(self.api.call("sendMessage", self.message), CertainlyUnsent)
        self.sandbox.go_online()
        await self.api.call("sendMessage", self.message)
        self.assertEqual(len(self.sandbox.chat.from_bot()), 1)

    @deferred
    async def test_files(self) -> None:
        """What is uploaded can be downloaded again."""
        source, copy = Path(self.mktemp()), Path(self.mktemp())
        source.write_bytes(bytes(range(256)) * 1000)
        upload = Upload(
            field="document", path=source, filename="ä b.bin", mime_type="application/x-test"
        )
        sent = await self.api.call("sendDocument", {"chat_id": self.owner}, [upload])
        self.assertEqual(sent["document"]["mime_type"], "application/x-test")
        file_id = sent["document"]["file_id"]
        self.assertEqual(await self.api.download(file_id, copy, 10**6), 256_000)
        self.assertEqual(copy.read_bytes(), source.read_bytes())
