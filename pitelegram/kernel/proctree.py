"""Processes below a process, and signals that reach exactly the one that was meant."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from pathlib import Path

import psutil

from pitelegram.ids import ProcessBirth
from pitelegram.kernel.birth import is_alive, process_birth

MARK_VARIABLE = "PI_TELEGRAM_WORKER_MARK"
"""Environment variable that a worker and everything it starts carry; its value is the spawn id."""


def protected_pids() -> frozenset[int]:
    """Return this process and its ancestors: never to be signalled by us."""
    pids = {os.getpid(), 1}
    try:
        pids.update(parent.pid for parent in psutil.Process().parents())
    except psutil.Error:
        pids.add(os.getppid())
    return frozenset(pids)


def descendants(pid: int) -> list[ProcessBirth]:
    """Return the living processes below C{pid}, nearest first; empty when it is gone."""
    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []
    return _births(child.pid for child in children)


def in_session(leader: int) -> list[ProcessBirth]:
    """Return the living processes of the session that C{leader} leads or led, itself included."""
    return _births(pid for pid in psutil.pids() if _session_of(pid) == leader)


def marked(mark: str) -> list[ProcessBirth]:
    """Return the living processes of this user whose environment says that C{mark} started them.

    This process and its ancestors are left out.
    """
    shielded = protected_pids()
    carriers = (pid for pid in psutil.pids() if pid not in shielded and _carries(pid, mark))
    return _births(carriers)


def signal_exact(birth: ProcessBirth, number: int) -> bool:
    """Send a signal to exactly that process; True when it was sent.

    Nothing is sent when the process is gone, another one has its pid now, or it is this process or
    an ancestor.  Where the system has process descriptors, no other process can get in between.
    """
    if birth.pid in protected_pids():
        return False
    if not hasattr(os, "pidfd_open") or not hasattr(signal, "pidfd_send_signal"):
        return is_alive(birth) and _send(birth.pid, number)
    try:
        fd = os.pidfd_open(birth.pid)
    except ProcessLookupError:
        return False
    except OSError:
        return is_alive(birth) and _send(birth.pid, number)
    try:
        if not is_alive(birth):
            return False
        signal.pidfd_send_signal(fd, number)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(fd)
    return True


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _send(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _births(pids: Iterable[int]) -> list[ProcessBirth]:
    found = ((pid, process_birth(pid)) for pid in pids)
    return [ProcessBirth(pid, birth) for pid, birth in found if birth is not None]


def _carries(pid: int, mark: str) -> bool:
    try:
        if os.path.isdir("/proc/self"):
            block = Path(f"/proc/{pid}/environ").read_bytes()
            return f"{MARK_VARIABLE}={mark}".encode() in block.split(b"\0")
        return psutil.Process(pid).environ().get(MARK_VARIABLE) == mark
    except (OSError, psutil.Error):
        return False
