"""A sandbox on the loopback interface, spoken to byte by byte or through treq."""

from __future__ import annotations

from typing import Any

import treq
from twisted.internet.defer import Deferred
from twisted.internet.protocol import ClientFactory, Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.trial.unittest import TestCase
from twisted.web.client import Agent, HTTPConnectionPool

from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.jsonio import loads
from pitelegram.testing.telegram import Sandbox


class _Raw(Protocol):
    """Sends some bytes and collects everything until the connection ends."""

    def __init__(self, data: bytes, done: Deferred[bytes]) -> None:
        self._data = data
        self._done = done
        self._received = b""

    def connectionMade(self) -> None:
        """Send."""
        assert self.transport is not None
        self.transport.write(self._data)

    def dataReceived(self, data: bytes) -> None:
        """Collect."""
        self._received += data

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Tell."""
        self._done.callback(self._received)


class _RawFactory(ClientFactory):
    noisy = False

    def __init__(self, data: bytes, done: Deferred[bytes]) -> None:
        self._data = data
        self._done = done

    def buildProtocol(self, addr: Any) -> Protocol:
        """Make the one protocol."""
        return _Raw(self._data, self._done)

    def clientConnectionFailed(self, connector: Any, reason: Failure) -> None:
        """Tell."""
        self._done.errback(reason)


class WireTestCase(TestCase):
    """Tests over HTTP."""

    timeout = 30

    def setUp(self) -> None:
        """Start a sandbox."""
        from twisted.internet import reactor

        self.reactor: Any = reactor
        self.sandbox = Sandbox(reactor, control=True)
        self.sandbox.startService()
        self.addCleanup(self.sandbox.stopService)
        pool = HTTPConnectionPool(reactor, persistent=False)
        self.http = treq.client.HTTPClient(Agent(reactor, pool=pool))
        self.owner = self.sandbox.chat.owner["id"]

    @property
    def port(self) -> int:
        """The port of Bot API and page."""
        return int(self.sandbox.api_root.rpartition(":")[2])

    def url(self, method: str) -> str:
        """Return the address of a method."""
        return f"{self.sandbox.api_root}/bot{self.sandbox.token}/{method}"

    @deferred
    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method; fires with the whole answer."""
        response = await self.http.post(self.url(method), json=params)
        return loads(await response.content())

    def send(self, text: str = "x") -> Deferred[dict[str, Any]]:
        """Send a message to the owner."""
        return self.call("sendMessage", chat_id=self.owner, text=text)

    def raw(self, data: bytes, port: int | None = None) -> Deferred[bytes]:
        """Write bytes, close nothing, and collect until the server ends the connection."""
        done: Deferred[bytes] = Deferred()
        self.reactor.connectTCP("127.0.0.1", port or self.port, _RawFactory(data, done))
        return done

    def request(
        self, path: str, *headers: str, verb: str = "GET", body: str = ""
    ) -> Deferred[bytes]:
        """Make a raw request with the right C{Host} unless one is given."""
        lines = [f"{verb} {path} HTTP/1.1", "Connection: close", *headers]
        if not any(header.lower().startswith("host:") for header in headers):
            lines.append(f"Host: 127.0.0.1:{self.port}")
        if body:
            lines.append(f"Content-Length: {len(body)}")
        return self.raw(("\r\n".join(lines) + "\r\n\r\n" + body).encode("latin-1"))
