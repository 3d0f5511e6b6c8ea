"""The Pi process: its three streams, its exit, and its end."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable
from typing import Any

from twisted.internet.error import ProcessDone, ProcessExitedAlready, ProcessTerminated
from twisted.internet.interfaces import IPushProducer, IReactorTime
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure
from zope.interface import implementer

from pitelegram.errors import PiGone, PiRefused
from pitelegram.kernel.observers import OneShot

STDERR_TAIL = 16 * 1024
PENDING_LIMIT = 96 * 1024 * 1024
"""Bytes that may wait for Pi to read its input; a prompt with pictures can be tens of megabytes."""

DRAIN_SECONDS = 0.5
"""How long the streams of an exited Pi may stay silent before they are closed."""

DRAIN_MOST = 5.0
"""How long they are read at most: what Pi itself wrote is there at once, others may write for ever."""


@implementer(IPushProducer)
class PiChild(ProcessProtocol):
    """One Pi process.

    @param received: gets every chunk of standard output, until the end.
    @param redact: takes secrets out of a text.
    @param pending_limit: most bytes that may wait for Pi to read its input.
    @ivar exited: fires with the exit in words at C{processExited}.
    @ivar ended: fires with the same once the output is drained too.
    @ivar exit_code: None while it runs and after a signal.
    """

    def __init__(
        self,
        clock: IReactorTime,
        received: Callable[[bytes], None],
        redact: Callable[[str], str],
        pending_limit: int = PENDING_LIMIT,
    ) -> None:
        self.exited: OneShot[str] = OneShot()
        self.ended: OneShot[str] = OneShot()
        self.exit_code: int | None = None
        self._clock = clock
        self._received = received
        self._redact = redact
        self._pending_limit = pending_limit
        self._stderr = b""
        self._words = ""
        self._drain: Any = None
        self._drain_until = 0.0
        self._waiting: deque[bytes] = deque()
        self._pending = 0
        self._paused = False
        self._open = False

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return getattr(self.transport, "pid", None)

    @property
    def stderr_tail(self) -> str:
        """The last of standard error, redacted."""
        return self._redact(self._stderr.decode("utf-8", "replace"))

    def connectionMade(self) -> None:
        """The process exists: begin to feed its input."""
        self._open = True
        self.transport.registerProducer(self, True)

    def outReceived(self, data: bytes) -> None:
        """Standard output, read until the end, while stopping too."""
        if self._drain is not None:
            left = self._drain_until - self._clock.seconds()
            self._drain.reset(max(0.0, min(DRAIN_SECONDS, left)))
        self._received(data)

    def errReceived(self, data: bytes) -> None:
        """Standard error: only the tail is kept."""
        self._stderr = (self._stderr + data)[-STDERR_TAIL:]

    def inConnectionLost(self) -> None:
        """Pi closed its input."""
        self._open = False
        self._waiting.clear()
        self._pending = 0

    def processExited(self, reason: Failure) -> None:
        """The process is gone; its streams may still hold something."""
        self.exit_code, self._words = exit_words(reason)
        self._open = False
        self.exited.fire(self._words)
        self._drain_until = self._clock.seconds() + DRAIN_MOST
        self._drain = self._clock.callLater(DRAIN_SECONDS, self._drained)

    def processEnded(self, reason: Failure) -> None:
        """Everything was read."""
        if self._drain is not None and self._drain.active():
            self._drain.cancel()
        self._drain = None
        self.ended.fire(self._words)

    def write(self, data: bytes) -> None:
        """Queue bytes for Pi's input.

        @raise PiGone: if Pi ended or its input is closed.
        @raise PiRefused: if too much waits already.
        """
        if not self._open:
            raise PiGone("Pi does not run any more")
        if self._pending + len(data) > self._pending_limit:
            raise PiRefused("Pi does not read its input; nothing more was given to it")
        self._waiting.append(data)
        self._pending += len(data)
        self._feed()

    def close_stdin(self) -> None:
        """Close Pi's input, which ends it.  Safe to repeat."""
        if self._open:
            self._open = False
            self.transport.unregisterProducer()
            self.transport.closeStdin()

    def signal(self, number: int) -> None:
        """Send a signal to Pi itself; nothing happens when it is gone."""
        if not self.exited.fired:
            try:
                self.transport.signalProcess(number)
            except ProcessExitedAlready:
                pass

    def pauseProducing(self) -> None:
        """The pipe is full."""
        self._paused = True

    def resumeProducing(self) -> None:
        """The pipe takes more."""
        self._paused = False
        self._feed()

    def stopProducing(self) -> None:
        """The pipe is gone."""
        self._open = False
        self._waiting.clear()
        self._pending = 0

    def _feed(self) -> None:
        while self._waiting and not self._paused:
            data = self._waiting.popleft()
            self._pending -= len(data)
            self.transport.write(data)

    def _drained(self) -> None:
        """Somebody else holds the streams open: they are of no use any more."""
        self._drain = None
        if self.transport is not None:
            self.transport.loseConnection()


def exit_words(reason: Failure) -> tuple[int | None, str]:
    """Return the exit code (None after a signal) and the exit in words."""
    if reason.check(ProcessDone):
        return 0, "exit code 0"
    if reason.check(ProcessTerminated):
        number = reason.value.signal
        if number is not None:
            return None, f"signal {number} ({_signal_name(number)})"
        return reason.value.exitCode, f"exit code {reason.value.exitCode}"
    return None, "unknown exit"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
