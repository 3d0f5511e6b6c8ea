"""The store's contracts, for a database in memory and for a file with its writer thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import TestCase

from pitelegram.store.database import Database
from pitelegram.testing import contracts_store as contracts
from pitelegram.testing.stores import leader_database, worker_database


class InMemory(TestCase):
    """Opens databases in memory, inline."""

    def setUp(self) -> None:
        """Make the clock."""
        self.clock = Clock()

    def open(self, schema: str) -> Any:
        """Return an opened database."""
        make = leader_database if schema == "leader" else worker_database
        self.database = make(self.clock)
        self.addCleanup(self.database.stopService)
        return self.database


class OnDisk(TestCase):
    """Opens one file with its writer thread before each test."""

    schema = "leader"

    async def setUp(self) -> None:
        """Open the file; in the leader's case acquire its epoch."""
        from twisted.internet import reactor

        self.clock = Clock()
        path = Path(self.mktemp())
        self.database = Database(path, self.schema, self.clock, reactor)  # type: ignore[arg-type]
        self.database.startService()
        self.addCleanup(self.database.stopService)
        if self.schema == "leader":
            await self.database.acquire("epoch")

    def open(self, schema: str) -> Any:
        """Return the opened database."""
        return self.database


class LeadershipInMemory(contracts.LeadershipContract, InMemory):
    """Leadership in memory."""


class LeadershipOnDisk(contracts.LeadershipContract, OnDisk):
    """Leadership on disk."""


class JournalInMemory(contracts.JournalContract, InMemory):
    """Journal in memory."""


class JournalOnDisk(contracts.JournalContract, OnDisk):
    """Journal on disk."""


class SpecsInMemory(contracts.SpecsContract, InMemory):
    """Specs in memory."""


class SpecsOnDisk(contracts.SpecsContract, OnDisk):
    """Specs on disk."""


class BindingsInMemory(contracts.BindingsContract, InMemory):
    """Bindings in memory."""


class BindingsOnDisk(contracts.BindingsContract, OnDisk):
    """Bindings on disk."""


class OutboxInMemory(contracts.OutboxContract, InMemory):
    """Outbox in memory."""


class OutboxOnDisk(contracts.OutboxContract, OnDisk):
    """Outbox on disk."""


class CommandsInMemory(contracts.CommandsContract, InMemory):
    """Commands in memory."""


class CommandsOnDisk(contracts.CommandsContract, OnDisk):
    """Commands on disk."""


class InboxInMemory(contracts.InboxContract, InMemory):
    """Inbox in memory."""


class InboxOnDisk(contracts.InboxContract, OnDisk):
    """Inbox on disk."""
