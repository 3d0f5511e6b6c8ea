"""The control API: HTTP/1.1 with JSON on a private UNIX socket.  Nothing of it is logged."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from pitelegram.control import envelope as envelopes
from pitelegram.control import metrics, outward
from pitelegram.control.commands import CommandDesk
from pitelegram.control.connections import ControlSite, error_body
from pitelegram.control.interfaces import IDaemon
from pitelegram.control.keeping import ReceiptRounds
from pitelegram.control.listening import listen
from pitelegram.control.streams import EventStream, Lines
from pitelegram.control.strictjson import Ambiguous, NotAnObject, parse_object
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.kernel.jsonio import dumps
from pitelegram.kernel.peers import peer_ids
from pitelegram.kernel.sockets import PrivatePort
from pitelegram.store.receipts import ICommands

MAX_STREAMS = 32
"""Readers of events at one time."""


class ControlResource(Resource):
    """All paths of the API.

    @param group: whether members of a group may connect too (else only this user).
    """

    isLeaf = True
    _log = Logger()

    def __init__(
        self, daemon: IDaemon, desk: CommandDesk, clock: IReactorTime, group: bool
    ) -> None:
        super().__init__()
        self._daemon = daemon
        self._desk = desk
        self._clock = clock
        self._group = group
        self._lines = Lines()
        self.streams: set[EventStream] = set()
        self._routes: dict[bytes, tuple[bytes, Callable[[Request], Any]]] = {
            b"/v1/status": (b"GET", lambda request: outward.status(self._daemon.status())),
            b"/v1/workers": (b"GET", self._workers),
            b"/v1/outbox": (b"GET", self._outbox),
            b"/v1/events": (b"GET", self._events),
            b"/v1/commands": (b"POST", self._commands),
            b"/metrics": (b"GET", self._metrics),
        }

    def render(self, request: Request) -> Any:
        """Answer one request."""
        uid = peer_ids(request.channel.transport).uid
        if uid not in (None, 0, os.geteuid()) and not self._group:
            return _error(request, 403, "forbidden", "this socket belongs to another user")
        route = self._routes.get(request.path)
        if route is None:
            return _error(request, 404, "not_found", "there is nothing at this path")
        method, handler = route
        if request.method != method and (request.method, method) != (b"HEAD", b"GET"):
            request.setHeader(b"Allow", method)
            return _error(request, 405, "method_not_allowed", f"use {method.decode()} here")
        try:
            answer = handler(request)
            if answer is NOT_DONE_YET or isinstance(answer, bytes):
                return answer
            return _json(request, answer)
        except Exception:
            self._log.failure("the control API failed")
            return _error(request, 500, "internal", "the daemon failed; its log has the reason")

    def _workers(self, request: Request) -> dict[str, Any]:
        private = request.args.get(b"private") == [b"1"]
        document = {"schema_version": 1, "workers": self._daemon.workers(private)}
        return outward.workers(document, private)

    def _outbox(self, request: Request) -> dict[str, Any]:
        return outward.outbox({"schema_version": 1, "items": self._daemon.outbox()})

    def _metrics(self, request: Request) -> bytes:
        body = metrics.render(outward.status(self._daemon.status()))
        return _sent(request, body, metrics.CONTENT_TYPE)

    def _events(self, request: Request) -> Any:
        if request.method == b"HEAD":
            request.setHeader(b"Content-Type", b"text/event-stream")
            request.finish()
            return NOT_DONE_YET
        if len(self.streams) >= MAX_STREAMS:
            return _error(request, 503, "too_many", f"{MAX_STREAMS} readers are there already")
        stream = EventStream(request, self._daemon, self._clock, self._lines)
        self.streams.add(stream)
        stream.start().addBoth(lambda _: self.streams.discard(stream))
        return NOT_DONE_YET

    def _commands(self, request: Request) -> Any:
        try:
            value = parse_object(request.content.read())
        except NotAnObject as wrong:
            return _error(request, 400, "bad_request", f"the body must be one object: {wrong}")
        except Ambiguous as wrong:
            answer = envelopes.invalid(f"the request is ambiguous: {wrong}", field="request")
            return outward.envelope(answer)
        gone = request.notifyFinish()
        gone.addErrback(lambda _: None)
        spawn(self._log, "a control command", self._answer(request, self._desk.submit(value), gone))
        return NOT_DONE_YET

    async def _answer(
        self, request: Request, answering: Deferred[Any], gone: Deferred[None]
    ) -> None:
        envelope = await answering
        if not gone.called:
            request.write(_json(request, outward.envelope(envelope)))
            request.finish()


class ControlServer(Service):
    """Listens on the control socket.

    @param path: the socket; its directory is made private.
    @param group: a group whose members may connect too.
    """

    name = "control"

    def __init__(
        self,
        path: Path,
        daemon: IDaemon,
        commands: ICommands,
        reactor: Any,
        clock: IReactorTime,
        group: str | None = None,
    ) -> None:
        self.path = path
        self._reactor = reactor
        self._group = group
        self._desk = CommandDesk(daemon, commands, clock)
        self._receipts = ReceiptRounds(clock, commands, self._desk)
        self._resource = ControlResource(daemon, self._desk, clock, group is not None)
        self._site = ControlSite(self._resource, reactor)
        self._port: PrivatePort | None = None

    @property
    def problem(self) -> str | None:
        """The sentence for the operator while nobody finds the socket."""
        if self._port is not None and self._port.in_place:
            return None
        return "the control socket is gone: commands and status do not reach this daemon"

    def startService(self) -> None:
        """Listen.

        @raise pitelegram.errors.PiTelegramError: see L{pitelegram.control.listening.listen}.
        """
        self._port = listen(self.path, self._site, self._reactor, self._group)
        super().startService()
        self._desk.settle_earlier()
        self._receipts.startService()

    @deferred
    async def stopService(self) -> None:
        """Stop listening, remove our socket, end all connections."""
        super().stopService()
        await self._receipts.stopService()
        port, self._port = self._port, None
        for stream in list(self._resource.streams):
            stream.stop()
        if port is not None:
            await maybeDeferred(port.stopListening)
        self._site.close()


def _json(request: Request, value: Any) -> bytes:
    return _sent(request, dumps(value) + b"\n", b"application/json")


def _sent(request: Request, body: bytes, kind: bytes) -> bytes:
    request.setHeader(b"Content-Type", kind)
    request.setHeader(b"Content-Length", b"%d" % len(body))
    request.setHeader(b"Cache-Control", b"no-store")
    return body


def _error(request: Request, status: int, code: str, message: str) -> bytes:
    body = error_body(code, message)
    request.setResponseCode(status)
    request.setHeader(b"Content-Type", b"application/json")
    request.setHeader(b"Content-Length", b"%d" % len(body))
    return body
