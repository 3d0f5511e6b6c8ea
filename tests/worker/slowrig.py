"""A worker whose disk can be made to wait."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

from pitelegram.store.database import Database
from pitelegram.store.inbox import Inbox
from pitelegram.store.outgoing import Outgoing
from pitelegram.testing.worker import WorkerRig

PATIENCE = 20.0


class SlowRig(WorkerRig):
    """A worker whose store is a file that can be made to wait."""

    def __init__(self, base: Path, clock: Any, agent_dir: Path) -> None:
        super().__init__(base, clock, agent_dir)
        self.database = Database(base / "worker.sqlite3", "worker", clock, clock)
        self.database.startService()
        self.inbox = Inbox(self.database)
        self.outgoing = Outgoing(self.database)
        self.inbox.set_meta("time-told", f"{clock.seconds():.0f}")

    def hold_up(self) -> Event:
        """Nothing is committed until the event is set."""
        free = Event()
        self.database.write("a slow disk", lambda connection: free.wait(PATIENCE) and None)
        return free
