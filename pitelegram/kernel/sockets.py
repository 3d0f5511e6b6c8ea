"""UNIX sockets of our own: private from birth, never stolen, never unlinked for somebody else."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from pathlib import Path
from typing import Any

from twisted.internet import tcp, unix
from twisted.internet.interfaces import IProtocolFactory
from twisted.python.failure import Failure

from pitelegram.errors import SocketInUse, UnsafeFile

PRIVATE_MODE = 0o600

_BACKLOG = 50


class PrivatePort(unix.Port):
    """A listening port that removes its path only while the path is still this port's socket."""

    _identity: tuple[int, int] | None = None

    def startListening(self) -> None:
        """Bind under a restrictive umask, so that the socket is never open to others."""
        before = os.umask(0o177)
        try:
            super().startListening()
        finally:
            os.umask(before)
        self._identity = identity(os.fsdecode(self._bindPath))

    def connectionLost(self, reason: Failure) -> None:
        """Close; Twisted's own would unlink whatever stands at the path by now."""
        path = os.fsdecode(self._bindPath)
        if self._identity is not None and identity(path) == self._identity:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        tcp.Port.connectionLost(self, reason)


def listen_privately(
    path: Path, factory: IProtocolFactory, reactor: Any, name: str = "socket"
) -> PrivatePort:
    """Listen on C{path} (its directory is private already), mode 0600.

    A socket of ours that nobody answers any more is removed first.

    @param name: what the errors call it.
    @raise SocketInUse: somebody answers there, or it cannot be told.
    @raise UnsafeFile: something else than a socket of ours stands there.
    """
    clear_stale(path, name)
    port = PrivatePort(os.fsencode(path), factory, _BACKLOG, PRIVATE_MODE, reactor)
    port.startListening()
    return port


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
    if _answers(path, name):
        raise SocketInUse(f"another live process listens on the {name}; stop it first")
    if identity(path) == (info.st_dev, info.st_ino):
        os.unlink(path)


def identity(path: str | Path) -> tuple[int, int] | None:
    """Return device and inode of what stands at C{path} (links not followed), None for nothing."""
    try:
        info = os.lstat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino


def _answers(path: Path, name: str) -> bool:
    """Whether somebody listens; asked without waiting, since this runs on the reactor's thread."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except BlockingIOError:
            return True
        except OSError:
            raise SocketInUse(f"nobody can tell who has the {name}; remove it") from None
    return True
