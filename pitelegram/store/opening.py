"""Opening a database file: permissions, pragmas, damage."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from pitelegram.errors import StoreError, StoreFull, UnsafeFile
from pitelegram.kernel.files import ensure_private_dir, open_private
from pitelegram.store.migrations import Migration, migrate

BUSY_SECONDS = 5.0
"""How long a connection waits for another process's transaction."""

_DAMAGE = ("malformed", "not a database", "file is encrypted")
_COMPANIONS = ("", "-wal", "-shm")


class _Damaged(StoreError):
    def __init__(self, moved: Path) -> None:
        super().__init__("the database was damaged and has been moved to the recovery directory")
        self.moved = moved


@attrs.define(eq=False)
class Opened:
    """The two connections of one file.

    @ivar writer: for the writer thread alone.
    @ivar reader: for the reactor thread alone; the same object as C{writer} in memory.
    @ivar recovered: where a damaged file was moved, None when the file was sound.
    """

    writer: sqlite3.Connection
    reader: sqlite3.Connection
    recovered: Path | None = None


def open_memory(migrations: Sequence[Migration]) -> Opened:
    """Open a database that lives in memory."""
    connection = _connect(":memory:")
    migrate(connection, migrations)
    return Opened(connection, connection)


def open_file(path: Path, migrations: Sequence[Migration]) -> Opened:
    """Open, and if need be create and migrate, a file.

    A damaged file is moved to C{recovery/} beside it and a fresh one is made; no full check is done.

    @raise UnsafeFile: the file, its C{-wal} or C{-shm} is no regular file of ours.
    @raise pitelegram.errors.StoreTooNew: written by a newer version.
    @raise pitelegram.errors.StoreFull: no space is left for what opening writes.
    @raise StoreError: it cannot be opened for another reason.
    """
    try:
        return _open_sound(path, migrations)
    except _Damaged as damaged:
        opened = _open_sound(path, migrations)
        opened.recovered = damaged.moved
        return opened


def is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite says that the file itself is broken."""
    return any(word in str(error) for word in _DAMAGE)


def _open_sound(path: Path, migrations: Sequence[Migration]) -> Opened:
    _prepare(path)
    writer = _connect(str(path))
    try:
        _set_durable(writer)
        migrate(writer, migrations)
        writer.execute("SELECT count(*) FROM sqlite_master").fetchone()
        reader = _connect(str(path))
        reader.execute("PRAGMA query_only = ON")
    except sqlite3.Error as error:
        # Closing would fold the log into the file and delete it, so the move comes first.
        moved = _move_aside(path) if is_damage(error) else None
        writer.close()
        if moved is not None:
            raise _Damaged(moved) from error
        if "is full" in str(error):
            raise StoreFull("no space is left to open the database") from error
        raise StoreError(f"the database cannot be opened ({error})") from error
    except BaseException:
        writer.close()
        raise
    return Opened(writer, reader)


def _connect(name: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        name, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _set_durable(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    if sys.platform == "darwin":
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA checkpoint_fullfsync = ON")


def _prepare(path: Path) -> None:
    """Create the file 0600; refuse it and its companions when they are not regular files of ours."""
    for companion in _COMPANIONS[1:]:
        try:
            os.close(open_private(path.with_name(path.name + companion), os.O_RDWR))
        except UnsafeFile as refusal:
            if refusal.code != "missing_entry":
                raise
    os.close(open_private(path, os.O_RDWR | os.O_CREAT))


def _move_aside(path: Path) -> Path:
    """Move the file with its companions to C{recovery/<name>.<time>}."""
    directory = path.parent / "recovery"
    ensure_private_dir(directory)
    name, count = f"{path.name}.{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}", 0
    target = directory / name
    while target.exists():
        count += 1
        target = directory / f"{name}.{count}"
    for companion in _COMPANIONS:
        source = path.with_name(path.name + companion)
        if os.path.lexists(source):
            os.rename(source, target.with_name(target.name + companion))
    return target
