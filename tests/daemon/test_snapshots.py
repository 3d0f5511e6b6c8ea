"""The snapshot on disk."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.daemon.snapshots import PERIOD, Snapshots


class SnapshotTests(SynchronousTestCase):
    """L{Snapshots}."""

    def setUp(self) -> None:
        """Build one over a status that the test changes."""
        directory = Path(self.mktemp()).resolve()
        directory.mkdir(mode=0o700, parents=True)
        self.path = directory / "state.json"
        self.clock = Clock()
        self.answer: Any = {"written_at_ms": 1, "health": "ok"}
        self.snapshots = Snapshots(self.path, self.status, self.clock)
        self.snapshots.startService()
        self.addCleanup(lambda: self.snapshots.running and self.snapshots.stopService())

    def status(self) -> dict[str, Any]:
        """The status of the test."""
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]

    def read(self) -> Any:
        """Read the file."""
        return json.loads(self.path.read_text())

    def test_shape(self) -> None:
        """Private, marked as a snapshot, with the time it was made."""
        self.assertEqual(
            self.read(), {"source": "snapshot", "writtenAtMs": 1, "status": self.answer}
        )
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)

    def test_period_and_end(self) -> None:
        """Every half minute, and once more at the end."""
        self.answer = {"written_at_ms": 2}
        self.clock.advance(PERIOD - 1)
        self.assertEqual(self.read()["writtenAtMs"], 1)
        self.clock.advance(1)
        self.assertEqual(self.read()["writtenAtMs"], 2)
        self.answer = {"written_at_ms": 3}
        self.snapshots.stopService()
        self.assertEqual(self.read()["writtenAtMs"], 3)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_failures(self) -> None:
        """A disk or a status that fails disturbs nothing; the next one is written."""
        self.answer = ZeroDivisionError()
        self.clock.advance(PERIOD)
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
        self.answer = {"written_at_ms": 2}
        self.path.unlink()
        self.path.mkdir()
        self.clock.advance(PERIOD)
        self.path.rmdir()
        self.clock.advance(PERIOD)
        self.assertEqual(self.read()["writtenAtMs"], 2)
