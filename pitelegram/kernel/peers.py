"""What the operating system knows about the other end of a UNIX socket."""

from __future__ import annotations

import socket
import struct
import sys
from typing import Any

import attrs

_MAC_LOCAL_PEERCRED = 0x001
_MAC_LOCAL_PEERPID = 0x002


@attrs.frozen
class PeerIds:
    """Process and user of a peer; None where the system does not tell."""

    pid: int | None
    uid: int | None


UNKNOWN = PeerIds(None, None)

UNREADABLE = PeerIds(None, -1)
"""The system should tell and does not: nobody's user, so that it is refused everywhere."""


def peer_ids(transport: Any) -> PeerIds:
    """Ask the system who is connected; L{UNKNOWN} for a transport that is no UNIX socket."""
    try:
        return _ask(transport)
    except (OSError, struct.error):
        return UNREADABLE


def _ask(transport: Any) -> PeerIds:
    connection = getattr(transport, "socket", None)
    if connection is None or connection.family != getattr(socket, "AF_UNIX", None):
        return UNKNOWN
    if hasattr(socket, "SO_PEERCRED"):
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
        pid, uid, _ = struct.unpack("iII", raw)
        return PeerIds(pid or None, uid)
    if sys.platform == "darwin":
        raw = connection.getsockopt(0, _MAC_LOCAL_PEERCRED, 76)
        _, uid = struct.unpack("II", raw[:8])
        (pid,) = struct.unpack("i", connection.getsockopt(0, _MAC_LOCAL_PEERPID, 4))
        return PeerIds(pid or None, uid)
    return UNKNOWN
