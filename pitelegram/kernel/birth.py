"""Process birth: telling a process from a later one with the same pid."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import psutil

from pitelegram.ids import ProcessBirth


def process_birth(pid: int) -> str | None:
    """Return the birth id of C{pid}, or None when there is no such (living) process.

    On Linux it is C{<pid>:start:<field 22 of /proc/<pid>/stat>}, elsewhere made from the start time.
    A zombie counts as dead.
    """
    if sys.platform == "linux":
        try:
            stat = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            return None
        fields = stat[stat.rindex(b")") + 2 :].split()
        return None if fields[0] in (b"Z", b"X") else f"{pid}:start:{fields[19].decode()}"
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        started = f"{process.create_time():.2f}"
    except psutil.Error:
        return None
    return f"{pid}:start:{hashlib.sha256(started.encode()).hexdigest()[:16]}"


def own_birth() -> ProcessBirth:
    """Return this process's identity."""
    pid = os.getpid()
    birth = process_birth(pid)
    assert birth is not None
    return ProcessBirth(pid, birth)


def is_alive(birth: ProcessBirth) -> bool:
    """Whether exactly that process is still alive."""
    return process_birth(birth.pid) == birth.birth


def boot_id() -> str:
    """Return an id that changes at each boot of the machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return f"boot:{int(psutil.boot_time())}"
