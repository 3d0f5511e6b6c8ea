"""What a service manager hears of a real daemon."""

from __future__ import annotations

import os
import signal
import socket
import sys

from twisted.internet.defer import Deferred
from twisted.internet.protocol import ProcessProtocol

from pitelegram.kernel.deferring import deferred
from tests.commands.test_daemon import DaemonCase


class Daemon(ProcessProtocol):
    """A daemon in the foreground.

    @ivar ready: fires when it says that it is ready, or has ended.
    @ivar ended: fires with its exit code.
    """

    def __init__(self) -> None:
        self.out = b""
        self.ready: Deferred[None] = Deferred()
        self.ended: Deferred[int | None] = Deferred()

    def childDataReceived(self, fd: int, data: bytes) -> None:
        """Look for the line."""
        self.out += data
        if b"pi-telegram ready" in self.out and not self.ready.called:
            self.ready.callback(None)

    def processEnded(self, reason) -> None:
        """Tell the exit code."""
        if not self.ready.called:
            self.ready.callback(None)
        self.ended.callback(reason.value.exitCode)


class NotifyTests(DaemonCase):
    """C{sd_notify}, on sockets of both kinds."""

    @deferred
    async def life(self, bound: str, address: str, *signals: int) -> list[bytes]:
        """Run a daemon until it is ready, send it signals at once; fires with what it told."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(bound)
            manager.setblocking(False)
            environ = {
                **{name: v for name, v in os.environ.items() if not name.startswith("PI_")},
                "PI_CODING_AGENT_DIR": str(self.agent),
                "NOTIFY_SOCKET": address,
            }
            daemon = Daemon()
            words = [
                *(sys.executable, "-m", "pitelegram.cli", "run"),
                f"--api-root={self.telegram.api_root}",
            ]
            process = self.reactor.spawnProcess(daemon, words[0], words, environ, str(self.agent))
            await daemon.ready
            for each in signals:
                process.signalProcess(each)
            self.assertEqual(await daemon.ended, 0, daemon.out)
            self.assertNotIn(b"[critical]", daemon.out)
            told = []
            while True:
                try:
                    told.append(manager.recv(4096))
                except BlockingIOError:
                    return told

    @deferred
    async def test_path(self) -> None:
        """Ready once, stopping once."""
        path = str(self.agent / "manager")
        self.assertEqual(await self.life(path, path, signal.SIGTERM), [b"READY=1", b"STOPPING=1"])

    @deferred
    async def test_abstract(self) -> None:
        """The same in the abstract namespace."""
        name = f"pi-telegram-test-{os.getpid()}"
        told = await self.life(f"\0{name}", f"@{name}", signal.SIGTERM)
        self.assertEqual(told, [b"READY=1", b"STOPPING=1"])

    @deferred
    async def test_signals_in_a_row(self) -> None:
        """However often it is told to stop, it stops once and ends with 0."""
        path = str(self.agent / "manager")
        signals = (signal.SIGTERM, signal.SIGINT, signal.SIGTERM, signal.SIGTERM)
        self.assertEqual(await self.life(path, path, *signals), [b"READY=1", b"STOPPING=1"])
