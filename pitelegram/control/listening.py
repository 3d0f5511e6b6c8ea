"""Where the control socket may stand, and how a group gets at it."""

from __future__ import annotations

import grp
import os
import stat
from pathlib import Path
from typing import Any

from twisted.internet.defer import maybeDeferred
from twisted.internet.interfaces import IProtocolFactory

from pitelegram.errors import ConfigError, UnsafeFile
from pitelegram.kernel.files import (
    check_owned,
    ensure_private_dir,
    refusals,
    refuse_links,
    unsafe,
)
from pitelegram.kernel.sockets import PrivatePort, check_length, listen_privately

GROUP_MODE = 0o660
NAME = "control socket"


def listen(path: Path, factory: IProtocolFactory, reactor: Any, group: str | None) -> PrivatePort:
    """Look at group and directory, remove a dead socket, and listen.

    Nothing is made or changed before all that may be refused has been looked at.

    @param group: a group of this process that may connect too; then the directory must be there.
    @raise pitelegram.errors.SocketInUse: somebody answers there.
    @raise UnsafeFile: the path is not a socket of ours, or its directory is open to others.
    @raise ConfigError: this process is not a member of the group.
    """
    gid = check_place(path, group)
    if not path.parent.exists():
        ensure_private_dir(path.parent)
    port = listen_privately(path, factory, reactor, NAME)
    if gid is not None:
        try:
            os.chown(path, -1, gid)
            os.chmod(path, GROUP_MODE)
        except OSError:
            port.remove_path()
            maybeDeferred(port.stopListening)
            raise UnsafeFile(
                "operation_failed", "the group of the control socket cannot be set"
            ) from None
    return port


def check_place(path: Path, group: str | None) -> int | None:
    """Read-only: whether a control socket may be made at C{path}; returns the group's id.

    Without a group a directory that is missing is fine: it will be made, private.

    @raise UnsafeFile: the directory is not ours, or open to more than it may be.
    @raise ConfigError: the group is none of this process's.
    """
    gid = None if group is None else group_id(group)
    if ".." in path.parts or "\0" in str(path) or not path.name:
        raise unsafe("invalid_entry_name")
    check_length(path, NAME)
    with refusals():
        refuse_links(path.parent.parent)
        try:
            info = os.lstat(path.parent)
        except FileNotFoundError:
            if gid is None:
                return None
            raise UnsafeFile("missing_entry", "make the control socket's directory first") from None
        check_owned(info, stat.S_ISDIR)
    if gid is None:
        _check_private(info)
    else:
        _check_shared(info, gid)
    return gid


def group_id(name: str) -> int:
    """Return the id of a group that this process is a member of right now.

    @raise ConfigError: there is no such group, or this process is not in it.
    """
    try:
        gid = grp.getgrnam(name).gr_gid
    except (KeyError, ValueError, UnicodeError):
        raise ConfigError("the group of the control socket is unknown") from None
    if gid != os.getegid() and gid not in os.getgroups():
        raise ConfigError("this process is not a member of the control socket's group")
    return gid


def _check_private(info: os.stat_result) -> None:
    """A directory of ours may be open for looking, never for writing."""
    if info.st_mode & 0o022:
        raise UnsafeFile(
            "insecure_socket_parent",
            "the control socket's directory is writable for others; restrict it",
        )


def _check_shared(info: os.stat_result, gid: int) -> None:
    """Of that group, which may pass and not write; nobody else may anything."""
    if info.st_gid != gid:
        raise UnsafeFile(
            "wrong_group", "the control socket's directory belongs to another group; change that"
        )
    if info.st_mode & 0o027 or not info.st_mode & 0o010:
        raise UnsafeFile(
            "insecure_socket_parent",
            "a control socket with a group needs a directory of that group with mode 0710 or 0750",
        )
