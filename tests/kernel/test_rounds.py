"""Work that is done again and again."""

from __future__ import annotations

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.kernel.rounds import Rounds


class Counted(Rounds):
    """Counts its rounds; each ends as the test says.

    @ivar answer: how the next round ends.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock, 10.0)
        self.count = 0
        self.answer: Deferred[None] | None = None

    def round(self) -> Deferred[None]:
        """Do one."""
        self.count += 1
        answer, self.answer = self.answer, None
        return succeed(None) if answer is None else answer


class RoundsTests(SynchronousTestCase):
    """L{Rounds}."""

    def setUp(self) -> None:
        """Build one."""
        self.clock = Clock()
        self.rounds = Counted(self.clock)

    def test_period(self) -> None:
        """One at the start, then one in each period, until the stop."""
        self.rounds.startService()
        self.assertEqual(self.rounds.count, 1)
        self.clock.pump([10, 10])
        self.assertEqual(self.rounds.count, 3)
        self.successResultOf(self.rounds.stopService())
        self.clock.pump([10, 10])
        self.assertEqual(self.rounds.count, 3)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_never_twice_at_once(self) -> None:
        """A round that lasts is left alone; the next begins in its time after that."""
        lasting: Deferred[None] = Deferred()
        self.rounds.answer = lasting
        self.rounds.startService()
        self.clock.pump([10, 10])
        self.assertEqual(self.rounds.count, 1)
        lasting.callback(None)
        self.clock.advance(10)
        self.assertEqual(self.rounds.count, 2)
        self.successResultOf(self.rounds.stopService())

    def test_failure(self) -> None:
        """A failure is logged and ends nothing, at once or later."""
        self.rounds.answer = fail(ZeroDivisionError())
        self.rounds.startService()
        self.rounds.answer = later = Deferred()
        self.clock.advance(10)
        later.errback(ZeroDivisionError())
        self.clock.advance(10)
        self.assertEqual(self.rounds.count, 3)
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 2)
        self.successResultOf(self.rounds.stopService())

    def test_stop_in_the_middle(self) -> None:
        """The stop cancels a round and waits for its end."""
        cancelled: list[object] = []
        self.rounds.answer = Deferred(cancelled.append)
        self.rounds.startService()
        self.successResultOf(self.rounds.stopService())
        self.assertEqual(len(cancelled), 1)

    def test_stop_before_the_start(self) -> None:
        """Stopping what never ran is harmless."""
        self.successResultOf(self.rounds.stopService())
        self.assertEqual(self.rounds.count, 0)

    def test_again(self) -> None:
        """It can be started once more."""
        for expected in (1, 2):
            self.rounds.startService()
            self.assertEqual(self.rounds.count, expected)
            self.successResultOf(self.rounds.stopService())
