"""The Bot API of one bot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from twisted.internet.defer import Deferred
from twisted.internet.task import Cooperator
from twisted.python.failure import Failure
from twisted.web.iweb import IAgentEndpointFactory
from zope.interface import implementer

from pitelegram.botapi.bodies import MultipartBody, json_body
from pitelegram.botapi.classify import BodyTooBig, read_answer, transport_error
from pitelegram.botapi.exchange import Answer, Body, Collector, ExchangeFailed, Lane, Ready
from pitelegram.botapi.files import (
    LOCAL_LIMIT,
    PUBLIC_LIMIT,
    FileCollector,
    copy_local,
    download_limit,
    too_large,
)
from pitelegram.botapi.interfaces import IBotApi, Upload
from pitelegram.botapi.methods import BODY_LIMIT, CALL_TIMEOUT, REPEATABLE, deadline_for
from pitelegram.botapi.network import Network
from pitelegram.errors import (
    CertainlyUnsent,
    Refusal,
    Refused,
    TelegramError,
    Unauthorized,
    Uncertain,
)
from pitelegram.kernel.deferring import deferred

UNAUTHORIZED_LIMIT = 3
"""So many 401 in a row, on any methods, end all calls (rule D19)."""

_DOWNLOAD_RATE = 100_000


@implementer(IBotApi)
class BotApi:
    """Calls methods over treq; polling and sending have connections of their own.

    @param token: the bot token; it is in no C{repr}, error or log.
    @param api_root: C{https://api.telegram.org}, or a local server's C{http://…}.
    @param reactor: time, names and connections.
    @param endpoints: makes connections; L{Network} without a proxy unless given.
    @param on_unauthorized: is called once when the token was refused three times in a row; from
        then on every call fails at once.
    """

    def __init__(
        self,
        token: str,
        api_root: str,
        reactor: Any,
        *,
        endpoints: IAgentEndpointFactory | None = None,
        on_unauthorized: Callable[[], None] = lambda: None,
    ) -> None:
        self._token = token
        self._root = api_root.rstrip("/")
        self.download_limit = download_limit(api_root)
        self._reactor = reactor
        self._on_unauthorized = on_unauthorized
        endpoints = Network(reactor) if endpoints is None else endpoints
        self._polling = Lane(reactor, endpoints, kept=60.0, most=1)
        self._sending = Lane(reactor, endpoints, kept=20.0, most=4)
        self._cooperator = Cooperator(scheduler=lambda step: reactor.callLater(0, step))
        self._running: set[Deferred[Any]] = set()
        self._closed = False
        self._unauthorized = 0

    def __repr__(self) -> str:
        return "<BotApi>"

    def call(
        self,
        method: str,
        params: dict[str, Any],
        files: Sequence[Upload] = (),
        timeout: float | None = None,
        ready: Ready | None = None,
    ) -> Deferred[Any]:
        """Call a method once; see L{IBotApi.call}."""
        return self._track(self._call(method, params, files, timeout, ready))

    def download(self, file_id: str, destination: Path, limit: int) -> Deferred[int]:
        """Stream a file to C{destination}; see L{IBotApi.download}.

        C{destination} must not exist; after a failure it does not.
        """
        return self._track(self._download(file_id, destination, limit))

    @deferred
    async def close(self) -> None:
        """Cancel what runs and abort the connections."""
        self._closed = True
        for running in list(self._running):
            running.cancel()
        self._polling.close()
        self._sending.close()

    def _track(self, running: Deferred[Any]) -> Deferred[Any]:
        self._running.add(running)

        def done(outcome: Any) -> Any:
            self._running.discard(running)
            if isinstance(outcome, Failure) and outcome.value is not None:
                outcome.value.__cause__ = outcome.value.__context__ = None
            return outcome

        return running.addBoth(done)

    @deferred
    async def _call(
        self,
        method: str,
        params: dict[str, Any],
        files: Sequence[Upload],
        timeout: float | None,
        ready: Ready | None = None,
    ) -> Any:
        params = {name: value for name, value in params.items() if value is not None}
        deadline = deadline_for(method, params, files) if timeout is None else timeout
        until = self._reactor.seconds() + deadline
        self._admit(method)
        outcome = await self._exchange(method, params, files, deadline, ready)
        if isinstance(outcome, ExchangeFailed) and outcome.stale and method in REPEATABLE:
            left = max(0.1, until - self._reactor.seconds())
            outcome = await self._exchange(method, params, files, left, ready, fresh=True)
        if isinstance(outcome, ExchangeFailed):
            raise transport_error(method, outcome.cause, outcome.written)
        return self._read(method, outcome)

    def _admit(self, method: str) -> None:
        if self._unauthorized >= UNAUTHORIZED_LIMIT:
            raise Unauthorized(method, 401, "the token was refused; no more calls are made")
        if self._closed:
            raise CertainlyUnsent(method, 0, "the client is closed")

    async def _exchange(
        self,
        method: str,
        params: dict[str, Any],
        files: Sequence[Upload],
        deadline: float,
        ready: Ready | None,
        fresh: bool = False,
    ) -> Answer | ExchangeFailed:
        lane = self._polling if method == "getUpdates" else self._sending
        body = self._body(method, params, files)
        url = f"{self._root}/bot{quote(self._token, safe=':')}/{method}"
        try:
            collector = Collector(BODY_LIMIT)
            return await lane.exchange("POST", url, body, deadline, collector, fresh, ready)
        except ExchangeFailed as failed:
            return failed
        finally:
            if isinstance(body, MultipartBody):
                body.close()

    def _body(self, method: str, params: dict[str, Any], files: Sequence[Upload]) -> Body:
        if not files:
            return json_body(params)
        try:
            return MultipartBody(params, files, self._cooperator)
        except OSError:
            problem = Refused(method, 0, "a file to send cannot be read")
        raise problem

    def _read(self, method: str, answer: Answer) -> Any:
        try:
            result = read_answer(
                method, answer.status, answer.retry_after, answer.body, self._token
            )
        except Unauthorized:
            self._unauthorized += 1
            if self._unauthorized == UNAUTHORIZED_LIMIT:
                self._on_unauthorized()
            raise
        except Uncertain:
            raise
        except TelegramError:
            self._unauthorized = 0
            raise
        self._unauthorized = 0
        return result

    @deferred
    async def _download(self, file_id: str, destination: Path, limit: int) -> int:
        found = await self._locate(file_id, limit)
        path = found.get("file_path") if isinstance(found, dict) else None
        if not isinstance(path, str) or not path:
            raise Uncertain("getFile", 0, "the answer names no file")
        size = found.get("file_size")
        if type(size) is int and size > limit:
            raise too_large(limit)
        if path.startswith("/") and self.download_limit == LOCAL_LIMIT:
            return await self._copied(path, destination, limit)
        url = f"{self._root}/file/bot{quote(self._token, safe=':')}/{quote(path)}"
        collector = FileCollector(destination, limit)
        whole = False
        try:
            answer = await self._fetch(url, collector, limit)
            whole = _is_whole(answer, collector.size)
        finally:
            collector.close(keep=whole)
        if not whole:
            raise _broken_file(answer, self._token)
        return collector.size

    async def _copied(self, path: str, destination: Path, limit: int) -> int:
        try:
            return await copy_local(self._reactor, path, destination, limit)
        except OSError:
            problem = Refused("getFile", 0, "the server's file cannot be read on this machine")
        raise problem

    async def _locate(self, file_id: str, limit: int) -> Any:
        try:
            return await self._call("getFile", {"file_id": file_id}, (), None)
        except Refused as refused:
            if "file is too big" not in refused.description.lower():
                raise
        raise too_large(min(limit, PUBLIC_LIMIT))

    async def _fetch(self, url: str, collector: FileCollector, limit: int) -> Answer:
        deadline = 2 * CALL_TIMEOUT + limit / _DOWNLOAD_RATE
        try:
            return await self._sending.exchange("GET", url, None, deadline, collector)
        except ExchangeFailed as failed:
            cause = failed.cause
        if isinstance(cause, BodyTooBig):
            raise too_large(limit)
        if isinstance(cause, OSError) and cause.errno is not None:
            raise Refusal("unavailable", "the file could not be written")
        raise transport_error("getFile", cause, written=True)


def _is_whole(answer: Answer, size: int) -> bool:
    return answer.status == 200 and (answer.length is None or answer.length == size)


def _broken_file(answer: Answer, token: str) -> TelegramError:
    """Return the error of a download that was answered with something else than the file."""
    if answer.status == 200:
        return Uncertain("getFile", 0, "the file was cut")
    try:
        read_answer("getFile", answer.status, answer.retry_after, answer.body, token)
    except TelegramError as error:
        return error
    return Uncertain("getFile", 0, f"HTTP {answer.status} without a readable answer")
