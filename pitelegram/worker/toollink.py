"""The private socket between a worker and the extension in its Pi; records stand in C{docs/pi.md}."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.protocol import Factory, connectionDone
from twisted.logger import Logger
from twisted.protocols.basic import LineOnlyReceiver
from twisted.python.failure import Failure

from pitelegram.bridge.guidance import FULL, SHORT, TOOLS
from pitelegram.errors import ToolRefused
from pitelegram.kernel.files import ensure_private_dir
from pitelegram.kernel.jsonio import dumps, loads
from pitelegram.kernel.peers import peer_ids
from pitelegram.kernel.sockets import PrivatePort, listen_privately
from pitelegram.worker.interfaces import IAgentTools

LONGEST_LINE = 1024 * 1024
MOST_CALLS = 32
"""Calls of the agent that may be under way at one time."""


class ToolProtocol(LineOnlyReceiver):
    """One connection; anything malformed is ignored, a line that is too long ends it."""

    delimiter = b"\n"
    MAX_LENGTH = LONGEST_LINE
    _log = Logger()

    def __init__(self, link: ToolLink) -> None:
        self._link = link
        self._calls: dict[str, Deferred[Any]] = {}

    def connectionMade(self) -> None:
        """Let only Pi in, and it once."""
        if not self._link.admit(self, peer_ids(self.transport).pid):
            self.transport.abortConnection()

    def lineReceived(self, line: bytes) -> None:
        """Take one record."""
        try:
            record = loads(line)
        except ValueError:
            return
        if not isinstance(record, dict):
            return
        if record.get("type") == "hello":
            guidance = {"short": SHORT, "full": FULL}
            self._write({"type": "welcome", "tools": TOOLS, "guidance": guidance})
        elif record.get("type") == "call":
            self._call(record)
        elif record.get("type") == "cancel" and isinstance(record.get("id"), str):
            call = self._calls.get(record["id"])
            if call is not None:
                call.cancel()

    def _call(self, record: dict[str, Any]) -> None:
        identity, tool, params = record.get("id"), record.get("tool"), record.get("params")
        if not isinstance(identity, str) or not isinstance(tool, str) or identity in self._calls:
            return
        if len(self._calls) >= MOST_CALLS:
            self._answer(identity, False, "\nToo many calls at one time.")
            return
        running = self._link.tools.call(tool, params if isinstance(params, dict) else {})
        self._calls[identity] = running
        running.addCallbacks(
            lambda result: self._answer(identity, True, *result),
            lambda failure: self._failed(identity, failure),
        )
        running.addBoth(lambda _: self._calls.pop(identity, None) and None)

    def _failed(self, identity: str, failure: Failure) -> None:
        if failure.check(ToolRefused):
            self._answer(identity, False, str(failure.value))
        elif not failure.check(CancelledError):
            self._log.failure("a tool of the agent failed", failure)
            self._answer(identity, False, "\nThe worker could not do it; its log has the reason.")

    def _answer(
        self, identity: str, ok: bool, text: str, details: dict[str, Any] | None = None
    ) -> None:
        self._write(
            {"type": "result", "id": identity, "ok": ok, "text": text, "details": details or {}}
        )

    def _write(self, record: dict[str, Any]) -> None:
        if self.transport is not None and self.connected:
            self.sendLine(dumps(record))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Nobody waits for the calls any more."""
        self._link.gone(self)
        for call in list(self._calls.values()):
            call.cancel()


class ToolLink(Service):
    """Listens for the extension of the worker's own Pi.

    @param path: of the socket; its directory is made private.
    @param pid: returns Pi's process id, None while there is none.
    """

    _log = Logger()

    def __init__(
        self, reactor: Any, path: Path, pid: Callable[[], int | None], tools: IAgentTools
    ) -> None:
        self._reactor = reactor
        self._path = path
        self._pid = pid
        self.tools = tools
        self._port: PrivatePort | None = None
        self._connection: ToolProtocol | None = None

    def startService(self) -> None:
        """Listen.

        @raise pitelegram.errors.SocketInUse: somebody answers there.
        @raise pitelegram.errors.UnsafeFile: the place is not ours.
        """
        super().startService()
        ensure_private_dir(self._path.parent)
        factory = Factory.forProtocol(lambda: ToolProtocol(self))
        factory.noisy = False
        self._port = listen_privately(self._path, factory, self._reactor, "tool link")

    def stopService(self) -> Any:
        """End the connection and remove the socket."""
        super().stopService()
        if self._connection is not None:
            self._connection.transport.abortConnection()
        port, self._port = self._port, None
        return None if port is None else port.stopListening()

    def admit(self, connection: ToolProtocol, pid: int | None) -> bool:
        """Whether that connection is Pi's, and the first."""
        if self._connection is not None or pid is None or pid != self._pid():
            self._log.warn("a stranger at the tool link was turned away")
            return False
        self._connection = connection
        return True

    def gone(self, connection: ToolProtocol) -> None:
        """A connection ended."""
        if connection is self._connection:
            self._connection = None
