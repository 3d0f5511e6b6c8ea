"""Equal words in a row are said once."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.kernel.repeats import WINDOW, Repeats


class RepeatsTests(SynchronousTestCase):
    """L{Repeats}."""

    def test_in_a_row(self) -> None:
        """Only equal words, to the same listener, in a row and lately are a repeat."""
        clock = Clock()
        repeats = Repeats(clock.seconds)
        self.assertFalse(repeats.again("a", "x"))
        self.assertTrue(repeats.again("a", "x"))
        self.assertFalse(repeats.again("b", "x"))
        self.assertFalse(repeats.again("a", "y"))
        self.assertFalse(repeats.again("a", "x"))
        repeats.spoken("a")
        self.assertFalse(repeats.again("a", "x"))
        clock.advance(WINDOW)
        self.assertFalse(repeats.again("a", "x"))
