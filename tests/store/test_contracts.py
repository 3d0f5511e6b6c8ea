"""The store's contracts, for a database in memory and for a file with its writer thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import TestCase

from pitelegram.store.database import Database
from pitelegram.testing.contracts_bindings import BindingsContract
from pitelegram.testing.contracts_inbox import InboxContract
from pitelegram.testing.contracts_journal import JournalContract
from pitelegram.testing.contracts_outbox import OutboxContract
from pitelegram.testing.contracts_outgoing import OutgoingContract
from pitelegram.testing.contracts_store import (
    CommandsContract,
    LeadershipContract,
    SpecsContract,
)
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


class LeadershipInMemory(LeadershipContract, InMemory):
    """Leadership in memory."""


class LeadershipOnDisk(LeadershipContract, OnDisk):
    """Leadership on disk."""


class JournalInMemory(JournalContract, InMemory):
    """Journal in memory."""


class JournalOnDisk(JournalContract, OnDisk):
    """Journal on disk."""


class SpecsInMemory(SpecsContract, InMemory):
    """Specs in memory."""


class SpecsOnDisk(SpecsContract, OnDisk):
    """Specs on disk."""


class BindingsInMemory(BindingsContract, InMemory):
    """Bindings in memory."""


class BindingsOnDisk(BindingsContract, OnDisk):
    """Bindings on disk."""


class OutboxInMemory(OutboxContract, InMemory):
    """Outbox in memory."""


class OutboxOnDisk(OutboxContract, OnDisk):
    """Outbox on disk."""


class CommandsInMemory(CommandsContract, InMemory):
    """Commands in memory."""


class CommandsOnDisk(CommandsContract, OnDisk):
    """Commands on disk."""


class InboxInMemory(InboxContract, InMemory):
    """Inbox in memory."""


class InboxOnDisk(InboxContract, OnDisk):
    """Inbox on disk."""


class OutgoingInMemory(OutgoingContract, InMemory):
    """What goes out, in memory."""


class OutgoingOnDisk(OutgoingContract, OnDisk):
    """What goes out, on disk."""

    schema = "worker"
