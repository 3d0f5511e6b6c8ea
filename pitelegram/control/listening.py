"""The control socket as a file: private, taken only when nobody listens, given back only by us."""

from __future__ import annotations

import grp
import os
import socket
import stat
import struct
from pathlib import Path
from typing import Any

from twisted.internet import tcp, unix
from twisted.internet.interfaces import IProtocolFactory

from pitelegram.errors import ConfigError, PiTelegramError, UnsafeFile
from pitelegram.kernel.files import ensure_private_dir

PRIVATE_MODE = 0o600
GROUP_MODE = 0o660


class SocketInUse(PiTelegramError):
    """Another process listens on the control socket."""


class PrivatePort(unix.Port):
    """A UNIX port that unlinks its path at the end only while it is still its own inode."""

    _inode: tuple[int, int] | None = None

    def startListening(self) -> None:
        """Bind (made 0600 from the start) and listen."""
        before = os.umask(0o177)
        try:
            super().startListening()
        finally:
            os.umask(before)
        self._inode = _inode_of(os.fsdecode(self._bindPath))

    def connectionLost(self, reason: Any) -> None:
        """Stop; a path that names somebody else's socket by now stays."""
        path = os.fsdecode(self._bindPath)
        if self._inode is not None and _inode_of(path) == self._inode:
            os.unlink(path)
        tcp.Port.connectionLost(self, reason)


def listen(path: Path, factory: IProtocolFactory, reactor: Any, group: str | None) -> PrivatePort:
    """Make the directory private, remove a dead socket, and listen.

    @param group: a group of this process that may connect too; then the directory must be there.
    @raise SocketInUse: somebody answers there.
    @raise UnsafeFile: the path is not a socket of ours, or its directory is open to others.
    @raise ConfigError: this process is not a member of the group.
    """
    gid = None if group is None else group_id(group)
    if gid is None:
        if not _acceptable_parent(path.parent):
            ensure_private_dir(path.parent)
    else:
        _check_group_parent(path.parent, gid)
    remove_stale(path)
    port = PrivatePort(os.fsencode(path), factory, mode=PRIVATE_MODE, reactor=reactor)
    port.startListening()
    if gid is not None:
        try:
            os.chown(path, -1, gid)
            os.chmod(path, GROUP_MODE)
        except OSError:
            port.stopListening()
            raise UnsafeFile("operation_failed", "the group of the control socket cannot be set")
    return port


def group_id(name: str) -> int:
    """Return the id of a group that this process is a member of right now.

    @raise ConfigError: there is no such group, or this process is not in it.
    """
    try:
        gid = grp.getgrnam(name).gr_gid
    except (KeyError, ValueError):
        raise ConfigError("the group of the control socket is unknown") from None
    if gid != os.getegid() and gid not in os.getgroups():
        raise ConfigError("this process is not a member of the control socket's group")
    return gid


def remove_stale(path: Path) -> None:
    """Unlink a socket of ours that refuses connections; leave everything else alone.

    @raise SocketInUse: somebody answers, or it cannot be told.
    @raise UnsafeFile: not a socket, or not ours.
    """
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(info.st_mode):
        raise UnsafeFile("wrong_type", "the control socket's path is taken by something else")
    if info.st_uid != os.geteuid():
        raise UnsafeFile("wrong_owner", "the control socket belongs to another user")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            if _inode_of(path) == (info.st_dev, info.st_ino):
                os.unlink(path)
            return
        except FileNotFoundError:
            return
        except OSError:
            raise SocketInUse("the control socket is in an unclear state") from None
    raise SocketInUse("another process listens on the control socket")


def peer_uid(connection: socket.socket | None) -> int | None:
    """Return the user id of the other end, None where the system does not tell."""
    option = getattr(socket, "SO_PEERCRED", None)
    if connection is None or option is None:
        return None
    data = connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i"))
    return struct.unpack("3i", data)[1]


def _inode_of(path: str | Path) -> tuple[int, int] | None:
    try:
        info = os.lstat(path)
    except OSError:
        return None
    return (info.st_dev, info.st_ino)


def _acceptable_parent(path: Path) -> bool:
    """Whether a directory of ours is there that nobody else may write to."""
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return False
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
        raise UnsafeFile("wrong_owner", "the control socket's directory is not ours")
    if info.st_mode & 0o022:
        raise UnsafeFile(
            "insecure_mode", "the control socket's directory is writable for others; restrict it"
        )
    return True


def _check_group_parent(path: Path, gid: int) -> None:
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        raise UnsafeFile("missing_entry", "make the control socket's directory first") from None
    right = stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid() and info.st_gid == gid
    if not right or info.st_mode & 0o027 or not info.st_mode & 0o010:
        raise UnsafeFile(
            "insecure_mode",
            "a control socket with a group needs a directory of that group with mode 0710 or 0750",
        )
