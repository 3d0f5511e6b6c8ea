"""Advisory locks on open files, which child processes can inherit."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from pitelegram.errors import UnsafeFile
from pitelegram.kernel.files import open_private


class FileLock:
    """An exclusive C{flock}, held while any copy of its descriptor is open in any process.

    That is the point of it: a lock that was handed to a child is free only when every process that
    holds a copy is gone.
    """

    def __init__(self, fd: int) -> None:
        self._fd: int | None = fd

    @classmethod
    def try_acquire(cls, path: Path) -> FileLock | None:
        """Take the lock of C{path} (made 0600 when missing), or return None when it is taken.

        @raise UnsafeFile: the file breaks the permission policy.
        """
        while True:
            fd = open_private(path, os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)
                return None
            except BaseException:
                os.close(fd)
                raise
            if _still_there(path, fd):
                return cls(fd)
            os.close(fd)

    @classmethod
    def adopt(cls, fd: int) -> FileLock | None:
        """Take over an inherited descriptor; None when somebody else holds its lock."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        os.set_inheritable(fd, False)
        return cls(fd)

    @property
    def fd(self) -> int:
        """The descriptor to hand to a child.

        @raise ValueError: after L{release}.
        """
        if self._fd is None:
            raise ValueError("this lock was released")
        return self._fd

    @property
    def held(self) -> bool:
        """Whether this object still has its descriptor."""
        return self._fd is not None

    def release(self) -> None:
        """Close this copy; the lock stays while a child has one.  Safe to repeat.

        (An explicit unlock would take it from the children too.)
        """
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock of C{path}; a missing file is free.  Creates nothing."""
    try:
        fd = open_private(path, os.O_RDWR)
    except UnsafeFile as refusal:
        if refusal.code == "missing_entry":
            return True
        raise
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def _still_there(path: Path, fd: int) -> bool:
    try:
        now = os.lstat(path)
    except FileNotFoundError:
        return False
    mine = os.fstat(fd)
    return (now.st_dev, now.st_ino) == (mine.st_dev, mine.st_ino)
