"""Connections of the control API: how much each may send, and how many may idle."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from twisted.internet.interfaces import IDelayedCall
from twisted.web.http import HTTPChannel
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from pitelegram.kernel.jsonio import dumps

MAX_BODY = 1024 * 1024

MANY_CONNECTIONS = 200
"""Beyond these, connections that have asked nothing are ended, the oldest first."""

IDLE_SECONDS = 2.0
"""What a connection that asks nothing has, however many there are."""

DRAIN = 16 * 1024 * 1024
"""Bytes of a refused body that are still read, so that its sender sees the answer."""


class ControlRequest(Request):
    """A request whose body stays in memory and is refused as soon as it is too large.

    @ivar complete: all of it has come; it is being answered.
    """

    _refused = False
    _drained = 0
    complete = False

    def gotLength(self, length: int | None) -> None:
        """The headers are complete; C{length} is the announced size of the body."""
        self.content = BytesIO()
        if length is not None and length > MAX_BODY:
            self._refuse()

    def handleContentChunk(self, data: bytes) -> None:
        """Take a piece of the body."""
        if self._refused:
            self._drained += len(data)
            if self._drained > DRAIN:
                self.channel.transport.abortConnection()
        elif self.content.tell() + len(data) > MAX_BODY:
            self._refuse()
        else:
            super().handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """The body is complete."""
        self.complete = True
        if self._refused:
            self.channel.loseConnection()
        else:
            super().requestReceived(command, path, version)

    def _refuse(self) -> None:
        self._refused = True
        body = error_body("too_large", "the body is larger than 1 MiB")
        self.channel.transport.write(
            b"HTTP/1.1 413 Content Too Large\r\nContent-Type: application/json\r\n"
            b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        )


class ControlChannel(HTTPChannel):
    """One connection; the site knows all that are open."""

    factory: ControlSite

    def connectionMade(self) -> None:
        """Begin."""
        super().connectionMade()
        self.factory.opened(self)

    def connectionLost(self, reason: Any) -> None:
        """End."""
        self.factory.channels.pop(self, None)
        super().connectionLost(reason)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being answered here."""
        return not any(request.complete for request in self.requests)

    def lineLengthExceeded(self, line: bytes) -> None:
        """A header that is too long is broken HTTP too."""
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        self.loseConnection()


class ControlSite(Site):
    """The HTTP factory: no access log, no tracebacks to the client.

    However many connect and ask nothing, descriptors are left for the store, the lock and workers.

    @ivar channels: the open connections with the time each was made, oldest first.
    """

    noisy = False
    displayTracebacks = False
    protocol = ControlChannel

    def __init__(self, resource: Resource, reactor: Any) -> None:
        super().__init__(resource, ControlRequest, reactor=reactor, parsePOSTFormSubmission=False)
        self._clock = reactor
        self._thinning: IDelayedCall | None = None
        self.channels: dict[ControlChannel, float] = {}

    def log(self, request: Request) -> None:
        """Requests are not logged: they may hold prompts."""

    def opened(self, channel: ControlChannel) -> None:
        """Somebody connected."""
        self.channels[channel] = self._clock.seconds()
        if len(self.channels) > MANY_CONNECTIONS and self._thinning is None:
            self._thinning = self._clock.callLater(IDLE_SECONDS, self._thin)

    def _thin(self) -> None:
        """End what is idle for long enough, until no more than many are left."""
        self._thinning = None
        surplus = len(self.channels) - MANY_CONNECTIONS
        if surplus <= 0:
            return
        until = self._clock.seconds() - IDLE_SECONDS
        idle = [c for c, since in self.channels.items() if since <= until and c.is_idle]
        for channel in idle[:surplus]:
            channel.transport.abortConnection()
        if surplus > len(idle):
            self._thinning = self._clock.callLater(IDLE_SECONDS, self._thin)

    def close(self) -> None:
        """End every connection, after what is being written."""
        if self._thinning is not None:
            self._thinning.cancel()
            self._thinning = None
        for channel in list(self.channels):
            channel.loseConnection()


def error_body(code: str, message: str) -> bytes:
    """Return the JSON body of an HTTP error."""
    return dumps({"schema_version": 1, "error": {"code": code, "message": message}}) + b"\n"
