"""Requests to Pi and their answers."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import PiCancelled, PiGone, PiRefused
from pitelegram.pi.channel import Channel


class ChannelTests(SynchronousTestCase):
    """L{Channel}."""

    def setUp(self) -> None:
        """A channel that writes into a list."""
        self.clock = Clock()
        self.lines: list[bytes] = []
        self.error: Exception | None = None
        self.channel = Channel(self.clock, self.write, lambda text: text.replace("secret", "…"))

    def write(self, data: bytes) -> None:
        """Take a line, or fail."""
        if self.error is not None:
            raise self.error
        self.lines.append(data)

    def answer(self, **record: Any) -> None:
        """Pi answers."""
        self.channel.answered({"type": "response", **record})

    def test_writes_one_ascii_line(self) -> None:
        """A request is one line of pure ASCII, whatever its text holds."""
        text = "ü\u2028\n\r\x00\ud83d\U0001f600"
        self.channel.request("prompt", {"message": text}, None, "p1")
        (line,) = self.lines
        self.assertTrue(line.isascii() and line.endswith(b"\n") and line.count(b"\n") == 1)
        record = json.loads(line)
        self.assertEqual(record, {"id": "p1", "type": "prompt", "message": text})

    def test_answers_by_id(self) -> None:
        """Answers find their request in any order; C{data} may be missing."""
        first = self.channel.request("get_state", {}, 5)
        second = self.channel.request("abort", {}, 5)
        ids = [json.loads(line)["id"] for line in self.lines]
        self.answer(id=ids[1], success=True)
        self.answer(id=ids[0], success=True, data={"a": 1})
        self.assertEqual(self.successResultOf(second), {})
        self.assertEqual(self.successResultOf(first), {"a": 1})
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_refused(self) -> None:
        """C{success:false} carries Pi's own words, redacted and short."""
        waiting = self.channel.request("prompt", {}, None, "p")
        self.answer(id="p", success=False, error="no secret " + "x" * 1000)
        error = self.failureResultOf(waiting, PiRefused).value
        self.assertTrue(str(error).startswith("no … xxx"))
        self.assertLessEqual(len(str(error)), 500)

    def test_success_that_is_none(self) -> None:
        """C{cancelled:true} is told apart from done, and odd C{success} values are refusals."""
        waiting = self.channel.request("new_session", {}, None, "a")
        self.answer(id="a", success=True, data={"cancelled": True})
        self.failureResultOf(waiting, PiCancelled)
        waiting = self.channel.request("new_session", {}, None, "b")
        self.answer(id="b", success="true")
        self.failureResultOf(waiting, PiRefused)

    def test_deadline(self) -> None:
        """Without an answer in time the outcome is unknown; the late answer is counted only."""
        waiting = self.channel.request("abort", {}, 5, "a")
        self.clock.advance(4.9)
        self.assertNoResult(waiting)
        self.clock.advance(0.2)
        self.failureResultOf(waiting, PiGone)
        self.answer(id="a", success=True)
        self.answer(id=["odd"], success=True)
        self.answer(success=False, error="Failed to parse command")
        self.assertEqual(self.channel.late, 3)

    def test_cancelled_by_the_caller(self) -> None:
        """A cancelled request leaves no timer, and its answer goes nowhere."""
        waiting = self.channel.request("abort", {}, 5, "a")
        waiting.addErrback(lambda _: None)
        waiting.cancel()
        self.answer(id="a", success=True)
        self.assertEqual((self.channel.late, self.clock.getDelayedCalls()), (1, []))

    def test_id_in_use(self) -> None:
        """Two requests cannot wait under the same id."""
        self.channel.request("prompt", {}, None, "p")
        self.assertRaises(ValueError, self.channel.request, "prompt", {}, None, "p")
        self.assertEqual(len(self.lines), 1)

    def test_lost(self) -> None:
        """When Pi is gone everything that waits fails, and so does what comes later."""
        waiting = [
            self.channel.request("prompt", {}, None, "p"),
            self.channel.request("abort", {}, 5),
        ]
        self.channel.lost("Pi ended (exit code 0)")
        for request in waiting:
            self.assertIn("exit code 0", str(self.failureResultOf(request, PiGone).value))
        self.failureResultOf(self.channel.request("get_state", {}, 5), PiGone)
        self.assertEqual((len(self.lines), self.clock.getDelayedCalls()), (2, []))

    def test_write_refused(self) -> None:
        """A request that could not be written fails at once and is not waited for."""
        self.error = PiRefused("full")
        self.failureResultOf(self.channel.request("prompt", {}, 5, "p"), PiRefused)
        self.error = None
        self.assertNoResult(self.channel.request("prompt", {}, None, "p"))
