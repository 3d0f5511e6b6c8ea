"""One HTTP exchange under one deadline, over connections whose state is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakSet

import attrs
import treq.client
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.web.client import Agent, HTTPConnectionPool, PotentialDataLoss, ResponseDone
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgentEndpointFactory

from pitelegram.botapi.bodies import BytesBody, MultipartBody
from pitelegram.botapi.classify import BodyTooBig, DeadlineExpired, is_cancelled
from pitelegram.kernel.deferring import deferred

Body = BytesBody | MultipartBody


@attrs.frozen(kw_only=True)
class Answer:
    """A complete answer.

    @ivar length: C{Content-Length}, or None when the server did not say.
    """

    status: int
    retry_after: str | None
    length: int | None
    body: bytes


Ready = Callable[[], "Deferred[None]"]


class ExchangeFailed(Exception):
    """There was no complete answer.

    @ivar cause: what happened, with nothing that knows the address.
    @ivar written: whether the last byte of the request was given to a ready connection.
    @ivar stale: whether a kept-alive connection ended without a single byte of an answer.
    """

    def __init__(self, cause: BaseException, written: bool, stale: bool) -> None:
        super().__init__("no complete answer")
        self.cause = cause
        self.written = written
        self.stale = stale


class Lane:
    """Persistent connections for one kind of traffic.

    @param clock: the reactor.
    @param endpoints: makes connections that are ready for a request.
    @param kept: seconds that an idle connection is kept.
    @param most: how many idle connections are kept.
    """

    def __init__(
        self, clock: Any, endpoints: IAgentEndpointFactory, kept: float, most: int
    ) -> None:
        self._clock = clock
        self._endpoints = endpoints
        self._kept = kept
        self._most = most
        self._pool = self._new_pool()
        self._connections: WeakSet[Any] = WeakSet()
        self._doomed: WeakSet[Any] = WeakSet()

    def _new_pool(self) -> HTTPConnectionPool:
        pool = HTTPConnectionPool(self._clock, persistent=True)
        pool.retryAutomatically = False
        pool.cachedConnectionTimeout = self._kept
        pool.maxPersistentPerHost = self._most
        return pool

    @deferred
    async def exchange(
        self,
        verb: str,
        url: str,
        body: Body | None,
        deadline: float,
        collector: Collector,
        fresh: bool = False,
        ready: Ready | None = None,
    ) -> Answer:
        """Send a request and read the whole answer within C{deadline} seconds.

        @param fresh: use no kept-alive connection.
        @param ready: waited for when there is a connection, before anything is written.
        @raise ExchangeFailed: if there is no complete answer.
        @raise CancelledError: if the caller cancelled.
        """
        if fresh:
            self.renew()
        attempt = _Attempt(self._pool, self._connections, self._doomed, ready)
        talking = Deferred.fromCoroutine(self._talk(attempt, verb, url, body, collector))
        timer = self._clock.callLater(deadline, attempt.expire, talking)
        problem: BaseException
        try:
            return await talking
        except Exception as error:
            problem = error
        finally:
            if timer.active():
                timer.cancel()
            attempt.finish()
        if attempt.expired:
            self.renew()
            problem = DeadlineExpired()
        elif is_cancelled(problem):
            raise CancelledError()
        written = True if body is None else body.written
        stale = attempt.reused and not attempt.answered and not attempt.expired
        raise ExchangeFailed(problem, written, stale)

    async def _talk(
        self, attempt: _Attempt, verb: str, url: str, body: Body | None, collector: Collector
    ) -> Answer:
        agent = Agent.usingEndpointFactory(self._clock, self._endpoints, pool=attempt)
        client = treq.client.HTTPClient(agent, data_to_body_producer=lambda producer: producer)
        headers = Headers({b"User-Agent": [b"pi-telegram"]})
        if body is not None:
            headers.addRawHeader(b"Content-Type", body.content_type.encode())
        response: Any = await client.request(
            verb,
            url,
            headers=headers,
            data=body,
            allow_redirects=False,
            unbuffered=True,
            reactor=self._clock,
        )
        attempt.answered = True
        collector.begin(response.code, attempt.abort)
        response.deliverBody(collector)
        await collector.done
        waits = response.headers.getRawHeaders("Retry-After") or [None]
        length = response.length if isinstance(response.length, int) else None
        return Answer(
            status=response.code, retry_after=waits[0], length=length, body=collector.content()
        )

    def renew(self) -> None:
        """Abort idle connections and begin with a new pool; what is in use goes on."""
        old, self._pool = self._pool, self._new_pool()
        idle = [each for each in self._connections if each.state == "QUIESCENT"]
        old.cachedConnectionTimeout = 0
        old.closeCachedConnections().addErrback(lambda _: None)
        for connection in idle:
            connection.transport.abortConnection()

    def close(self) -> None:
        """Abort every connection."""
        self.renew()
        for connection in list(self._connections):
            if connection.state != "CONNECTION_LOST":
                connection.transport.abortConnection()


class _Attempt:
    """Stands in for the pool during one request, and remembers which connection it got."""

    persistent = True

    def __init__(
        self,
        pool: HTTPConnectionPool,
        known: WeakSet[Any],
        doomed: WeakSet[Any],
        ready: Ready | None,
    ) -> None:
        self._pool = pool
        self._known = known
        self._doomed = doomed
        self._ready = ready
        self._connection: Any = None
        self.reused = False
        self.answered = False
        self.expired = False

    def getConnection(self, key: Any, endpoint: Any) -> Deferred[Any]:
        """Take one from the pool that is not about to end, and say so to who waits for that."""

        def took(connection: Any) -> Any:
            if connection in self._doomed:
                return self.getConnection(key, endpoint)
            self._connection = connection
            self.reused = connection in self._known
            self._known.add(connection)
            if self._ready is None:
                return connection
            return self._ready().addCallbacks(
                lambda _: connection, unwanted, None, None, (connection,)
            )

        def unwanted(failure: Failure, connection: Any) -> Failure:
            connection.transport.loseConnection()
            return failure

        return self._pool.getConnection(key, endpoint).addCallback(took)

    def expire(self, talking: Deferred[Any]) -> None:
        """The deadline is over."""
        self.expired = True
        talking.cancel()

    def abort(self) -> None:
        """Cut the connection, whatever is on it."""
        connection = self._connection
        if connection is not None and connection.state not in ("CONNECTION_LOST", "QUIESCENT"):
            self._doomed.add(connection)
            connection.transport.abortConnection()

    def finish(self) -> None:
        """Let go of the connection."""
        self._connection = None


class Collector(Protocol):
    """Collects a body, up to a limit of bytes.

    @ivar done: fires when the body is complete, fails when it is not.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._chunks: list[bytes] = []
        self._abort: Callable[[], None] = lambda: None
        self._problem: Exception | None = None
        self.status = 0
        self.done: Deferred[None] = Deferred(lambda _: self._abort())

    def begin(self, status: int, abort: Callable[[], None]) -> None:
        """Headers are there; C{abort} cuts the connection."""
        self.status = status
        self._abort = abort

    def dataReceived(self, data: bytes) -> None:
        """Take a piece; beyond the limit the connection is cut.

        The failure is told when the body has ended, not from inside the HTTP parser.
        """
        if self.done.called or self._problem is not None:
            return
        self._size += len(data)
        if self._size > self._limit:
            self._fail(BodyTooBig())
            return
        try:
            self.take(data)
        except OSError as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._problem = error
        self._abort()

    def take(self, data: bytes) -> None:
        """Keep a piece."""
        self._chunks.append(data)

    def content(self) -> bytes:
        """Return what was collected."""
        return b"".join(self._chunks)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """The body is over; without a length only its content can tell whether it is whole."""
        if self.done.called:
            return
        if self._problem is not None:
            self.done.errback(Failure(self._problem))
        elif reason.check(ResponseDone, PotentialDataLoss):
            self.done.callback(None)
        else:
            self.done.errback(reason)
