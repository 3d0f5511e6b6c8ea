"""Giving the installation a new key: offline, by a program, and never by accident."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from pitelegram.errors import InstallationUnavailable, LiveOwner, OwnershipError, UnsafeFile
from pitelegram.kernel.guard import TransactionGuard
from pitelegram.kernel.pinned import PinnedDir
from pitelegram.ownership.continuity import DIGEST_FACT
from pitelegram.ownership.installation import DIGEST, KEY, MARKED, MARKER, Trio, read_trio
from pitelegram.ownership.owners import OwnerRecord, read_owners


def reset_installation_key(path: Path, acknowledge_continuity_break: Any = False) -> None:
    """Remove the key of a data directory, so that the next start makes another.

    Every public worker key changes for good then.  Removed are the digest, the key, the digest in the
    leaders' databases, and the marker last: what is interrupted in between stays unusable until this is
    called again.  With no file left it clears the databases, for an installation whose key is lost.

    @param path: the data directory (C{<agent>/telegram}).
    @param acknowledge_continuity_break: C{True} itself; anything else changes nothing.
    @raise ValueError: it is not acknowledged.
    @raise LiveOwner: a process that leads uses this directory.
    @raise InstallationUnavailable: what is there is neither a sound key nor such a rest.
    """
    if acknowledge_continuity_break is not True:
        raise ValueError(
            "every worker key will change; pass acknowledge_continuity_break=True to go on"
        )
    data = Path(path)
    runtime = data.parent / "tmp" / "telegram"
    if not runtime.is_dir():  # nobody can own anything from here
        _reset(data)
        return
    owners = runtime / "owners.json"

    def alone() -> None:
        _refuse_owners(owners)
        _reset(data)

    TransactionGuard(owners.with_name("owners.json.transaction")).run_blocking(alone)


def _refuse_owners(path: Path) -> None:
    for value in read_owners(path).values():
        record = OwnerRecord.from_json(value)
        if record.is_alive():
            raise LiveOwner(record.pid, record.shown_role)


def _reset(data: Path) -> None:
    try:
        with PinnedDir.open(data) as directory:
            _check(read_trio(directory))
            databases = sorted(data.glob("*.sqlite3"))
            for database in databases:
                directory.look(database.name)
            directory.remove(DIGEST)
            directory.remove(KEY)
            for database in databases:
                _forget_digest(database)
            directory.remove(MARKER)
    except (UnsafeFile, OSError):
        raise InstallationUnavailable from None


def _check(found: Trio) -> None:
    """A sound trio, what an interrupted reset leaves of one, or nothing."""
    if found.empty or (found.digest is None and found.marker == MARKED):
        return
    found.checked_key(None)


def _forget_digest(path: Path) -> None:
    uri = f"{path.absolute().as_uri()}?mode=rw"
    try:
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = FULL")
            tables = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'"
            if connection.execute(tables).fetchone() is not None:
                connection.execute("DELETE FROM meta WHERE key = ?", (DIGEST_FACT,))
    except sqlite3.Error:
        raise OwnershipError(
            "a database could not be changed; repair it or move it away, then reset again"
        ) from None
