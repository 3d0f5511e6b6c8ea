"""The Bot API over HTTP: C{/bot<TOKEN>/<method>} and C{/file/bot<TOKEN>/<path>}, with faults."""

from __future__ import annotations

import re
from collections import deque
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.web.http import Request

from pitelegram.kernel.deferring import deferred, sleep, spawn
from pitelegram.kernel.jsonio import dumps
from pitelegram.sandbox.errors import NOT_FOUND, UNAUTHORIZED, ApiError, bad_request
from pitelegram.sandbox.faults import Fault, Faults
from pitelegram.sandbox.forms import read_parameters
from pitelegram.sandbox.guard import same
from pitelegram.sandbox.methods import BotApiMethods
from pitelegram.sandbox.parameters import Parameters

TOKEN_SHAPE = re.compile(r"[0-9]+:[A-Za-z0-9_-]{35}")
KEPT_CALLS = 10_000
HTML = "<html>\r\n<head><title>{0}</title></head>\r\n<body><center><h1>{0}</h1></center></body>\r\n</html>\r\n"
_HTML_TITLES = {"html502": (502, "502 Bad Gateway"), "html504": (504, "504 Gateway Time-out")}


@attrs.define(eq=False)
class Call:
    """One call that came in.

    @ivar code: the C{error_code}, 200 for a success, 0 while it runs or when no answer was given.
    @ivar fault: the kind of the fault that hit it, empty for none.
    """

    method: str
    values: dict[str, str]
    code: int = 0
    fault: str = ""


class ApiDoor:
    """Answers Bot API requests for one token.

    @ivar token: the valid token; another one may be set at any time.
    @ivar calls: the latest calls, oldest first.
    """

    _log = Logger()

    def __init__(
        self, methods: BotApiMethods, faults: Faults, clock: IReactorTime, token: str
    ) -> None:
        self.token = token
        self.calls: deque[Call] = deque(maxlen=KEPT_CALLS)
        self._methods = methods
        self._faults = faults
        self._clock = clock

    def revoke(self, token: str) -> None:
        """Replace the token: the old one gets 401 from now on, its waiting poll included."""
        self.token = token
        self._methods.poller.revoke()

    def handle(self, request: Request, path: str) -> None:
        """Answer a request whose path starts with C{/bot} or C{/file/bot}."""
        is_file = path.startswith("/file/bot")
        token, _, rest = path[len("/file/bot" if is_file else "/bot") :].partition("/")
        if request.method not in (b"GET", b"POST"):
            send_json(request, ApiError(501, "Not Implemented"))
        elif not TOKEN_SHAPE.fullmatch(token):
            send_json(request, ApiError(*NOT_FOUND))
        elif not same(token, self.token):
            send_json(request, ApiError(*UNAUTHORIZED))
        elif is_file:
            spawn(self._log, "a download", self._serve_file(request, rest))
        else:
            spawn(self._log, "a Bot API call", self._serve(request, rest))

    @deferred
    async def _serve(self, request: Request, method: str) -> None:
        problem: ApiError | None = None
        try:
            parameters = read_parameters(request)
            method = method or parameters.text("method")
        except ApiError as error:
            parameters, problem = Parameters({}), error
        name = self._methods.name_of(method) or method
        call = Call(name, parameters.values)
        self.calls.append(call)
        fault = self._faults.take(name, parameters.values.values())
        answer: Any = None
        if fault is None or fault.applied or fault.kind == "delay":
            if fault is not None and not fault.applied:
                await sleep(self._clock, fault.seconds)
            answer = problem or await self._run(name, parameters)
            if fault is not None and fault.applied and fault.kind == "delay":
                await sleep(self._clock, fault.seconds)
        if fault is None or fault.kind == "delay":
            call.code = answer.code if isinstance(answer, ApiError) else 200
            send_json(request, answer)
        else:
            call.fault = fault.kind
            self._spoil(request, fault, answer)

    def _run(self, name: str, parameters: Parameters) -> Deferred[Any]:
        """Run a method; fires with its result or its L{ApiError}."""
        running = self._methods.call(name, parameters)
        return running.addErrback(lambda failure: failure.trap(ApiError) and failure.value)

    def _spoil(self, request: Request, fault: Fault, answer: Any) -> None:
        refusal = fault.refusal()
        if refusal is not None:
            send_json(request, refusal)
        elif fault.kind in _HTML_TITLES:
            code, title = _HTML_TITLES[fault.kind]
            send_bytes(request, code, "text/html", HTML.format(title).encode())
        elif fault.kind == "empty":
            send_bytes(request, 200, "application/json", b"")
        elif fault.kind == "no-result":
            send_bytes(request, 200, "application/json", b'{"ok":true}')
        elif fault.kind == "cut":
            body = encoded(answer)
            send_bytes(request, 200, "application/json", body, cut=max(1, len(body) // 2))
        elif fault.kind in ("reset", "drop"):
            close(request, abort=fault.kind == "reset")

    @deferred
    async def _serve_file(self, request: Request, path: str) -> None:
        fault = self._faults.take("file", [path])
        file = self._methods.world.files.by_path(path)
        if fault is not None and fault.kind == "delay":
            await sleep(self._clock, fault.seconds)
        elif fault is not None and fault.kind == "cut" and file is not None:
            half = len(file.data) // 2
            send_bytes(request, 200, "application/octet-stream", file.data, cut=half)
            return
        elif fault is not None:
            self._spoil(request, fault, bad_request("sandbox"))
            return
        if file is None:
            send_json(request, ApiError(404, "Not Found: invalid file_path"))
        else:
            send_bytes(request, 200, "application/octet-stream", file.data)


def encoded(answer: Any) -> bytes:
    """Return the JSON body of a result or a refusal."""
    if isinstance(answer, ApiError):
        return dumps(answer.as_json())
    return dumps({"ok": True, "result": answer})


def send_json(request: Request, answer: Any) -> None:
    """Send a result or a refusal."""
    code = 200
    if isinstance(answer, ApiError):
        code = answer.code
        if "retry_after" in answer.parameters:
            request.setHeader("Retry-After", str(answer.parameters["retry_after"]))
    send_bytes(request, code, "application/json", encoded(answer))


def send_bytes(
    request: Request, code: int, content_type: str, body: bytes, cut: int | None = None
) -> None:
    """Send a body, or only its first C{cut} bytes and then close; nothing if the client has gone."""
    if request.channel is None or getattr(request, "_disconnected", False):
        return
    request.setResponseCode(code)
    request.setHeader("Content-Type", content_type)
    request.setHeader("Content-Length", str(len(body)))
    request.write(body if cut is None else body[:cut])
    if cut is None:
        request.finish()
    else:
        close(request)


def close(request: Request, abort: bool = False) -> None:
    """End the connection without finishing the answer."""
    if request.channel is not None:
        transport = request.channel.transport
        if abort:
            transport.abortConnection()
        else:
            transport.loseConnection()
