"""The lock of one session file (rule D23): free only when worker and Pi are both out of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pitelegram.ids import ProcessBirth
from pitelegram.kernel.birth import is_alive
from pitelegram.kernel.flock import FileLock
from pitelegram.kernel.jsonio import dumps, loads

_LIMIT = 4096


class SessionLock:
    """Held by the worker, and written with the name of its Pi.

    A Pi cannot inherit the locks of sessions that it goes into later.  So the file says which Pi is in
    the session: after a worker was killed its lock is refused to others as long as that Pi lives.
    """

    def __init__(self, lock: FileLock, path: Path) -> None:
        self._lock = lock
        self._path = path
        self._pi: ProcessBirth | None = None

    @classmethod
    def take(
        cls, path: Path, alive: Callable[[ProcessBirth], bool] = is_alive
    ) -> SessionLock | None:
        """Take a lock, or return None when a worker or a Pi is in that session.

        @raise pitelegram.errors.UnsafeFile: the file breaks the permission policy.
        """
        lock = FileLock.try_acquire(path)
        if lock is None:
            return None
        inside = _read(lock.fd)
        if inside is not None and alive(inside):
            lock.release()
            return None
        return cls(lock, path)

    def name(self, pi: ProcessBirth | None) -> None:
        """Write down which Pi is in the session; None says nothing new."""
        if pi is None or pi == self._pi or not self._lock.held:
            return
        self._pi = pi
        os.ftruncate(self._lock.fd, 0)
        os.pwrite(self._lock.fd, dumps({"pid": pi.pid, "birth": pi.birth}), 0)

    def release(self) -> None:
        """Pi is out of the session, or gone: nothing stays of the lock.  Safe to repeat.

        (Whoever had opened the file just before finds that it has no name any more, and makes anew.)
        """
        if self._lock.held:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)
            self._lock.release()


def _read(fd: int) -> ProcessBirth | None:
    """Return the Pi that is named; anything that is no such name is nobody."""
    try:
        value: Any = loads(os.pread(fd, _LIMIT, 0) or b"null")
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    pid, birth = value.get("pid"), value.get("birth")
    if type(pid) is not int or not 0 < pid < 2**31 or not isinstance(birth, str):
        return None
    return ProcessBirth(pid, birth)
