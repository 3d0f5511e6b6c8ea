"""A private directory held by its descriptor: what is exchanged at its path later redirects nothing."""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
from collections.abc import Callable
from pathlib import Path

from pitelegram.kernel.files import (
    DIR_MODE,
    FILE_MODE,
    check_owned,
    refusals,
    refuse_links,
    unsafe,
)

_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""On the way: a directory that may be passed need not be one that may be listed."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class PinnedDir:
    """A directory of ours; names in it are single path components.  A context manager.

    Nothing is narrowed until L{narrow} is called, so that a refusal leaves everything as it was.

    @param fd: the open directory; closed with this object.
    @param fsync: forces a descriptor to disk.
    """

    def __init__(self, fd: int, fsync: Callable[[int], None] = os.fsync) -> None:
        self._fd = fd
        self._fsync = fsync

    @classmethod
    def open(cls, path: Path, fsync: Callable[[int], None] = os.fsync) -> PinnedDir:
        """Open C{path}, component by component from the root, following no link.

        Links of the system on the way (L{pitelegram.kernel.files}) are resolved beforehand.

        @raise UnsafeFile: C{missing_entry}, or the policy refuses it.
        """
        path = Path(path)
        with refusals():
            if ".." in path.parts or "\0" in str(path):
                raise unsafe("invalid_entry_name")
            absolute = Path(os.path.abspath(path))
            refuse_links(absolute.parent)
            real = Path(os.path.realpath(absolute.parent)) / absolute.name
            return cls(_walk(real), fsync)

    def __enter__(self) -> PinnedDir:
        """Use it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the descriptor."""
        os.close(self._fd)

    def look(self, name: str) -> bool:
        """Whether there is a file C{name}; changes nothing and waits for nothing.

        @raise UnsafeFile: it is not a regular file of ours.
        """
        with refusals():
            try:
                info = os.stat(name, dir_fd=self._fd, follow_symlinks=False)
            except FileNotFoundError:
                return False
            check_owned(info, stat.S_ISREG)
        return True

    def read(self, name: str, limit: int) -> bytes | None:
        """Return at most C{limit} bytes of a file, None when there is none.

        @raise UnsafeFile: it is not a regular file of ours, or cannot be read.
        """
        with refusals():
            try:
                fd = os.open(name, _READ, dir_fd=self._fd)
            except FileNotFoundError:
                return None
            with os.fdopen(fd, "rb") as file:
                check_owned(os.fstat(fd), stat.S_ISREG)
                return file.read(limit)

    def narrow(self, *names: str) -> None:
        """Take from the directory and these files what others may do with them.

        @raise UnsafeFile: one of them is not ours; then none of the later ones was changed.
        """
        with refusals():
            _narrow(self._fd, DIR_MODE)
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    self._narrow_file(name)

    def publish(self, name: str, data: bytes) -> bool:
        """Make a file that is complete, private and durable the moment its name exists.

        @return: False when something stood there already; it was left as it is.
        @raise UnsafeFile: the disk refuses.
        """
        temporary = f".{uuid.uuid4().hex}.tmp"
        with refusals():
            fd = os.open(temporary, _NEW, FILE_MODE, dir_fd=self._fd)
            try:
                with os.fdopen(fd, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fchmod(fd, FILE_MODE)  # a umask may have taken more than it should
                    self._fsync(fd)
                os.link(
                    temporary,
                    name,
                    src_dir_fd=self._fd,
                    dst_dir_fd=self._fd,
                    follow_symlinks=False,
                )
            except FileExistsError:
                return False
            finally:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=self._fd)
            self._fsync(self._fd)
        return True

    def remove(self, name: str) -> None:
        """Delete a file durably; one that is not there is no error."""
        with refusals():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self._fd)
            self._fsync(self._fd)

    def _narrow_file(self, name: str) -> None:
        info = os.stat(name, dir_fd=self._fd, follow_symlinks=False)
        check_owned(info, stat.S_ISREG)
        if not stat.S_IMODE(info.st_mode) & ~FILE_MODE:
            return  # also one that we may not even read
        fd = os.open(name, _READ, dir_fd=self._fd)
        try:
            check_owned(os.fstat(fd), stat.S_ISREG)
            _narrow(fd, FILE_MODE)
        finally:
            os.close(fd)


def _walk(path: Path) -> int:
    """Open a directory of ours, following no link; returns its descriptor."""
    steps = path.parts[1:]
    fd = os.open("/", _STEP if steps else _DIRECTORY)
    try:
        for number, step in enumerate(steps, 1):
            inner = os.open(step, _DIRECTORY if number == len(steps) else _STEP, dir_fd=fd)
            os.close(fd)
            fd = inner
        check_owned(os.fstat(fd), stat.S_ISDIR)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _narrow(fd: int, allowed: int) -> None:
    mode = stat.S_IMODE(os.fstat(fd).st_mode)
    if mode & ~allowed:
        os.fchmod(fd, mode & allowed)
