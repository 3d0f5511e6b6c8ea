"""Where the control socket may stand, and how a group gets at it."""

from __future__ import annotations

import grp
import os
import stat
from pathlib import Path
from typing import Any

from twisted.internet.interfaces import IProtocolFactory

from pitelegram.errors import ConfigError, UnsafeFile
from pitelegram.kernel.files import ensure_private_dir
from pitelegram.kernel.sockets import PrivatePort, listen_privately

GROUP_MODE = 0o660


def listen(path: Path, factory: IProtocolFactory, reactor: Any, group: str | None) -> PrivatePort:
    """Make the directory private, remove a dead socket, and listen.

    @param group: a group of this process that may connect too; then the directory must be there.
    @raise pitelegram.errors.SocketInUse: somebody answers there.
    @raise UnsafeFile: the path is not a socket of ours, or its directory is open to others.
    @raise ConfigError: this process is not a member of the group.
    """
    gid = None if group is None else group_id(group)
    if gid is None:
        if not _acceptable_parent(path.parent):
            ensure_private_dir(path.parent)
    else:
        _check_group_parent(path.parent, gid)
    port = listen_privately(path, factory, reactor, "control socket")
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
