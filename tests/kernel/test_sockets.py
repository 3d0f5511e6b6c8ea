"""Sockets of our own, and what else may stand at their paths."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from twisted.internet.defer import maybeDeferred
from twisted.internet.protocol import Factory, Protocol
from twisted.trial.unittest import TestCase

from pitelegram.errors import SocketInUse, UnsafeFile
from pitelegram.kernel import sockets
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.peers import UNKNOWN, UNREADABLE, peer_ids
from pitelegram.kernel.sockets import PrivatePort, clear_stale, listen_privately


class PrivateSocketTests(TestCase):
    """L{listen_privately} and L{clear_stale}."""

    def setUp(self) -> None:
        """Make a private directory with a short path."""
        from twisted.internet import reactor

        self.reactor: Any = reactor
        directory = Path(tempfile.mkdtemp(prefix="pt-"))
        self.addCleanup(shutil.rmtree, directory)
        self.path = directory / "s"

    def listen(self) -> PrivatePort:
        """Listen until the test ends."""
        port = listen_privately(
            self.path, Factory.forProtocol(Protocol), self.reactor, "test socket"
        )
        self.addCleanup(lambda: maybeDeferred(port.stopListening))
        return port

    def leave_behind(self, kind: int = socket.SOCK_STREAM) -> socket.socket:
        """Put a socket that is not listening at the path."""
        left = socket.socket(socket.AF_UNIX, kind)
        self.addCleanup(left.close)
        left.bind(str(self.path))
        return left

    def test_private_under_any_umask(self) -> None:
        """The socket is for this user alone, and the umask is as before."""
        before = os.umask(0)
        try:
            self.listen()
            self.assertEqual(os.umask(0), 0)
        finally:
            os.umask(before)
        info = os.lstat(self.path)
        self.assertTrue(stat.S_ISSOCK(info.st_mode))
        self.assertEqual(stat.S_IMODE(info.st_mode), 0o600)

    @deferred
    async def test_end_removes_it(self) -> None:
        """Closing removes the path; one that is gone already is no trouble."""
        for vanish in (False, True):
            port = self.listen()
            if vanish:
                self.path.unlink()
            await maybeDeferred(port.stopListening)
            self.assertFalse(os.path.lexists(self.path))

    @deferred
    async def test_end_spares_others(self) -> None:
        """What somebody else put at the path meanwhile stays."""
        port = self.listen()
        self.path.unlink()
        self.leave_behind()
        await maybeDeferred(port.stopListening)
        self.assertTrue(os.path.lexists(self.path))

    def test_live_listener(self) -> None:
        """Where somebody listens, nobody else does, and the error names the socket."""
        self.listen()
        problem = self.assertRaises(SocketInUse, self.listen)
        self.assertIn("test socket", str(problem))
        self.assertIn(f"pid {os.getpid()}", str(problem))
        self.assertTrue(os.path.lexists(self.path))

    def test_full_backlog(self) -> None:
        """A listener that is too busy to accept is alive too, and asking does not wait for it."""
        busy = self.leave_behind()
        busy.listen(0)
        clients = [socket.socket(socket.AF_UNIX) for _ in range(4)]
        for client in clients:
            self.addCleanup(client.close)
            client.setblocking(False)
            client.connect_ex(str(self.path))
        self.assertRaises(SocketInUse, clear_stale, self.path)

    def test_dead_socket(self) -> None:
        """What a killed process left is replaced."""
        self.leave_behind().close()
        self.listen()
        self.assertTrue(os.path.lexists(self.path))

    def test_unclear(self) -> None:
        """A socket of another type cannot be asked: it stays."""
        self.leave_behind(socket.SOCK_DGRAM)
        self.assertRaises(SocketInUse, clear_stale, self.path)
        self.assertTrue(os.path.lexists(self.path))

    def test_something_else(self) -> None:
        """A file and a link are refused and stay."""
        self.path.write_text("precious")
        self.assertRaises(UnsafeFile, clear_stale, self.path)
        self.assertEqual(self.path.read_text(), "precious")
        self.path.unlink()
        self.path.symlink_to("elsewhere")
        self.assertRaises(UnsafeFile, clear_stale, self.path)
        self.assertTrue(self.path.is_symlink())

    def test_too_long(self) -> None:
        """A path that the system does not take is refused in words, without it."""
        self.path = self.path.with_name("x" * 120)
        problem = self.assertRaises(UnsafeFile, self.listen)
        self.assertEqual(problem.code, "invalid_entry_name")
        self.assertNotIn("xxx", str(problem))

    def test_one_at_a_time(self) -> None:
        """While another makes a socket in the directory nothing is touched; then it is our turn."""
        self.leave_behind().close()
        left = os.lstat(self.path).st_ino
        turn = os.open(self.path.parent, os.O_RDONLY)
        fcntl.flock(turn, fcntl.LOCK_EX)
        self.patch(sockets, "TURN_SECONDS", 0.1)
        self.assertRaises(SocketInUse, self.listen)
        self.assertEqual(os.lstat(self.path).st_ino, left)
        os.close(turn)
        self.listen()
        self.assertEqual(os.listdir(self.path.parent), [self.path.name])

    def test_many_starts_at_once(self) -> None:
        """Of several programs that start over a dead socket exactly one serves, and stays."""
        self.leave_behind().close()
        code = (
            "import sys; from pathlib import Path\n"
            "from twisted.internet import reactor\n"
            "from twisted.internet.protocol import Factory, Protocol\n"
            "from pitelegram.errors import SocketInUse\n"
            "from pitelegram.kernel.sockets import listen_privately\n"
            "sys.stdin.readline()\n"
            "try: listen_privately(Path(sys.argv[1]), Factory.forProtocol(Protocol), reactor)\n"
            "except SocketInUse: print('refused', flush=True)\n"
            "else: print('serves', flush=True); reactor.run()\n"
        )
        starts = [
            subprocess.Popen(
                [sys.executable, "-c", code, str(self.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(4)
        ]
        for start in starts:
            assert start.stdin is not None
            start.stdin.write("go\n")
            start.stdin.flush()
        said = []
        for start in starts:
            assert start.stdout is not None
            said.append(start.stdout.readline().strip())
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.path))
        for start in starts:
            start.terminate()
            start.communicate(timeout=30)
        self.assertEqual(sorted(said), ["refused"] * 3 + ["serves"])

    def test_nothing(self) -> None:
        """An empty path is free."""
        clear_stale(self.path)
        self.assertFalse(os.path.lexists(self.path))


class PeerTests(TestCase):
    """L{peer_ids}."""

    def test_who(self) -> None:
        """The other end of a pair of UNIX sockets is this process; other transports tell nothing."""

        class Transport:
            def __init__(self, one: Any) -> None:
                self.socket = one

        ours, theirs = socket.socketpair()
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)
        found = peer_ids(Transport(ours))
        self.assertEqual((found.pid, found.uid), (os.getpid(), os.geteuid()))
        with socket.socket(socket.AF_INET) as inet:
            self.assertEqual(peer_ids(Transport(inet)), UNKNOWN)
        self.assertEqual(peer_ids(object()), UNKNOWN)

    def test_unreadable(self) -> None:
        """Where the system should tell and fails, the peer is nobody who may connect."""

        class Broken:
            family = socket.AF_UNIX

            def getsockopt(self, *arguments: Any) -> bytes:
                raise OSError(107, "not connected")

        class Transport:
            socket = Broken()

        found = peer_ids(Transport())
        self.assertEqual(found, UNREADABLE)
        self.assertNotIn(found.uid, (None, 0, os.geteuid()))
