"""The directories behind a picker's buttons: a token stands for each, over restarts of the daemon."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Sequence

import attrs
from twisted.internet.defer import Deferred

from pitelegram.store.database import Database

KEEP_MS = 30 * 24 * 3_600_000
"""A token that was not shown for so long is forgotten."""

TOKEN_LENGTH = 16


@attrs.define(eq=False)
class Pickers:
    """Tokens and their directories.

    A token is made of the directory's name alone, so that the same directory has the same token
    whenever and wherever it is shown; what it may be used for is checked when it is used.

    @param database: the leader's store.
    """

    _database: Database

    def show(self, directories: Sequence[str]) -> Deferred[None]:
        """Remember directories whose tokens are about to be shown; old ones are forgotten."""
        now = self._database.now_ms()
        rows = [(token_of(each), os.fsencode(each), now) for each in directories]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "INSERT OR REPLACE INTO pickers (token, directory, at_ms) VALUES (?, ?, ?)", rows
            )
            connection.execute("DELETE FROM pickers WHERE at_ms < ?", (now - KEEP_MS,))

        return self._database.write("show directories", work)

    def directory(self, token: str) -> str | None:
        """Return the directory that a token stands for, None when it is forgotten."""
        rows = self._database.read("SELECT directory FROM pickers WHERE token = ?", (token,))
        return os.fsdecode(rows[0]["directory"]) if rows else None


def token_of(directory: str) -> str:
    """Return the token of a directory."""
    return hashlib.sha256(os.fsencode(directory)).hexdigest()[:TOKEN_LENGTH]
