"""Readers of events under a clock: heartbeat, slowness, and the end of patience."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.test.requesthelper import DummyRequest

from pitelegram.control.streams import KEEP_ALIVE, PATIENCE, EventStream, Lines
from pitelegram.testing.control import FakeDaemon


class Channel:
    """A connection that can be cut.

    @ivar cut: whether it was.
    """

    cut = False

    def abortConnection(self) -> None:
        """Cut it."""
        self.cut = True


class StreamTests(SynchronousTestCase):
    """L{EventStream}."""

    def setUp(self) -> None:
        """Begin a stream."""
        self.clock = Clock()
        self.daemon = FakeDaemon(past=[{"message": "past"}])
        self.request: Any = DummyRequest([b"v1", b"events"])
        self.request.channel = Channel()
        self.request.registerProducer = lambda producer, streaming: None
        self.request.unregisterProducer = lambda: None
        self.stream = EventStream(self.request, self.daemon, self.clock, Lines())
        self.ended = self.stream.start()

    def text(self) -> str:
        """What was written since the last question."""
        written, self.request.written = self.request.written, []
        return b"".join(written).decode()

    def test_heartbeat(self) -> None:
        """A sign of life comes while nothing happens, and none before its time."""
        self.assertIn('data: {"message":"past"}', self.text())
        self.clock.advance(KEEP_ALIVE - 1)
        self.assertEqual(self.text(), "")
        self.clock.advance(1)
        self.assertEqual(self.text(), ": alive\n\n")

    def test_slow(self) -> None:
        """What a slow reader cannot take is dropped and counted, heartbeats too."""
        self.text()
        self.stream.pauseProducing()
        for _ in range(3):
            self.daemon.happen({"message": "missed"})
        self.clock.advance(KEEP_ALIVE)
        self.assertEqual(self.text(), "")
        self.stream.resumeProducing()
        self.assertEqual(self.text(), "event: dropped\ndata: 3\n\n")
        self.daemon.happen({"message": "next"})
        self.assertEqual(self.text(), 'data: {"message":"next"}\n\n')

    def test_stuck(self) -> None:
        """A reader that takes nothing at all is cut off; one that takes something is not."""
        self.stream.pauseProducing()
        self.clock.pump([KEEP_ALIVE] * (PATIENCE - 1))
        self.stream.resumeProducing()
        self.stream.pauseProducing()
        self.clock.pump([KEEP_ALIVE] * (PATIENCE - 1))
        self.assertFalse(self.request.channel.cut)
        self.clock.advance(KEEP_ALIVE)
        self.assertTrue(self.request.channel.cut)

    def test_last_look(self) -> None:
        """An event is looked at once more before it leaves."""
        self.text()
        self.daemon.happen({"message": "see /home/bob/x", "fields": {"chat_id": 5, "n": 1}})
        self.assertEqual(self.text(), 'data: {"message":"see [redacted]","fields":{"n":1}}\n\n')

    def test_looked_at_once(self) -> None:
        """One event has one line for all readers; an equal one that comes later has its own."""
        lines = Lines()
        event = {"message": "a"}
        self.assertIs(lines.of(event), lines.of(event))
        self.assertIsNot(lines.of(event), lines.of({"message": "a"}))
        self.assertEqual(lines.of({"message": "b"}), b'data: {"message":"b"}\n\n')

    def test_stop(self) -> None:
        """The end leaves no timer and no subscription."""
        self.stream.stop()
        self.successResultOf(self.ended)
        self.assertEqual(self.request.finished, 1)
        self.assertEqual(self.daemon.observers, [])
        self.assertEqual(self.clock.getDelayedCalls(), [])
