"""Endpoints that hand a connection over only when it is ready for a request.

A proxy is spoken to first (CONNECT or SOCKS5), then TLS is finished, then the HTTP client gets the
connection.  So every failure before that point is certain to have sent nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from OpenSSL.SSL import Error as SSLError
from service_identity import VerificationError
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import (
    IHandshakeListener,
    IOpenSSLClientConnectionCreator,
    IProtocol,
    IProtocolFactory,
    IReactorTime,
    IStreamClientEndpoint,
)
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure
from zope.interface import implementer

from pitelegram.botapi.classify import SetupFailed

Write = Callable[[bytes], None]
Dialogue = Generator["int | bytes", bytes, None]
"""Yields how much to read (a count, or a terminator that ends the piece) and is sent the piece."""

_LONGEST_PIECE = 16 * 1024


class _Layer(Protocol):
    """Prepares a connection, then passes everything on to the protocol it was made for."""

    closed_early = "the server closed the connection"
    transport: Any

    def __init__(self, factory: IProtocolFactory, done: Deferred[IProtocol]) -> None:
        self._factory = factory
        self._done = done
        self._inner: Any = None

    def ready(self, rest: bytes = b"") -> None:
        """Build the protocol that wants the connection and hand it over."""
        if self._done.called:
            return
        self._inner = self._factory.buildProtocol(self.transport.getPeer())
        self._inner.makeConnection(self.transport)
        self._done.callback(self._inner)
        if rest:
            self._inner.dataReceived(rest)

    def refuse(self, reason: Failure) -> None:
        """Give the attempt up."""
        if self.transport is not None:
            self.transport.abortConnection()
        if not self._done.called:
            self._done.errback(reason)

    def dataReceived(self, data: bytes) -> None:
        """Pass data on."""
        if self._inner is not None:
            self._inner.dataReceived(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Pass the end on, or end the attempt."""
        if self._inner is not None:
            self._inner.connectionLost(reason)
        elif not self._done.called:
            self._done.errback(_readable(reason, self.closed_early))


class _ProxyLayer(_Layer):
    """Holds a dialogue with a proxy."""

    closed_early = "the proxy closed the connection"

    def __init__(
        self,
        factory: IProtocolFactory,
        done: Deferred[IProtocol],
        dialogue: Callable[[Write], Dialogue],
    ) -> None:
        super().__init__(factory, done)
        self._start = dialogue
        self._dialogue: Dialogue | None = None
        self._wanted: int | bytes = 0
        self._held = b""

    def connectionMade(self) -> None:
        """Say the first word."""
        self._dialogue = self._start(self.transport.write)
        self._wanted = next(self._dialogue)

    def dataReceived(self, data: bytes) -> None:
        """Feed the dialogue; what comes after its end belongs to the next layer."""
        if self._dialogue is None:
            super().dataReceived(data)
            return
        self._held += data
        while self._dialogue is not None and (piece := self._take()) is not None:
            self._advance(piece)
        if len(self._held) > _LONGEST_PIECE and self._dialogue is not None:
            self.refuse(Failure(SetupFailed("the proxy's answer is too long")))

    def _take(self) -> bytes | None:
        if isinstance(self._wanted, int):
            end = self._wanted if len(self._held) >= self._wanted else -1
        else:
            at = self._held.find(self._wanted)
            end = -1 if at < 0 else at + len(self._wanted)
        if end < 0:
            return None
        piece, self._held = self._held[:end], self._held[end:]
        return piece

    def _advance(self, piece: bytes) -> None:
        assert self._dialogue is not None
        try:
            self._wanted = self._dialogue.send(piece)
        except StopIteration:
            self._dialogue = None
            rest, self._held = self._held, b""
            self.ready(rest)
        except SetupFailed as problem:
            self._dialogue = None
            self.refuse(Failure(problem))


@implementer(IHandshakeListener)
class _SecureLayer(_Layer):
    """Waits for the end of the TLS handshake."""

    closed_early = "the server closed the connection before TLS was up"

    def handshakeCompleted(self) -> None:
        """Hand the connection over."""
        self.ready()


@implementer(IStreamClientEndpoint)
class ProxyEndpoint:
    """Connect through a proxy.

    @param base: the endpoint of the proxy itself.
    @param dialogue: is given a function that writes, and talks with the proxy.
    @param limit: seconds for connection and dialogue together.
    """

    def __init__(
        self,
        clock: IReactorTime,
        base: IStreamClientEndpoint,
        dialogue: Callable[[Write], Dialogue],
        limit: float,
    ) -> None:
        self._clock = clock
        self._base = base
        self._dialogue = dialogue
        self._limit = limit

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        """Connect; fires with the factory's protocol once the proxy has agreed."""
        done: Deferred[IProtocol] = Deferred()
        layer = _ProxyLayer(protocolFactory, done, self._dialogue)
        opening = self._base.connect(Factory.forProtocol(lambda: layer))
        return _limited(self._clock, opening, layer, done, self._limit, "the proxy")


@implementer(IStreamClientEndpoint)
class SecureEndpoint:
    """Connect with TLS.

    @param base: the endpoint below.
    @param creator: makes and checks the TLS connection.
    @param stalled: is told the peer's address when TLS did not finish in time.
    """

    def __init__(
        self,
        clock: IReactorTime,
        base: IStreamClientEndpoint,
        creator: IOpenSSLClientConnectionCreator,
        limit: float,
        stalled: Callable[[Any], None] = lambda address: None,
    ) -> None:
        self._clock = clock
        self._base = base
        self._creator = creator
        self._limit = limit
        self._stalled = stalled

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        """Connect; fires with the factory's protocol once TLS is up and the peer is proven."""
        done: Deferred[IProtocol] = Deferred()
        layer = _SecureLayer(protocolFactory, done)
        tls = TLSMemoryBIOFactory(self._creator, True, Factory.forProtocol(lambda: layer))
        opening = self._base.connect(tls)
        return _limited(self._clock, opening, layer, done, self._limit, "TLS", self._stalled)


def _limited(
    clock: IReactorTime,
    opening: Deferred[IProtocol],
    layer: _Layer,
    done: Deferred[IProtocol],
    limit: float,
    who: str,
    stalled: Callable[[Any], None] = lambda address: None,
) -> Deferred[IProtocol]:
    """Return C{done} with a time limit and with cancellation of what runs below."""

    def expire() -> None:
        if layer.transport is not None:
            stalled(layer.transport.getPeer())
        layer.refuse(Failure(SetupFailed(f"{who} did not answer in time")))
        opening.cancel()

    def below_failed(reason: Failure) -> None:
        if not done.called:
            done.errback(reason)

    def cancel(_: Deferred[IProtocol]) -> None:
        layer.refuse(Failure(CancelledError()))
        opening.cancel()

    timer = clock.callLater(limit, expire)
    result: Deferred[IProtocol] = Deferred(cancel)

    def finish(outcome: Any) -> None:
        if timer.active():
            timer.cancel()
        if not result.called:
            result.callback(outcome)

    done.addBoth(finish)
    opening.addErrback(below_failed)
    return result


def _readable(reason: Failure, otherwise: str) -> Failure:
    """Turn the end of an unfinished connection into a sentence."""
    if reason.check(VerificationError):
        return Failure(SetupFailed("TLS failed: the server's certificate is for another name"))
    if reason.check(SSLError):
        arguments = getattr(reason.value, "args", ())
        details = arguments[0] if arguments else ()
        words = [str(item[-1]) for item in details if item] if isinstance(details, list) else []
        return Failure(SetupFailed("TLS failed: " + (words[0] if words else "handshake refused")))
    return Failure(SetupFailed(otherwise))
