"""Databases for tests: opened, inline, in memory unless a path is given."""

from __future__ import annotations

from pathlib import Path

from twisted.internet.interfaces import IReactorTime

from pitelegram.store.database import Database

EPOCH = "epoch-of-the-test"


def leader_database(clock: IReactorTime, path: Path | None = None) -> Database:
    """Return an open leader store whose writes are inline and whose epoch is acquired."""
    database = Database(path, "leader", clock)
    database.startService()
    acquired: list[None] = []
    database.acquire(EPOCH).addCallback(acquired.append)
    assert acquired, "the inline mode fires at once"
    return database


def worker_database(clock: IReactorTime, path: Path | None = None) -> Database:
    """Return an open worker store whose writes are inline."""
    database = Database(path, "worker", clock)
    database.startService()
    return database
