"""Thousands of messages, edits and reactions: what each of them costs, and what goes before them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.store.database import Database
from pitelegram.store.inbox import Inbox
from pitelegram.store.rows import InboxRow
from pitelegram.testing.worker import CHAT, THREAD, WorkerRig

WAITING = 300


class CountingInbox(Inbox):
    """Counts the rows that were read."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.read = 0

    def rows(self, *states: str) -> list[InboxRow]:
        """Count them."""
        found = super().rows(*states)
        self.read += len(found)
        return found


class SlowMarks(Inbox):
    """Writes marks when it is told to."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.slow: list[Deferred[None]] = []

    def mark(self, seq: int, skip: bool) -> Deferred[None]:
        """Wait first."""
        go: Deferred[None] = Deferred()
        self.slow.append(go)
        return go.addCallback(lambda _: Inbox.mark(self, seq, skip))


class Crowd(SynchronousTestCase):
    """A Pi at work, and much that waits for it."""

    def rig(self, inbox: type[Inbox]) -> Any:
        """Return a worker whose Pi works."""
        rig = WorkerRig(Path(self.mktemp()).resolve())
        self.addCleanup(rig.database.close)
        rig.inbox = inbox(rig.database)
        rig.start()
        self.successResultOf(rig.started)
        rig.message("[[gate g]]", 1)
        return rig

    def react(self, rig: Any, message_id: int, emoji: str = "👎") -> None:
        """The operator reacts."""
        new = [{"type": "emoji", "emoji": emoji}]
        body = {"message_id": message_id, "chat": {"id": CHAT}, "message_thread_id": THREAD}
        rig.forward("message_reaction", {**body, "old_reaction": [], "new_reaction": new})

    def test_cost(self) -> None:
        """What a message, an edit and a reaction cost does not grow with what waits."""
        rig = self.rig(CountingInbox)
        for number in range(WAITING):
            rig.message(f"m{number}", number + 2)
        costs = {}
        for name, act in {
            "message": lambda: rig.message("one more", 1000),
            "edit": lambda: rig.edit("another", 20),
            "reaction": lambda: self.react(rig, 30),
            "status": lambda: rig.message("/status", 1001),
        }.items():
            before = rig.inbox.read
            act()
            costs[name] = rig.inbox.read - before
        self.assertLess(max(costs.values()), 20, costs)
        self.assertEqual(rig.states()["held"], WAITING + 1)
        texts = {row.message_id: (row.prompt, row.skip) for row in rig.inbox.rows("held")}
        self.assertEqual(texts[20], ("[telegram|thread:Atlas] another", False))
        self.assertTrue(texts[30][1])

    def order(self, rig: Any, *commands: str) -> list[str]:
        """React five times and send commands meanwhile; returns what was answered, in order."""
        for number in range(5):
            rig.message(f"m{number}", number + 2)
        for number in range(5):
            self.react(rig, number + 2)
        for number, command in enumerate(commands):
            rig.message(command, 100 + number)
        return self.told(rig)

    def told(self, rig: Any) -> list[str]:
        """How many reactions were done when something was said, and its first words."""
        said = []
        for done in range(6):
            new = [text.split(":")[0].split(".")[0] for text in rig.link.texts]
            said += [f"{done} {text}" for text in new[len(said) :]]
            if rig.inbox.slow:
                rig.inbox.slow.pop(0).callback(None)
            rig.run()
        return said

    def test_overtaking(self) -> None:
        """Abort and status wait for the one that is being done, not for those behind it."""
        rig = self.rig(SlowMarks)
        self.assertEqual(self.order(rig, "/status"), ["1 Status"])
        self.assertTrue(all(row.skip for row in rig.inbox.rows("held")))

    def test_commands_keep_their_order(self) -> None:
        """Behind a command that has to see the reactions before it, nothing overtakes."""
        rig = self.rig(SlowMarks)
        said = self.order(rig, "/status", "/continue", "/status")
        self.assertEqual(said, ["1 Status", "5 Queued continue prompt", "5 Status"])
