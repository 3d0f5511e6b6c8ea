"""A model provider that does what the prompt says: OpenAI-compatible, streaming, on loopback.

Pi talks to it as to any provider.  What it answers stands in the last user message
(L{pitelegram.sandbox.directives}).  Every request needs the random bearer key and a loopback
literal as C{Host}; nothing is logged.  C{python -m pitelegram.sandbox.model --agent-dir DIR} runs it
alone.
"""

from __future__ import annotations

import argparse
import hmac
import json
import re
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from twisted.application.service import Service
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IListeningPort, IReactorTCP, IReactorTime
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

from pitelegram.kernel import jsonio
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.observers import OneShot
from pitelegram.sandbox.answers import Answer, ModelRequest

PROVIDER = "scripted"
MODEL = "scripted"

_LOOPBACK = re.compile(rb"\A(127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?\Z")


class ScriptedModel(Service):
    """The provider as a service; the port is bound synchronously in L{startService}.

    @ivar key: the bearer key that every request needs.
    @ivar requests: every completion request so far, oldest first.
    @ivar summary_gate: a gate at which summaries wait (Pi is compacting all the while), or None.
    """

    def __init__(
        self, reactor: IReactorTCP, clock: IReactorTime, port: int = 0, key: str | None = None
    ) -> None:
        self.key = key or secrets.token_urlsafe(24)
        self.requests: list[ModelRequest] = []
        self.summary_gate: str | None = None
        self._reactor = reactor
        self._clock = clock
        self._wanted_port = port
        self._port: IListeningPort | None = None
        self._gates: dict[str, OneShot[None]] = {}
        self._waiting: list[tuple[Callable[[ModelRequest], bool], Deferred[ModelRequest]]] = []
        self._connections = _Connections(_QuietSite(_Root(self)))

    @property
    def url(self) -> str:
        """The base URL for C{models.json} (only while running)."""
        assert self._port is not None, "the scripted model is not running"
        return f"http://127.0.0.1:{self._port.getHost().port}/v1"

    def startService(self) -> None:
        """Listen on 127.0.0.1."""
        super().startService()
        self._port = self._reactor.listenTCP(  # type: ignore[assignment]
            self._wanted_port, self._connections, interface="127.0.0.1"
        )

    @deferred
    async def stopService(self) -> None:
        """Stop listening and cut every open answer."""
        await maybeDeferred(super().stopService)
        port, self._port = self._port, None
        if port is not None:
            await maybeDeferred(port.stopListening)
        await self._connections.cut()

    def open_gate(self, name: str) -> None:
        """Let every answer through that waits, or will wait, at this gate."""
        self.gate(name).fire(None)

    def gate(self, name: str) -> OneShot[None]:
        """The gate of that name, closed when nobody has opened it yet."""
        return self._gates.setdefault(name, OneShot())

    def when_request(self, predicate: Callable[[ModelRequest], bool]) -> Deferred[ModelRequest]:
        """Fire with the first request, past or future, for which C{predicate} is true."""
        for request in self.requests:
            if predicate(request):
                waiter: Deferred[ModelRequest] = Deferred()
                waiter.callback(request)
                return waiter
        waiter = Deferred(lambda d: self._forget(d))
        self._waiting.append((predicate, waiter))
        return waiter

    def write_models_json(self, agent_dir: Path, retry: bool = True) -> None:
        """Write C{models.json} and C{settings.json} so that Pi's default model is this one.

        @param retry: false switches Pi's own retries of failed requests off.
        """
        model = {
            "id": MODEL,
            "contextWindow": 200_000,
            "maxTokens": 32_000,
            "reasoning": False,
            "input": ["text", "image"],
        }
        provider = {
            "baseUrl": self.url,
            "apiKey": self.key,
            "api": "openai-completions",
            "models": [model],
        }
        settings: dict[str, Any] = {"defaultProvider": PROVIDER, "defaultModel": MODEL}
        if not retry:
            settings["retry"] = {"enabled": False}
        agent_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        models = agent_dir / "models.json"
        models.touch(mode=0o600)
        models.write_text(json.dumps({"providers": {PROVIDER: provider}}, indent=1))
        (agent_dir / "settings.json").write_text(json.dumps(settings, indent=1))

    def admits(self, request: Request) -> bool:
        """Whether host and key are right."""
        host = request.getHeader(b"host") or b""
        sent = request.getHeader(b"authorization") or b""
        return bool(_LOOPBACK.match(host)) and hmac.compare_digest(
            sent, b"Bearer " + self.key.encode()
        )

    def answer(self, body: dict[str, Any], request: Request) -> None:
        """Record a completion request and begin to answer it."""
        record = ModelRequest.from_body(len(self.requests), body)
        record.attempt += sum(
            earlier.text == record.text and earlier.results == record.results
            for earlier in self.requests
        )
        self.requests.append(record)
        Answer(self.gate, self._clock, record, request, self.summary_gate).start()
        for entry in list(self._waiting):
            predicate, waiter = entry
            if predicate(record):
                self._waiting.remove(entry)
                waiter.callback(record)

    def _forget(self, waiter: Deferred[ModelRequest]) -> None:
        self._waiting = [entry for entry in self._waiting if entry[1] is not waiter]


class _QuietSite(Site):
    """A site without an access log."""

    displayTracebacks = False

    def log(self, request: Any) -> None:
        """Log nothing."""


class _Connection(ProtocolWrapper):
    """Tells its factory once all is over, the request's own end included."""

    def connectionLost(self, reason: Any) -> None:
        """Pass it on first."""
        super().connectionLost(reason)
        self.factory.over()


class _Connections(WrappingFactory):
    """Knows every open connection, to cut them all."""

    noisy = False
    protocol = _Connection

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._gone: OneShot[None] | None = None

    def over(self) -> None:
        """A connection is gone."""
        if self._gone is not None and not self.protocols:
            self._gone.fire(None)

    @deferred
    async def cut(self) -> None:
        """Abort every connection and wait until they are gone."""
        if self.protocols:
            self._gone = OneShot()
            for connection in list(self.protocols):
                connection.transport.abortConnection()
            await self._gone.when()


class _Root(Resource):
    """Every path behind the key; unknown ones are 404."""

    isLeaf = True

    def __init__(self, model: ScriptedModel) -> None:
        super().__init__()
        self._model = model

    def render_GET(self, request: Request) -> bytes:
        """C{/v1/models} and C{/control/requests}."""
        if not self._model.admits(request):
            return _json(request, 401, _error("no such key"))
        if request.path == b"/v1/models":
            return _json(
                request, 200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]}
            )
        if request.path == b"/control/requests":
            return _json(request, 200, [record.as_json() for record in self._model.requests])
        return _json(request, 404, _error("no such resource"))

    def render_POST(self, request: Request) -> bytes | int:
        """C{/v1/chat/completions} and C{/control/gate/NAME}."""
        if not self._model.admits(request):
            return _json(request, 401, _error("no such key"))
        gate = request.path.removeprefix(b"/control/gate/")
        if gate and gate != request.path:
            self._model.open_gate(unquote_to_bytes(gate).decode("utf-8", "replace"))
            return _json(request, 200, {"opened": True})
        if request.path != b"/v1/chat/completions":
            return _json(request, 404, _error("no such resource"))
        try:
            body = jsonio.loads(request.content.read())
        except ValueError:
            body = None
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
            return _json(request, 400, _error("messages are missing"))
        if body.get("stream") is not True:
            return _json(request, 400, _error("only streaming requests are answered"))
        self._model.answer(body, request)
        return NOT_DONE_YET


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "scripted_error"}}


def _json(request: Request, status: int, value: Any) -> bytes:
    request.setResponseCode(status)
    request.setHeader(b"content-type", b"application/json")
    return json.dumps(value).encode()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the provider alone until it is killed; prints one JSON line with C{url} and C{key}."""
    parser = argparse.ArgumentParser(prog="python -m pitelegram.sandbox.model", description=__doc__)
    parser.add_argument("--agent-dir", type=Path, help="write models.json and settings.json there")
    parser.add_argument("--port", type=int, default=0, help="TCP port (default: a free one)")
    parser.add_argument("--no-retry", action="store_true", help="switch Pi's own retries off")
    options = parser.parse_args(arguments)
    from twisted.internet import reactor

    model = ScriptedModel(reactor, reactor, options.port)  # type: ignore[arg-type]
    model.startService()
    if options.agent_dir is not None:
        model.write_models_json(options.agent_dir, retry=not options.no_retry)
    print(json.dumps({"url": model.url, "key": model.key}), flush=True)
    reactor.addSystemEventTrigger("before", "shutdown", model.stopService)  # type: ignore[attr-defined]
    reactor.run()  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
