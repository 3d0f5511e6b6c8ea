"""UNIX sockets of our own: private from birth, never stolen, never unlinked for somebody else."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from twisted.internet import tcp, unix
from twisted.internet.interfaces import IProtocolFactory
from twisted.python.failure import Failure

from pitelegram.errors import SocketInUse, UnsafeFile
from pitelegram.kernel.files import refusals
from pitelegram.kernel.peers import peer_ids

PRIVATE_MODE = 0o600

TURN_SECONDS = 1.0
"""How long one that starts waits for another that is making a socket in the same directory."""

LONGEST_PATH = 107 if sys.platform == "linux" else 103
"""Bytes of a socket's path."""

_PAUSE = 0.02
_BACKLOG = 1024
"""Who connects without waiting is refused beyond these."""


class PrivatePort(unix.Port):
    """A listening port that removes its path only while the path is still this port's socket."""

    _identity: tuple[int, int] | None = None

    @property
    def in_place(self) -> bool:
        """Whether it listens, and who looks for it finds it at its path."""
        path = os.fsdecode(self._bindPath)
        return bool(self.connected) and identity(path) == self._identity is not None

    def startListening(self) -> None:
        """Bind under a restrictive umask, so that the socket is never open to others."""
        before = os.umask(0o177)
        try:
            super().startListening()
        finally:
            os.umask(before)
        self._identity = identity(os.fsdecode(self._bindPath))

    def remove_path(self) -> None:
        """Take the path away while it is still this port's socket."""
        path = os.fsdecode(self._bindPath)
        if self._identity is not None and identity(path) == self._identity:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def connectionLost(self, reason: Failure) -> None:
        """Close; Twisted's own would unlink whatever stands at the path by now."""
        self.remove_path()
        tcp.Port.connectionLost(self, reason)


def listen_privately(
    path: Path, factory: IProtocolFactory, reactor: Any, name: str = "socket"
) -> PrivatePort:
    """Listen on C{path} (its directory is private already), mode 0600.

    A socket of ours that nobody answers any more is removed first.

    @param name: what the errors call it.
    @raise SocketInUse: somebody answers there, or it cannot be told.
    @raise UnsafeFile: something else than a socket of ours stands there, or the path is too long.
    """
    check_length(path, name)
    with _my_turn(path.parent, name):
        clear_stale(path, name)
        port = PrivatePort(os.fsencode(path), factory, _BACKLOG, PRIVATE_MODE, reactor)
        port.startListening()
    return port


def check_length(path: Path, name: str) -> None:
    """@raise UnsafeFile: C{invalid_entry_name}; the system takes no such path for a socket."""
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise UnsafeFile(
            "invalid_entry_name", f"the path of the {name} is too long; choose a shorter one"
        )


def clear_stale(path: Path, name: str = "socket") -> None:
    """Remove a socket file that a dead process of ours left behind; see L{listen_privately}."""
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(info.st_mode):
        raise UnsafeFile("wrong_type", f"something else stands where the {name} should be")
    if info.st_uid != os.geteuid():
        raise UnsafeFile("wrong_owner", f"the {name} belongs to another user; remove it")
    _refuse_live(path, name)
    if identity(path) == (info.st_dev, info.st_ino):
        os.unlink(path)


def identity(path: str | Path) -> tuple[int, int] | None:
    """Return device and inode of what stands at C{path} (links not followed), None for nothing."""
    try:
        info = os.lstat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino


@contextlib.contextmanager
def _my_turn(
    directory: Path, name: str, pause: Callable[[float], object] = time.sleep
) -> Iterator[None]:
    """Be the only one who removes and makes sockets in a directory; nothing is left behind."""
    with refusals():
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for _ in range(int(TURN_SECONDS / _PAUSE)):
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                pause(_PAUSE)
        else:
            raise SocketInUse(f"another process is making the {name}; try again")
        yield
    finally:
        os.close(fd)


def _refuse_live(path: Path, name: str) -> None:
    """Ask whether somebody listens, without waiting, since this runs on the reactor's thread.

    @raise SocketInUse: somebody does, or it cannot be told.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return
        except BlockingIOError:  # too busy to take one more
            raise SocketInUse(
                f"another live process listens on the {name}; stop it first"
            ) from None
        except OSError:
            raise SocketInUse(f"nobody can tell who has the {name}; remove it") from None
        pid = peer_ids(SimpleNamespace(socket=probe)).pid
    who = "" if pid is None else f" (pid {pid})"
    raise SocketInUse(f"another live process{who} listens on the {name}; stop it first")
