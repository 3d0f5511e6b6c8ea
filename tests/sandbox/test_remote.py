"""The control API, and the sandbox as a process of its own."""

from __future__ import annotations

import os
import sys
from typing import Any

import treq
from twisted.internet.defer import Deferred
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.jsonio import loads
from pitelegram.sandbox.process import parse
from pitelegram.testing.telegram import SandboxClient
from tests.sandbox.wire import WireTestCase


class ControlTests(WireTestCase):
    """What another process may order."""

    def setUp(self) -> None:
        """Make a client."""
        super().setUp()
        self.client = SandboxClient(self.reactor, self.sandbox.addresses())

    @deferred
    async def test_people_act(self) -> None:
        """Messages, presses, edits, reactions, Threads and strangers."""
        client = self.client
        thread = (await client.act("create_thread", name="A"))["thread_id"]
        sent = await client.send("hello", thread)
        self.assertEqual(sent["thread_id"], thread)
        await client.act("edit", message_id=sent["message_id"], text="hallo")
        await client.act("react", message_id=sent["message_id"], emoji="👍")
        keyboard = {"inline_keyboard": [[{"text": "go", "callback_data": "d"}]]}
        answer = await self.call("sendMessage", chat_id=self.owner, text="x", reply_markup=keyboard)
        await client.press(answer["result"]["message_id"], "go")
        await client.act("stranger", text="hi")
        await client.act("send_file", kind="document", base64="eA==", name="a.txt", text="c")
        kinds = [
            sorted(set(u) - {"update_id"})[0] for u in self.sandbox.chat.world.updates.pending()
        ]
        self.assertEqual(
            kinds,
            ["message", "message", "edited_message", "callback_query", "message", "message",
             "message"],
        )  # fmt: skip
        texts = [m.get("text") for m in await client.messages(thread)]
        self.assertEqual(texts, [None, "hallo"])
        await client.act("delete_thread", thread=thread)
        self.assertNotIn(thread, [t["message_thread_id"] for t in await client.threads()])

    @deferred
    async def test_waiting(self) -> None:
        """A wait ends as soon as the message is there, and at once when it was there before."""
        waiting = self.client.when_message(lambda m: m.get("text") == "answer")
        await self.send("other")
        self.assertNoResult(waiting)
        await self.send("answer")
        self.assertEqual((await waiting)["text"], "answer")
        found = await self.client.when_message(lambda m: m.get("text") == "other")
        self.assertEqual(found["text"], "other")

    @deferred
    async def test_waiting_ends(self) -> None:
        """A message that never comes ends in TimeoutError."""
        waiting = self.client.when_message(lambda m: False, timeout=0.05)
        await self.assertFailure(waiting, TimeoutError)

    @deferred
    async def test_waiting_in_process(self) -> None:
        """The same in the test's own process."""
        waiting = self.sandbox.when_message(lambda m: m.text == "answer")
        await self.send("answer")
        self.assertEqual((await waiting).text, "answer")

    @deferred
    async def test_pressing_in_process(self) -> None:
        """The newest button of a label is pressed; a label that is nowhere is an error."""
        keyboard = {"inline_keyboard": [[{"text": "go", "callback_data": "d"}]]}
        for text in "ab":
            await self.call("sendMessage", chat_id=self.owner, text=text, reply_markup=keyboard)
        self.sandbox.press("go")
        query = self.sandbox.chat.world.updates.pending()[-1]["callback_query"]
        self.assertEqual(query["message"]["text"], "b")
        self.assertRaises(LookupError, self.sandbox.press, "stop")

    @deferred
    async def test_faults_and_network(self) -> None:
        """Faults and the network can be switched; calls can be read."""
        await self.client.fault("getMe", "error", code=418, description="teapot")
        self.assertEqual((await self.call("getMe"))["error_code"], 418)
        await self.client.fault("getMe", "error", times=None)
        await self.client.clear_faults()
        self.assertTrue((await self.call("getMe"))["ok"])
        await self.client.offline()
        self.assertIsNone(self.sandbox._listening)
        await self.client.offline(False)
        self.assertTrue((await self.call("getMe"))["ok"])
        self.assertEqual([c["code"] for c in await self.client.calls("getMe")], [0, 200, 200])

    @deferred
    async def test_mistakes(self) -> None:
        """Unknown actions, faults and wrong arguments are refused with a reason."""
        for wrong in (
            self.client.act("nonsense"),
            self.client.send(""),
            self.client.fault("getMe", "meteorite"),
            self.client.fault("getMe", "hang", wrong=1),
            self.client.act("press", message_id=1, label="x"),
        ):
            await self.assertFailure(wrong, RuntimeError)

    @deferred
    async def test_the_secret(self) -> None:
        """Without the header, or with a wrong one, there is nothing."""
        url = self.sandbox.addresses()["control_root"] + "messages"
        for headers in ({}, {"X-Sandbox-Control": "wrong"}):
            response = await treq.get(url, headers=headers, persistent=False)
            self.assertEqual(response.code, 404)
            self.assertEqual(await response.content(), b"")


class _Process(ProcessProtocol):
    """Gives the first line of stdout, and the end."""

    def __init__(self) -> None:
        self.first: Deferred[bytes] = Deferred()
        self.ended: Deferred[int] = Deferred()
        self.output = b""
        self.errors = b""

    def outReceived(self, data: bytes) -> None:
        """Collect until the line is whole."""
        self.output += data
        if b"\n" in self.output and not self.first.called:
            self.first.callback(self.output.partition(b"\n")[0])

    def errReceived(self, data: bytes) -> None:
        """Collect."""
        self.errors += data

    def processEnded(self, reason: Failure) -> None:
        """Tell."""
        self.ended.callback(reason.value.exitCode)  # type: ignore[union-attr]


class ProcessTests(WireTestCase):
    """C{python -m pitelegram.sandbox.server}."""

    @deferred
    async def test_runs_alone(self) -> None:
        """It prints its addresses, serves, and ends with 0 on SIGTERM, silent on stderr."""
        token = f"77:{'t' * 35}"
        arguments = [sys.executable, "-m", "pitelegram.sandbox.server", "--control"]
        process = _Process()
        transport: Any = self.reactor.spawnProcess(
            process,
            sys.executable,
            [*arguments, "--token", token],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        addresses = loads(await process.first)
        self.assertEqual(addresses["token"], token)
        client = SandboxClient(self.reactor, addresses)
        await client.send("/hello")
        response = await treq.get(
            f"{addresses['api_root']}/bot{token}/getUpdates", persistent=False
        )
        (update,) = (await response.json())["result"]
        self.assertEqual(update["message"]["text"], "/hello")
        response = await treq.get(addresses["page_url"], persistent=False)
        self.assertIn(b"<!doctype html>", await response.content())
        transport.signalProcess("TERM")
        self.assertEqual(await process.ended, 0)
        self.assertEqual(process.errors, b"")


class CommandLineTests(SynchronousTestCase):
    """Options of the process."""

    def test_a_wrong_token_is_refused(self) -> None:
        """A token of another shape ends with exit code 2."""
        self.patch(sys, "stderr", open(os.devnull, "w"))  # noqa: SIM115
        self.addCleanup(lambda opened: opened.close(), sys.stderr)
        error = self.assertRaises(SystemExit, parse, ["--token", "short"])
        self.assertEqual(error.code, 2)
