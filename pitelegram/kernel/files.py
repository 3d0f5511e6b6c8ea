"""Private files and directories: made restrictive, narrowed when ours, refused when unsafe.

An object of ours that is too open is narrowed by bitwise AND with 0600 or 0700 and never widened.  A
link, another owner or another type is refused with L{UnsafeFile}; its texts are fixed and name no
path, owner or content.  Links that belong to the system (owned by root) may stand on the way to an
object, never be the object itself.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pitelegram.errors import UnsafeFile

FILE_MODE = 0o600
DIR_MODE = 0o700
ANY_MODE = 0o7777

SOCKET_PATH_LIMIT = 100
"""Bytes of a UNIX socket path; the system's own limit is 104 to 108."""

_MESSAGES = {
    "wrong_type": "a file of pi-telegram is a link or of another type; remove it and try again",
    "wrong_owner": "a file of pi-telegram belongs to another user; remove it and try again",
    "wrong_group": "a file of pi-telegram belongs to another group; change its group and try again",
    "insecure_mode": "a file of pi-telegram is open to others; restrict it and try again",
    "entry_changed": "a file of pi-telegram was exchanged meanwhile; try again",
    "missing_entry": "a file of pi-telegram is missing",
    "entry_exists": "a file of pi-telegram is there already",
    "invalid_entry_name": "this name cannot be used as a file name",
    "operation_failed": "a file of pi-telegram cannot be used; check the disk and its permissions",
}

_ERRNO_CODES = {
    errno.ELOOP: "wrong_type",
    errno.EMLINK: "wrong_type",
    errno.EISDIR: "wrong_type",
    errno.ENOTDIR: "wrong_type",
    errno.ENXIO: "wrong_type",
    errno.ENOENT: "missing_entry",
    errno.EEXIST: "entry_exists",
}


def unsafe(code: str) -> UnsafeFile:
    """Return the refusal with the fixed text of C{code}."""
    return UnsafeFile(code, _MESSAGES[code])


def set_umask() -> int:
    """Make everything that is created from now on private; returns the umask before."""
    return os.umask(0o077)


def ensure_private_dir(path: Path) -> None:
    """Make C{path} a directory of ours with at most mode 0700; missing parents are made too.

    @raise UnsafeFile: something else, or somebody else's, is there.
    """
    path = Path(path)
    with refusals():
        refuse_links(path.parent)
        with contextlib.suppress(FileExistsError):  # of another type; the next step says so
            path.parent.mkdir(mode=DIR_MODE, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, DIR_MODE)
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _check_and_narrow(fd, stat.S_ISDIR, DIR_MODE)
        finally:
            os.close(fd)


def check_private_dir(path: Path) -> None:
    """Report only: raise what L{ensure_private_dir} would raise, or C{insecure_mode}; change nothing."""
    _check_only(Path(path), stat.S_ISDIR, DIR_MODE)


def check_private_file(path: Path) -> None:
    """Report only: raise what L{open_private} would raise, or C{insecure_mode}; change nothing."""
    _check_only(Path(path), stat.S_ISREG, FILE_MODE)


def open_private(path: Path, flags: int, narrow: bool = True) -> int:
    """Open a regular file of ours and return its descriptor (close-on-exec).

    @param flags: C{os.O_*}; with C{O_CREAT} the file is made 0600.
    @param narrow: false for whoever only looks: then a file that is too open stays so.
    @raise UnsafeFile: C{missing_entry}, C{entry_exists} (C{O_EXCL}), or the policy refuses it.
    """
    path = Path(path)
    with refusals():
        refuse_links(path.parent)
        safe = flags & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        fd = os.open(path, safe, FILE_MODE)
        try:
            _check_and_narrow(fd, stat.S_ISREG, FILE_MODE if narrow else ANY_MODE)
            if flags & os.O_TRUNC:
                os.ftruncate(fd, 0)
        except BaseException:
            os.close(fd)
            raise
    return fd


def open_below(directory: Path, parts: Sequence[str]) -> int:
    """Open a file for reading, following no link on the way from C{directory} to it.

    @param parts: the names of the way, the file's last; none of them C{..}.
    @return: the descriptor, which does not wait for a pipe's other end.
    @raise OSError: one of them is missing, a link, or no directory.
    """
    step = os.O_NOFOLLOW | os.O_CLOEXEC
    through = step | os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY)
    current = os.open(directory, through)
    for number, part in enumerate(parts, 1):
        last = os.O_RDONLY | os.O_NONBLOCK | step
        try:
            following = os.open(part, last if number == len(parts) else through, dir_fd=current)
        finally:
            os.close(current)
        current = following
    return current


def read_private(path: Path, limit: int = 64 * 1024 * 1024, narrow: bool = True) -> bytes | None:
    """Return the content of a private file, None when there is none.

    @param narrow: see L{open_private}.
    @raise UnsafeFile: refused by the policy, or longer than C{limit} bytes (C{operation_failed}).
    """
    try:
        fd = open_private(path, os.O_RDONLY, narrow)
    except UnsafeFile as refusal:
        if refusal.code == "missing_entry":
            return None
        raise
    with os.fdopen(fd, "rb") as file, refusals():
        data = file.read(limit + 1)
    if len(data) > limit:
        raise unsafe("operation_failed")
    return data


def write_private(path: Path, data: bytes, durable: bool = True) -> None:
    """Replace C{path} by a file with C{data}: readers see the old one or the new one, never a part.

    @param durable: also force the data and the new name to disk before returning.
    @raise UnsafeFile: what stands there is not a regular file of ours, or the disk refuses.
    """
    path = Path(path)
    with refusals():
        refuse_links(path.parent)
        _refuse_foreign(path)
        temporary = path.with_name(f"{path.name}.tmp-{os.getpid()}-{uuid.uuid4().hex}")
        fd = os.open(
            temporary,
            os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
            FILE_MODE,
        )
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                if durable:
                    os.fsync(fd)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        if durable:
            sync_dir(path.parent)


def sync_dir(path: Path) -> None:
    """Force the names in a directory to disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def runtime_socket_path(intended: Path) -> Path:
    """Return where a UNIX socket that should stand at C{intended} really goes.

    A path over 100 bytes becomes one in a private directory below the system's temporary one.

    @raise UnsafeFile: that directory is not ours.
    """
    raw = os.fsencode(intended)
    if len(raw) <= SOCKET_PATH_LIMIT:
        return Path(intended)
    directory = Path(tempfile.gettempdir()) / f"pi-telegram-{os.getuid()}"
    ensure_private_dir(directory)
    return directory / f"{hashlib.sha256(raw).hexdigest()[:16]}.sock"


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Turn operating system errors into refusals without their paths."""
    try:
        yield
    except OSError as error:
        raise unsafe(_ERRNO_CODES.get(error.errno or 0, "operation_failed")) from None


def refuse_links(path: Path) -> None:
    """Refuse a link on the way unless it is the system's own (C{/var -> private/var} and such).

    @raise UnsafeFile: C{wrong_type}.
    """
    for component in (path, *path.parents):
        try:
            info = os.lstat(component)
        except FileNotFoundError:
            continue
        if stat.S_ISLNK(info.st_mode) and not _is_systems(component, info):
            raise unsafe("wrong_type")


def _is_systems(link: Path, info: os.stat_result) -> bool:
    return info.st_uid == 0 and (os.geteuid() != 0 or link.parent in (Path("/"), Path("/var")))


def _refuse_foreign(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        check_owned(os.lstat(path), stat.S_ISREG)


def check_owned(info: os.stat_result, right_type: Callable[[int], bool]) -> None:
    """Refuse what is of another type or belongs to somebody else.

    @raise UnsafeFile: C{wrong_type} or C{wrong_owner}.
    """
    if not right_type(info.st_mode):
        raise unsafe("wrong_type")
    if info.st_uid != os.geteuid():
        raise unsafe("wrong_owner")


def _check_and_narrow(fd: int, right_type: Callable[[int], bool], allowed: int) -> None:
    info = os.fstat(fd)
    check_owned(info, right_type)
    mode = stat.S_IMODE(info.st_mode)
    if mode & ~allowed:
        os.fchmod(fd, mode & allowed)


def _check_only(path: Path, right_type: Callable[[int], bool], allowed: int) -> None:
    with refusals():
        refuse_links(path.parent)
        info = os.lstat(path)
    check_owned(info, right_type)
    if stat.S_IMODE(info.st_mode) & ~allowed:
        raise unsafe("insecure_mode")
