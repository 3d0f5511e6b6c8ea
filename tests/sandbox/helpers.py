"""A sandbox bot without HTTP, under a clock that tests move."""

from __future__ import annotations

from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.sandbox.chat import SandboxChat
from pitelegram.sandbox.errors import ApiError
from pitelegram.sandbox.methods import BotApiMethods
from pitelegram.sandbox.parameters import Parameters, Part, from_json

START = 1_800_000_000.0


class BotTestCase(SynchronousTestCase):
    """Tests that call methods as a bot and act as people."""

    def setUp(self) -> None:
        """Make a world at a fixed time."""
        self.clock = Clock()
        self.clock.advance(START)
        self.chat = SandboxChat(self.clock, Random(7))
        self.world = self.chat.world
        self.methods = BotApiMethods(self.world, self.clock)
        self.owner = self.chat.owner["id"]

    def start(self, method: str, files: dict[str, Part] | None = None, **params: Any) -> Deferred:
        """Begin a call."""
        return self.methods.call(method, Parameters(from_json(params), files))

    def call(self, method: str, files: dict[str, Part] | None = None, **params: Any) -> Any:
        """Make a call that is answered at once."""
        return self.successResultOf(self.start(method, files, **params))

    def send(self, text: str = "hi", **params: Any) -> dict[str, Any]:
        """Send a message to the owner."""
        return self.call("sendMessage", chat_id=self.owner, text=text, **params)

    def refused(self, method: str, files: dict[str, Part] | None = None, **params: Any) -> str:
        """Make a call that must fail; return its description."""
        error = self.failureResultOf(self.start(method, files, **params), ApiError).value
        self.assertEqual(error.as_json()["error_code"], error.code)
        return error.description

    def assert_refused(self, problem: str, method: str, /, **params: Any) -> None:
        """Assert that a call fails with 400 and that text."""
        self.assertEqual(self.refused(method, **params), f"Bad Request: {problem}")

    def topic(self, name: str = "A") -> int:
        """Make a Thread as the bot; return its id."""
        return self.call("createForumTopic", chat_id=self.owner, name=name)["message_thread_id"]

    def updates(self) -> list[dict[str, Any]]:
        """Return what is unconfirmed."""
        return self.world.updates.pending()


def buttons(*labels: str) -> dict[str, Any]:
    """Return a keyboard of one row."""
    return {"inline_keyboard": [[{"text": label, "callback_data": label} for label in labels]]}
