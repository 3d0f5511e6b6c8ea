"""Running programs from tests without blocking the reactor."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessDone
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure


@attrs.frozen
class Ended:
    """How a program ended.

    @ivar code: exit code, negative for a signal.
    """

    code: int
    out: str
    err: str


class _Collector(ProcessProtocol):
    def __init__(self, stdin: bytes) -> None:
        self.ended: Deferred[Ended] = Deferred()
        self._stdin = stdin
        self._out: dict[int, bytes] = {1: b"", 2: b""}

    def connectionMade(self) -> None:
        self.transport.write(self._stdin)
        self.transport.closeStdin()

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        self._out[childFD] += data

    def processEnded(self, reason: Failure) -> None:
        value: Any = reason.value
        code = 0 if isinstance(value, ProcessDone) else value.exitCode
        if code is None:
            code = -value.signal
        self.ended.callback(Ended(code, self._out[1].decode(), self._out[2].decode()))


def run_program(
    reactor: Any,
    words: Sequence[str],
    stdin: bytes = b"",
    environ: Mapping[str, str] | None = None,
    directory: str = "/",
    seconds: float = 60.0,
) -> Deferred[Ended]:
    """Run a program to its end; it is killed after C{seconds}."""
    collector = _Collector(stdin)
    environ = dict(os.environ if environ is None else environ)
    transport = reactor.spawnProcess(collector, words[0], list(words), environ, directory)
    late = reactor.callLater(seconds, transport.signalProcess, "KILL")

    def done(ended: Any) -> Any:
        if late.active():
            late.cancel()
        return ended

    return collector.ended.addBoth(done)


def run_cli(
    reactor: Any,
    *arguments: str,
    stdin: bytes = b"",
    environ: Mapping[str, str] | None = None,
    directory: str = "/",
    seconds: float = 60.0,
) -> Deferred[Ended]:
    """Run C{pi-telegram} as a process of its own, in an environment without our variables."""
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PI_", "NOTIFY_")) and not key.upper().endswith("_PROXY")
    }
    words = [sys.executable, "-P"] if sys.version_info >= (3, 11) else [sys.executable]
    return run_program(
        reactor,
        [*words, "-m", "pitelegram.cli", *arguments],
        stdin,
        {**clean, **(environ or {})},
        directory,
        seconds,
    )
