"""The fake and the real client keep the same contract."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import TestCase

from pitelegram.botapi.classify import read_answer
from pitelegram.botapi.client import BotApi
from pitelegram.errors import TelegramError
from pitelegram.testing import botserver
from pitelegram.testing.botapi import FakeBotApi
from pitelegram.testing.contracts_botapi import BotApiContract


class FakeContractTests(BotApiContract, TestCase):
    """The fake."""

    def setUp(self) -> None:
        """Make a fake."""
        self.api = FakeBotApi()

    def will_return(self, value: Any) -> None:
        """Script a value."""
        self.api.script("sendMessage", value)

    def will_refuse(self, code: int, description: str, retry_after: int | None = None) -> None:
        """Script an error, made by the classifier."""
        body = {"ok": False, "error_code": code, "description": description}
        try:
            read_answer("sendMessage", code, retry_after, json.dumps(body).encode())
        except TelegramError as error:
            self.api.script("sendMessage", error)

    def will_have_file(self, content: bytes) -> str:
        """Keep a file."""
        self.api.keep_file("file", content)
        return "file"

    def seen(self) -> tuple[str, dict[str, Any]]:
        """Look at the record."""
        return self.api.calls[-1].method, self.api.calls[-1].params


class RealContractTests(BotApiContract, TestCase):
    """The real client over loopback."""

    def setUp(self) -> None:
        """Listen."""
        from twisted.internet import reactor

        self.server = botserver.ScriptedServer(reactor)
        self.api = BotApi("1:token", self.server.listen(), reactor)
        self.addCleanup(lambda: self._stop())

    async def _stop(self) -> None:
        await self.api.close()
        await self.server.stop()

    def will_return(self, value: Any) -> None:
        """Script an answer."""
        self.server.reply(botserver.result(value))

    def will_refuse(self, code: int, description: str, retry_after: int | None = None) -> None:
        """Script a refusal."""
        more = {} if retry_after is None else {"retry_after": retry_after}
        self.server.reply(botserver.refusal(code, description, **more))

    def will_have_file(self, content: bytes) -> str:
        """Script C{getFile} and the file."""
        self.server.reply(
            botserver.result({"file_id": "f", "file_path": "documents/file 1.bin"}),
            botserver.raw(botserver.answer(content)),
        )
        return "f"

    def seen(self) -> tuple[str, dict[str, Any]]:
        """Look at the last request."""
        return self.server.requests[-1].method, self.server.requests[-1].params
