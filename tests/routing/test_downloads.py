"""Files that were fetched for workers."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.routing.downloads import BATCH, KEPT_SECONDS, PAUSE, PERIOD, Downloads

NOW = 1_700_000_000.0


class DownloadsTests(SynchronousTestCase):
    """L{Downloads}."""

    def setUp(self) -> None:
        """A directory and a clock."""
        self.directory = Path(self.mktemp())
        self.directory.mkdir()
        self.clock = Clock()
        self.clock.advance(NOW)

    def begin(self) -> Downloads:
        """Start it."""
        downloads = Downloads(self.clock, self.directory, self.clock.seconds)
        downloads.startService()
        self.addCleanup(lambda: downloads.running and downloads.stopService())
        return downloads

    def file(self, name: str, age: float) -> Path:
        """Make a file of that age."""
        path = self.directory / name
        path.write_bytes(b"x")
        os.utime(path, (NOW - age, NOW - age))
        return path

    def left(self) -> list[str]:
        """What is there."""
        return sorted(os.listdir(self.directory))

    def test_age(self) -> None:
        """A file goes after 24 h, at the next hour; nothing but files is touched."""
        self.file("old", KEPT_SECONDS + 1)
        self.file("young", KEPT_SECONDS - PERIOD / 2)
        outside = self.directory.parent / "outside"
        outside.write_bytes(b"x")
        os.utime(outside, (0, 0))
        (self.directory / "link").symlink_to(outside)
        (self.directory / "directory").mkdir()
        self.begin()
        self.assertEqual(self.left(), ["directory", "link", "young"])
        self.clock.advance(PERIOD)
        self.assertEqual(self.left(), ["directory", "link"])
        self.assertTrue(outside.exists())

    def test_batches(self) -> None:
        """Many files go in batches, so that nothing waits long; a stop ends it in between."""
        for number in range(2 * BATCH + 10):
            self.file(str(number), KEPT_SECONDS + 1)
        downloads = self.begin()
        self.assertEqual(len(self.left()), BATCH + 10)
        self.clock.advance(PAUSE)
        self.assertEqual(len(self.left()), 10)
        self.successResultOf(downloads.stopService())
        self.assertEqual((len(self.left()), self.clock.getDelayedCalls()), (10, []))

    def test_no_directory(self) -> None:
        """The runtime directory may have been deleted."""
        self.directory.rmdir()
        self.begin()
        self.clock.advance(PERIOD)
        self.assertFalse(self.directory.exists())
