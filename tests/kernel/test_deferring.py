"""Work in the background."""

from __future__ import annotations

from twisted.internet.defer import fail, succeed
from twisted.logger import Logger, LogLevel
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import StoreFull
from pitelegram.kernel.deferring import spawn


class SpawnTests(SynchronousTestCase):
    """What becomes of its failures."""

    def setUp(self) -> None:
        """Collect what is logged."""
        self.events: list[dict[str, object]] = []
        self.log = Logger(observer=self.events.append)  # type: ignore[arg-type]

    def test_success(self) -> None:
        """Its result is passed on."""
        self.assertEqual(self.successResultOf(spawn(self.log, "it", succeed(7))), 7)
        self.assertEqual(self.events, [])

    def test_failure(self) -> None:
        """A fault of ours is logged with its traceback, and swallowed."""
        self.assertIsNone(self.successResultOf(spawn(self.log, "it", fail(ValueError("x")))))
        (event,) = self.events
        self.assertEqual((event["log_level"], event["what"]), (LogLevel.critical, "it"))
        self.assertIn("log_failure", event)

    def test_full_disk(self) -> None:
        """A full disk is no fault of ours: one sentence."""
        self.assertIsNone(self.successResultOf(spawn(self.log, "it", fail(StoreFull("no room")))))
        (event,) = self.events
        self.assertEqual((event["log_level"], event["reason"]), (LogLevel.error, "no room"))
        self.assertNotIn("log_failure", event)
