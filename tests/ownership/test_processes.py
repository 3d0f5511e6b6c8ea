"""Real processes that want the same transport."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import LiveOwner
from pitelegram.kernel.paths import Paths
from pitelegram.ownership.ownership import check

CONTENDER = """
import sys
from pathlib import Path
from twisted.internet import reactor
from pitelegram.errors import LiveOwner
from pitelegram.kernel.paths import Paths
from pitelegram.ownership.ownership import Ownership
owner = Ownership(Paths(sys.argv[1]), reactor, bus_socket=Path("/b"), control_socket=Path("/c"))
def say(word):
    print(word, flush=True)
    reactor.callLater(60, reactor.stop)
def lost(failure):
    failure.trap(LiveOwner)
    print(f"refused {failure.value.pid}", flush=True)
    reactor.stop()
def begin():
    owner.acquire("daemon").addCallbacks(lambda _: say("owner"), lost)
reactor.callWhenRunning(begin)
reactor.run()
"""


class ProcessTests(SynchronousTestCase):
    """Contenders for one agent directory."""

    def setUp(self) -> None:
        self.paths = Paths(Path(self.mktemp()).absolute())
        self.paths.agent_dir.mkdir()

    def contender(self) -> subprocess.Popen:
        """A process that tries to own."""
        process = subprocess.Popen(
            [sys.executable, "-c", CONTENDER, str(self.paths.agent_dir)],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        assert process.stdout is not None
        self.addCleanup(process.stdout.close)
        return process

    def word(self, process: subprocess.Popen) -> str:
        """What it says."""
        assert process.stdout is not None
        return process.stdout.readline().strip()

    def test_one_wins(self) -> None:
        """Of three that start together one owns, and the others name it."""
        contenders = [self.contender() for _ in range(3)]
        words = [self.word(process) for process in contenders]
        [owner] = [p for p, word in zip(contenders, words, strict=True) if word == "owner"]
        self.assertEqual(words.count(f"refused {owner.pid}"), 2)
        error = self.assertRaises(LiveOwner, check, self.paths)
        self.assertEqual((error.pid, error.role), (owner.pid, "daemon"))

    def test_killed_owner(self) -> None:
        """A killed owner is replaced at once; a stopped one is not, however old its heartbeat gets."""
        first = self.contender()
        self.assertEqual(self.word(first), "owner")
        first.send_signal(signal.SIGSTOP)
        record = json.loads(self.paths.owners.read_text())
        record["default"]["heartbeatMs"] -= 3_600_000
        self.paths.owners.write_text(json.dumps(record))
        self.assertEqual(self.word(self.contender()), f"refused {first.pid}")
        first.kill()
        first.wait()
        second = self.contender()
        self.assertEqual(self.word(second), "owner")
        self.assertEqual(json.loads(self.paths.owners.read_text())["default"]["pid"], second.pid)
