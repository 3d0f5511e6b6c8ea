"""A writer that is killed: what it said was stored is there."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.task import Clock
from twisted.trial.unittest import TestCase

from pitelegram.store.database import Database
from pitelegram.store.journal import Journal
from pitelegram.store.outbox import Outbox

CHILD = """
import sys
from pathlib import Path
from twisted.internet import reactor
from pitelegram.store.database import Database
from pitelegram.store.journal import Journal
from pitelegram.store.outbox import Outbox
from pitelegram.testing.contracts_store import incoming, message

database = Database(Path(sys.argv[1]), "leader", reactor, reactor)
start = int(sys.argv[2])

def say(line):
    sys.stdout.write(line + "\\n")
    sys.stdout.flush()

def one(number):
    journal, outbox = Journal(database), Outbox(database)
    accepted = journal.accept(1, [incoming(number)], number + 1)
    accepted.addCallback(lambda rows: journal.pin(rows[0].seq, "a", str(number)))
    accepted.addCallback(lambda _: say(f"pinned {number}"))
    sent = outbox.submit("b", str(number), "final", "x", [message(str(number))] * 2)
    sent.addCallback(lambda _: say(f"submitted {number}"))
    sent.addCallback(lambda _: reactor.callLater(0, one, number + 4))

def begin():
    database.startService()
    database.acquire(sys.argv[2]).addCallback(lambda _: [one(start + k) for k in range(4)])

reactor.callWhenRunning(begin)
reactor.run()
"""


class Child(ProcessProtocol):
    """Collects what the child says; tells when there are enough lines, and its end."""

    def __init__(self, lines: int) -> None:
        self.wanted = lines
        self.data = b""
        self.errors = b""
        self.enough: Deferred[None] | None = Deferred()
        self.ended: Deferred[None] = Deferred()

    def outReceived(self, data: bytes) -> None:
        """Count lines."""
        self.data += data
        if self.data.count(b"\n") >= self.wanted:
            self._release()

    def errReceived(self, data: bytes) -> None:
        """Keep a traceback for the report."""
        self.errors += data

    def processEnded(self, reason: Any) -> None:
        """Release whoever waits."""
        self._release()
        self.ended.callback(None)

    def _release(self) -> None:
        enough, self.enough = self.enough, None
        if enough is not None:
            enough.callback(None)


class CrashTests(TestCase):
    """SIGKILL at a random moment, again and again, on the same file."""

    timeout = 60

    async def run_and_kill(self, path: Path, start: int, lines: int) -> list[str]:
        """Let a child write until it said so many lines, kill it, return the whole lines."""
        from twisted.internet import reactor

        child = Child(lines)
        arguments = [sys.executable, "-c", CHILD, str(path), str(start)]
        root = str(Path(__file__).resolve().parents[2])
        transport: Any = reactor.spawnProcess(  # type: ignore[attr-defined]
            child, sys.executable, arguments, env={"PYTHONPATH": root}
        )
        assert child.enough is not None
        await child.enough
        if transport.pid is not None:
            transport.signalProcess("KILL")
        await child.ended
        self.assertEqual(child.errors, b"")
        return child.data.decode().split("\n")[:-1]

    async def test_acknowledged_is_stored(self) -> None:
        """Whatever was acknowledged before the kill is in the file, and the file is sound."""
        path, random = Path(self.mktemp()), Random(5)
        said: list[str] = []
        for life in range(4):
            said += await self.run_and_kill(path, 10_000 * life, random.randrange(20, 120))
        self.assertGreater(len(said), 80)
        database = Database(path, "leader", Clock())
        database.open()
        self.addCleanup(database.close)
        self.assertIsNone(database.recovered)
        self.assertEqual(database.read("PRAGMA integrity_check")[0][0], "ok")
        pinned = {
            row.update_id for row in Journal(database).unsettled() if row.state == "forwarding"
        }
        for line in said:
            word, number = line.split()
            if word == "pinned":
                self.assertIn(int(number), pinned)
            else:
                self.assertEqual(Outbox(database).find("b", number), ("pending", "x"))
        whole = database.read("SELECT count(*) FROM outbox_parts GROUP BY key")
        self.assertEqual({row[0] for row in whole}, {2})
