"""Numbered schema files and how an older file becomes a current one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from importlib import resources

import attrs

from pitelegram.errors import StoreTooNew


@attrs.frozen
class Migration:
    """One schema file.

    @ivar version: the C{user_version} that the file has after it; versions count up from 1.
    """

    version: int
    script: str


def load_migrations(schema: str) -> list[Migration]:
    """Return the schema files of C{leader} or C{worker} in order.

    @raise ValueError: if the numbers are not 1, 2, 3, …
    """
    directory = resources.files("pitelegram.store").joinpath("schema", schema)
    files = [entry for entry in directory.iterdir() if entry.name.endswith(".sql")]
    found = sorted((int(entry.name[: -len(".sql")]), entry.read_text("utf-8")) for entry in files)
    if [number for number, _ in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"the schema files of {schema} are not numbered without a gap")
    return [Migration(number, script) for number, script in found]


def statements(script: str) -> list[str]:
    """Cut a script into single statements (C{executescript} would commit half of a migration)."""
    result, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            result.append(pending)
            pending = ""
    if pending.strip():
        result.append(pending)
    return result


def user_version(connection: sqlite3.Connection) -> int:
    """Return the schema version that the file says it has."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    """Bring the file to the newest version, each step in one transaction.

    @raise StoreTooNew: the file was written by a newer version; nothing was changed.
    """
    newest = migrations[-1].version
    for migration in migrations:
        if user_version(connection) < migration.version:
            _apply(connection, migration)
    if user_version(connection) > newest:
        raise StoreTooNew(
            "the database was written by a newer pi-telegram; install that version again, "
            "or move the file away to start anew"
        )


def _apply(connection: sqlite3.Connection, migration: Migration) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done this step while we waited for the lock.
        if user_version(connection) < migration.version:
            for statement in statements(migration.script):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {migration.version:d}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
