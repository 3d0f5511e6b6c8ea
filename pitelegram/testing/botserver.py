"""A loopback HTTP server that does to a Bot API client whatever a test wants."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import maybeDeferred
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure


@attrs.frozen
class Request:
    """One request as it came.

    @ivar method: the last part of the path.
    """

    verb: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def method(self) -> str:
        """The Bot API method."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def params(self) -> dict[str, Any]:
        """The JSON body."""
        return json.loads(self.body)


Reply = Callable[["ScriptedConnection"], None]


def raw(data: bytes, close: bool = False) -> Reply:
    """Write bytes, and perhaps close the connection after them."""

    def reply(connection: ScriptedConnection) -> None:
        connection.transport.write(data)
        if close:
            connection.transport.loseConnection()

    return reply


def answer(
    body: bytes, status: str = "200 OK", headers: str = "", claim: int | None = None
) -> bytes:
    """Return an HTTP answer; C{claim} lies about its length."""
    length = len(body) if claim is None else claim
    head = f"HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}\r\n"
    return head.encode() + body


def result(value: Any) -> Reply:
    """Succeed."""
    return raw(answer(json.dumps({"ok": True, "result": value}).encode()))


def refusal(code: int, description: str, **parameters: Any) -> Reply:
    """Refuse as the Bot API does."""
    body: dict[str, Any] = {"ok": False, "error_code": code, "description": description}
    if parameters:
        body["parameters"] = parameters
    return raw(answer(json.dumps(body).encode(), f"{code} Refused"))


def hang(connection: ScriptedConnection) -> None:
    """Say nothing."""


def reset(connection: ScriptedConnection) -> None:
    """Cut the connection hard."""
    connection.transport.abortConnection()


class ScriptedServer:
    """Listens on loopback; each request takes the next reply.

    @ivar requests: what came, oldest first.
    @ivar connections: how many connections were made.
    """

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self.requests: list[Request] = []
        self.connections = 0
        self.live: set[ScriptedConnection] = set()
        self._replies: deque[Reply] = deque()
        self._port: Any = None
        self.on_request: Callable[[Request], None] = lambda request: None

    def listen(self) -> str:
        """Start; returns the address of the API root."""
        self._port = self._reactor.listenTCP(0, self.factory(), interface="127.0.0.1")
        return f"http://127.0.0.1:{self.port}"

    def factory(self) -> Factory:
        """Return a factory of connections, to be wrapped in TLS perhaps."""
        return Factory.forProtocol(lambda: ScriptedConnection(self))

    @property
    def port(self) -> int:
        """The port number."""
        assert self._port is not None
        return self._port.getHost().port

    def reply(self, *replies: Reply) -> None:
        """Append replies."""
        self._replies.extend(replies)

    def take(self, request: Request, connection: ScriptedConnection) -> None:
        """Answer a request; without a script it is left waiting."""
        self.requests.append(request)
        self.on_request(request)
        (self._replies.popleft() if self._replies else hang)(connection)

    async def stop(self) -> None:
        """Close everything."""
        for connection in list(self.live):
            connection.transport.abortConnection()
        if self._port is not None:
            await maybeDeferred(self._port.stopListening)


class ScriptedConnection(Protocol):
    """Reads whole requests."""

    transport: Any

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server
        self._buffer = b""
        self.number = 0

    def connectionMade(self) -> None:
        """Count it."""
        self._server.connections += 1
        self.number = self._server.connections
        self._server.live.add(self)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Forget it."""
        self._server.live.discard(self)

    def dataReceived(self, data: bytes) -> None:
        """Cut requests out of the stream."""
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            head, rest = self._buffer.split(b"\r\n\r\n", 1)
            lines = head.decode("latin-1").split("\r\n")
            headers = {
                name.strip().lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines[1:])
            }
            length = int(headers.get("content-length", "0"))
            if len(rest) < length:
                return
            self._buffer = rest[length:]
            verb, path, _ = lines[0].split(" ", 2)
            request = Request(verb, path, headers, rest[:length], self.number)
            self._server.take(request, self)
