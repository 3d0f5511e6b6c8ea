"""Work in the background."""

from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred, fail, succeed
from twisted.logger import Logger, LogLevel
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import StoreFull
from pitelegram.kernel.deferring import gathered, spawn


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


class GatheredTests(SynchronousTestCase):
    """Waiting for all."""

    def test_results(self) -> None:
        """Results and failures come in the order of the works, once all are done."""
        late: Deferred[int] = Deferred()
        all_of_them = gathered([late, fail(ValueError("x")), succeed(3)])
        self.assertNoResult(all_of_them)
        late.callback(1)
        first, second, third = self.successResultOf(all_of_them)
        self.assertEqual((first, second[0], third), ((True, 1), False, (True, 3)))
        self.assertEqual(self.successResultOf(gathered([])), [])

    def test_cancelled(self) -> None:
        """Cancelling cancels the last one first, and waits for none."""
        order: list[int] = []
        works: list[Deferred[int]] = [Deferred(lambda _, n=n: order.append(n)) for n in range(3)]
        waiting = gathered(works)
        waiting.cancel()
        self.assertEqual(order, [2, 1, 0])
        results = self.successResultOf(waiting)
        self.assertEqual([ok for ok, _ in results], [False] * 3)
        self.assertIsInstance(results[0][1].value, CancelledError)
