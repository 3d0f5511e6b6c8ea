"""Faults on order, seen by an HTTP client."""

from __future__ import annotations

from twisted.internet.error import ConnectionRefusedError
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import ResponseFailed

from pitelegram.kernel.deferring import deferred
from pitelegram.sandbox.faults import Faults
from tests.sandbox.wire import WireTestCase


class OrderTests(SynchronousTestCase):
    """Which calls are hit."""

    def test_counting(self) -> None:
        """Two times means two calls, of that method only."""
        faults = Faults()
        fault = faults.add("sendMessage", "hang", times=2)
        self.assertIsNone(faults.take("getMe"))
        done = fault.when_done()
        self.assertIs(faults.take("sendMessage"), fault)
        self.successResultOf(fault.when_hit())
        self.assertNoResult(done)
        self.assertIs(faults.take("sendMessage"), fault)
        self.assertIsNone(faults.take("sendMessage"))
        self.successResultOf(done)

    def test_texts_select_calls(self) -> None:
        """Only calls that contain the text are hit."""
        faults = Faults()
        fault = faults.add("*", "hang", containing="answer")
        self.assertIsNone(faults.take("sendMessage", ["question"]))
        self.assertIs(faults.take("sendMessage", ["the answer"]), fault)

    def test_order_and_removal(self) -> None:
        """The oldest order goes first; a removed one hits nothing; clear removes all."""
        faults = Faults()
        first = faults.add("getMe", "hang", times=None)
        second = faults.add("getMe", "drop")
        self.assertIs(faults.take("getMe"), first)
        first.remove()
        self.assertIs(faults.take("getMe"), second)
        faults.add("getMe", "drop")
        faults.clear()
        self.assertIsNone(faults.take("getMe"))

    def test_unknown_kind(self) -> None:
        """A kind that does not exist is refused at once."""
        self.assertRaises(ValueError, Faults().add, "getMe", "meteorite")


class AnswerTests(WireTestCase):
    """What each kind looks like from outside, applied or not."""

    def texts(self) -> list[str]:
        """Return what the bot said."""
        return [message.text for message in self.sandbox.chat.from_bot()]

    @deferred
    async def test_html(self) -> None:
        """A 502 is HTML; the message is there only when the order says applied."""
        for applied in (False, True):
            self.sandbox.faults.add("sendMessage", "html502", applied=applied)
            body = {"chat_id": self.owner, "text": str(applied)}
            response = await self.http.post(self.url("sendMessage"), json=body)
            self.assertEqual(response.code, 502)
            self.assertIn(b"<html>", await response.content())
        self.assertEqual(self.texts(), ["True"])

    @deferred
    async def test_cut(self) -> None:
        """Half a body with the whole length announced, after the effect."""
        self.sandbox.faults.add("sendMessage", "cut", applied=True)
        body = f"chat_id={self.owner}&text=x"
        answer = await self.request(
            f"/bot{self.sandbox.token}/sendMessage",
            "Content-Type: application/x-www-form-urlencoded",
            verb="POST",
            body=body,
        )
        head, _, rest = answer.partition(b"\r\n\r\n")
        length = next(
            int(line.split()[1]) for line in head.split(b"\r\n") if line.startswith(b"Content-Len")
        )
        self.assertEqual(len(rest), length // 2)
        self.assertEqual(self.texts(), ["x"])

    @deferred
    async def test_reset_and_drop(self) -> None:
        """The connection ends without an answer; the effect is as ordered."""
        for kind in ("reset", "drop"):
            for applied in (False, True):
                self.sandbox.faults.add("sendMessage", kind, applied=applied)
                await self.assertFailure(self.send(f"{kind} {applied}"), ResponseFailed)
        self.assertEqual(self.texts(), ["reset True", "drop True"])

    @deferred
    async def test_hang(self) -> None:
        """No answer ever, though the effect is there; the next call is answered."""
        fault = self.sandbox.faults.add("sendMessage", "hang", applied=True)
        hanging = self.send("a")
        await fault.when_hit()
        self.assertTrue((await self.send("b"))["ok"])
        self.assertNoResult(hanging)
        self.assertEqual(self.texts(), ["a", "b"])
        hanging.cancel()
        await self.assertFailure(hanging, ResponseFailed)

    @deferred
    async def test_refusals(self) -> None:
        """429 with both forms of the pause, 409 for poller and webhook, 401, anything."""
        faults = self.sandbox.faults
        faults.add("sendMessage", "429", retry_after=7)
        body = {"chat_id": self.owner, "text": "x"}
        response = await self.http.post(self.url("sendMessage"), json=body)
        self.assertEqual(response.headers.getRawHeaders("Retry-After"), ["7"])
        self.assertEqual((await response.json())["parameters"], {"retry_after": 7})
        for kind, options, code in (
            ("409", {}, 409),
            ("409-webhook", {}, 409),
            ("401", {}, 401),
            ("error", {"code": 400, "description": "Bad Request: TOPIC_DELETED"}, 400),
        ):
            faults.add("sendMessage", kind, **options)
            self.assertEqual((await self.send())["error_code"], code)
        self.assertEqual(self.texts(), [])

    @deferred
    async def test_nothing_in_the_answer(self) -> None:
        """An empty body, and ok without a result."""
        for kind, expected in (("empty", b""), ("no-result", b'{"ok":true}')):
            self.sandbox.faults.add("getMe", kind)
            response = await self.http.get(self.url("getMe"))
            self.assertEqual(await response.content(), expected)

    @deferred
    async def test_delay(self) -> None:
        """The right answer, later."""
        self.sandbox.faults.add("sendMessage", "delay", seconds=0.05)
        before = self.sandbox.chat.world.now()
        self.assertTrue((await self.send())["ok"])
        self.assertGreaterEqual(self.sandbox.chat.world.now(), before)
        self.assertEqual(self.sandbox.calls[-1].fault, "")

    @deferred
    async def test_offline(self) -> None:
        """Off the network a waiting poll breaks and new calls are refused; then the port is back."""
        waiting = self.call("getUpdates", timeout=25)
        while not self.sandbox.methods.poller.waiting:
            await self.call("getMe")
        await self.sandbox.go_offline()
        await self.assertFailure(waiting, ResponseFailed)
        await self.assertFailure(self.send(), ConnectionRefusedError)
        root = self.sandbox.api_root
        self.sandbox.go_online()
        self.assertEqual(self.sandbox.api_root, root)
        self.assertTrue((await self.send())["ok"])

    @deferred
    async def test_revoked_token(self) -> None:
        """The old token gets 401, the new one works."""
        old = self.url("getMe")
        self.sandbox.revoke_token()
        response = await self.http.get(old)
        self.assertEqual(response.code, 401)
        self.assertEqual((await response.json())["description"], "Unauthorized")
        self.assertTrue((await self.call("getMe"))["ok"])

    @deferred
    async def test_files(self) -> None:
        """A download can be cut; without an order it is whole."""
        sandbox = self.sandbox
        file = sandbox.chat.world.files.add("document", b"x" * 1000, "a.txt", "text/plain")
        url = f"{sandbox.api_root}/file/bot{sandbox.token}/{file.path}"
        sandbox.faults.add("file", "cut")
        response = await self.http.get(url)
        await self.assertFailure(response.content(), ResponseFailed)
        response = await self.http.get(url)
        self.assertEqual(await response.content(), b"x" * 1000)
