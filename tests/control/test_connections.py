"""Connections that ask nothing."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from pitelegram.control.connections import (
    IDLE_SECONDS,
    MANY_CONNECTIONS,
    ControlChannel,
    ControlSite,
)

SURPLUS = 50


class Waiting(Resource):
    """Answers nobody yet."""

    isLeaf = True

    def render(self, request: Request) -> int:
        """See L{Resource.render}."""
        return NOT_DONE_YET


class FloodTests(SynchronousTestCase):
    """More connections than there are descriptors for."""

    def setUp(self) -> None:
        """Have a site."""
        self.clock = Clock()
        self.site = ControlSite(Waiting(), self.clock)
        self.addCleanup(self.site.close)

    def connect(self, data: bytes = b"") -> StringTransport:
        """Somebody connects and sends this."""
        channel = self.site.buildProtocol(None)
        transport = StringTransport()
        transport.protocol = channel
        transport.abortConnection = lambda: self.end(channel, transport)  # type: ignore[method-assign]
        channel.makeConnection(transport)
        if data:
            channel.dataReceived(data)
        return transport

    def end(self, channel: ControlChannel, transport: StringTransport) -> None:
        """The site ends a connection."""
        transport.disconnected = True
        self.site.channels.pop(channel, None)

    def test_surplus(self) -> None:
        """The oldest that ask nothing go; who waits for an answer, or came just now, stays."""
        asking = self.connect(b"GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n")
        parts = (b"", b"GET /v1/st", b"GET /v1/status HTTP/1.1\r\nHost: x\r\n")
        idle = [self.connect(parts[number % 3]) for number in range(MANY_CONNECTIONS)]
        self.clock.advance(IDLE_SECONDS / 2)
        late = [self.connect() for _ in range(SURPLUS)]
        self.assertEqual(len(self.site.channels), MANY_CONNECTIONS + SURPLUS + 1)
        self.clock.advance(IDLE_SECONDS / 2)
        self.assertEqual(len(self.site.channels), MANY_CONNECTIONS)
        gone = [transport.disconnected for transport in idle]
        self.assertEqual(gone, [True] * (SURPLUS + 1) + [False] * (len(idle) - SURPLUS - 1))
        self.assertFalse(any(transport.disconnected for transport in [asking, *late]))

    def test_few(self) -> None:
        """As long as there are not many, they may wait for their own time-out."""
        few = [self.connect() for _ in range(MANY_CONNECTIONS)]
        self.clock.advance(IDLE_SECONDS * 3)
        self.assertFalse(any(transport.disconnected for transport in few))

    def test_all_busy(self) -> None:
        """Nobody who waits for an answer is ended, however many they are."""
        request = b"GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n"
        busy = [self.connect(request) for _ in range(MANY_CONNECTIONS + SURPLUS)]
        self.clock.advance(IDLE_SECONDS)
        self.clock.advance(IDLE_SECONDS)
        self.assertFalse(any(transport.disconnected for transport in busy))
