"""Processes in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twisted.internet.error import ProcessDone, ProcessExitedAlready, ProcessTerminated
from twisted.internet.interfaces import IProcessTransport, IReactorProcess
from twisted.python.failure import Failure
from zope.interface import implementer
from zope.interface.verify import verifyClass


@implementer(IProcessTransport)
class FakeProcess:
    """The transport of a process that does only what a test tells it.

    @ivar written: what was written to its input.
    @ivar signals: what it was sent.
    @ivar stdin_closed: whether its input was closed.
    @ivar lost: whether the parent gave its streams up.
    """

    def __init__(self, protocol: Any, pid: int, arguments: Sequence[str], **options: Any) -> None:
        self.protocol = protocol
        self.pid: int | None = pid
        self.arguments = list(arguments)
        self.options = options
        self.written = b""
        self.signals: list[int | str] = []
        self.stdin_closed = False
        self.lost = False
        self.producer: Any = None
        self._exited: Failure | None = None

    def out(self, data: bytes) -> None:
        """It writes to its standard output."""
        self.protocol.childDataReceived(1, data)

    def err(self, data: bytes) -> None:
        """It writes to its standard error."""
        self.protocol.childDataReceived(2, data)

    def exit(self, code: int | None = 0, signal: int | None = None, end: bool = True) -> None:
        """It exits; with C{end} false somebody else still holds its streams."""
        failed = bool(code) or signal is not None
        reason = ProcessTerminated(code, signal, 0) if failed else ProcessDone(0)
        self._exited = Failure(reason)
        self.pid = None
        self.protocol.processExited(self._exited)
        if end:
            self.end()

    def end(self) -> None:
        """The last holder of its streams closes them."""
        self.protocol.processEnded(self._exited)

    def write(self, data: bytes) -> None:
        """See C{IProcessTransport}."""
        self.written += data

    def writeSequence(self, seq: Any) -> None:
        """See C{IProcessTransport}."""
        self.write(b"".join(seq))

    def writeToChild(self, childFD: int, data: bytes) -> None:
        """See C{IProcessTransport}."""
        self.write(data)

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Remember who feeds the input."""
        self.producer = producer

    def unregisterProducer(self) -> None:
        """Nobody feeds the input any more."""
        self.producer = None

    def closeStdin(self) -> None:
        """See C{IProcessTransport}."""
        self.stdin_closed = True

    def closeStdout(self) -> None:
        """See C{IProcessTransport}."""

    def closeStderr(self) -> None:
        """See C{IProcessTransport}."""

    def closeChildFD(self, descriptor: int) -> None:
        """See C{IProcessTransport}."""

    def loseConnection(self) -> None:
        """See C{IProcessTransport}."""
        self.lost = True
        if self._exited is not None:
            self.end()

    def getPeer(self) -> Any:
        """A process has no address."""
        return None

    def getHost(self) -> Any:
        """A process has no address."""
        return None

    def signalProcess(self, signalID: Any) -> None:
        """See C{IProcessTransport}."""
        if self.pid is None:
            raise ProcessExitedAlready()
        self.signals.append(signalID)


@implementer(IReactorProcess)
class FakeSpawner:
    """Makes L{FakeProcess}es.

    @ivar processes: all that were made, oldest first.
    @ivar error: raised by the next spawn.
    """

    def __init__(self, first_pid: int = 5001) -> None:
        self.processes: list[FakeProcess] = []
        self.error: OSError | None = None
        self._next_pid = first_pid

    def spawnProcess(
        self,
        processProtocol: Any,
        executable: Any,
        args: Sequence[Any] = (),
        env: Mapping[Any, Any] | None = None,
        path: Any = None,
        uid: int | None = None,
        gid: int | None = None,
        usePTY: Any = False,
        childFDs: Mapping[int, Any] | None = None,
    ) -> FakeProcess:
        """See C{IReactorProcess}."""
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        options = {"executable": executable, "env": env, "path": path, "childFDs": childFDs}
        process = FakeProcess(processProtocol, self._next_pid, args, **options)
        self._next_pid += 1
        self.processes.append(process)
        processProtocol.makeConnection(process)
        return process


verifyClass(IReactorProcess, FakeSpawner)
verifyClass(IProcessTransport, FakeProcess)
