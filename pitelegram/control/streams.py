"""Server-sent events: the newest redacted events, then live ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPushProducer, IReactorTime
from twisted.internet.task import LoopingCall
from twisted.web.server import Request
from zope.interface import implementer

from pitelegram.control import outward
from pitelegram.control.interfaces import IDaemon
from pitelegram.kernel.jsonio import dumps

BACKLOG = 100
"""Events sent at the beginning."""

KEEP_ALIVE = 15.0
"""Seconds between two signs of life."""

PATIENCE = 4
"""A reader that takes nothing for so many of those is cut off."""


class Lines:
    """Events as they are written: each is looked at once, however many read it."""

    def __init__(self) -> None:
        self._last: tuple[dict[str, Any], bytes] | None = None

    def of(self, event: dict[str, Any]) -> bytes:
        """Return an event's line."""
        if self._last is None or self._last[0] is not event:
            self._last = event, b"data: " + dumps(outward.event(event)) + b"\n\n"
        return self._last[1]


@implementer(IPushProducer)
class EventStream:
    """One reader of C{/v1/events}.  Events that a slow reader cannot take are dropped and counted.

    @param lines: shared by all readers.
    """

    def __init__(
        self, request: Request, daemon: IDaemon, clock: IReactorTime, lines: Lines
    ) -> None:
        self._lines = lines
        self._request = request
        self._daemon = daemon
        self._open = False
        self._paused = False
        self._stuck = 0
        self._dropped = 0
        self._unsubscribe: Callable[[], None] | None = None
        self._beat = LoopingCall(self._keep_alive)
        self._beat.clock = clock

    def start(self) -> Deferred[None]:
        """Begin; fires when the reader has gone or L{stop} was called."""
        self._open = True
        request = self._request
        request.setHeader(b"Content-Type", b"text/event-stream")
        request.setHeader(b"Cache-Control", b"no-store")
        ended = request.notifyFinish().addBoth(lambda _: self._ended())
        request.registerProducer(self, True)
        request.write(b": events\n\n")
        for event in self._daemon.events(BACKLOG):
            self._send(event)
        self._unsubscribe = self._daemon.subscribe(self._send)
        self._beat.start(KEEP_ALIVE, now=False)
        return ended

    def stop(self) -> None:
        """End the stream.  Safe to repeat."""
        if self._open:
            self._open = False
            self._request.unregisterProducer()
            self._request.finish()

    def pauseProducing(self) -> None:
        """The reader is slow."""
        self._paused = True

    def resumeProducing(self) -> None:
        """The reader has caught up."""
        self._paused = False
        self._stuck = 0
        if self._dropped and self._open:
            dropped, self._dropped = self._dropped, 0
            self._request.write(b"event: dropped\ndata: %d\n\n" % dropped)

    def stopProducing(self) -> None:
        """The reader has gone; the end is noticed by the request."""
        self._paused = True

    def _send(self, event: dict[str, Any]) -> None:
        if not self._open:
            return
        if self._paused:
            self._dropped += 1
            return
        self._request.write(self._lines.of(event))

    def _keep_alive(self) -> None:
        if not self._open:
            return
        if not self._paused:
            self._request.write(b": alive\n\n")
            return
        self._stuck += 1
        if self._stuck >= PATIENCE:
            self._request.channel.abortConnection()

    def _ended(self) -> None:
        self._open = False
        if self._beat.running:
            self._beat.stop()
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
