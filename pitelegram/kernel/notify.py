"""Telling systemd how the service is (C{sd_notify})."""

from __future__ import annotations

import socket
from collections.abc import Mapping


def notify(state: str, environ: Mapping[str, str]) -> bool:
    """Send C{state} (C{READY=1}, C{STOPPING=1}, C{STATUS=…}); True when it was sent.

    Without C{NOTIFY_SOCKET} in C{environ} nothing happens; a service manager that does not listen
    is no reason to fail.
    """
    address = environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in ("/", "@"):
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
            out.sendto(state.encode(), address)
    except OSError:
        return False
    return True
