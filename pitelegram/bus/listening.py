"""A UNIX socket of our own: private from birth, never stolen, never unlinked for somebody else."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from pathlib import Path
from typing import Any

from twisted.internet import tcp, unix
from twisted.internet.protocol import Factory
from twisted.python.failure import Failure

from pitelegram.errors import OwnershipError, UnsafeFile

_BACKLOG = 50


class PrivatePort(unix.Port):
    """A listening port that removes its path only while the path is still this port's socket."""

    def startListening(self) -> None:
        """Bind under a restrictive umask, so that the socket is never open to others."""
        before = os.umask(0o177)
        try:
            unix.Port.startListening(self)
        finally:
            os.umask(before)
        self._identity = _identity(os.fsdecode(self._bindPath))

    def connectionLost(self, reason: Failure) -> None:
        """Close; Twisted's own would unlink whatever stands at the path by now."""
        path = os.fsdecode(self._bindPath)
        if _identity(path) == self._identity:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        tcp.Port.connectionLost(self, reason)


def listen_privately(reactor: Any, path: Path, factory: Factory) -> PrivatePort:
    """Listen on C{path} (its directory is private already), mode 0600.

    A socket of ours that nobody answers any more is removed first.

    @raise OwnershipError: somebody answers there.
    @raise UnsafeFile: something else than a socket of ours stands there.
    """
    clear_stale(path)
    port = PrivatePort(os.fsencode(path), factory, _BACKLOG, 0o600, reactor)
    port.startListening()
    return port


def clear_stale(path: Path) -> None:
    """Remove a socket file that a dead process of ours left behind; see L{listen_privately}."""
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(info.st_mode):
        raise UnsafeFile("wrong_type", "something else stands where a socket should be; remove it")
    if info.st_uid != os.geteuid():
        raise UnsafeFile("wrong_owner", "the socket belongs to another user; remove it")
    if _answers(path):
        raise OwnershipError("another live process listens on the socket; stop it first")
    if _identity(os.fspath(path)) == (info.st_dev, info.st_ino):
        os.unlink(path)


def _answers(path: Path) -> bool:
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    probe.setblocking(False)
    try:
        probe.connect(os.fspath(path))
    except (ConnectionRefusedError, FileNotFoundError):
        return False
    except BlockingIOError:
        return True
    finally:
        probe.close()
    return True


def _identity(path: str) -> tuple[int, int] | None:
    try:
        info = os.lstat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino
