"""The hand-over machine takes what its table says and nothing else."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.kernel.machine import NoTransition
from pitelegram.worker.handover import GONE, IDLE, INPUTS, STEPS, TABLE, hand_over

STATES = ("idle", "handing", "running", "storing", "waiting", "gone")


class HandOver(SynchronousTestCase):
    """The machine of L{pitelegram.worker.handover}."""

    def test_table(self) -> None:
        """Every pair either leads where the table says or is refused."""
        for state in STATES:
            for what in INPUTS:
                machine = hand_over()
                machine.now = state
                if (state, what) in TABLE:
                    self.assertTrue(machine.can(what))
                    self.assertEqual(machine.feed(what), TABLE[state, what])
                    self.assertEqual(machine.now, TABLE[state, what])
                else:
                    self.assertFalse(machine.can(what))
                    self.assertRaises(NoTransition, machine.feed, what)
                    self.assertEqual(machine.now, state)

    def test_table_is_closed(self) -> None:
        """It names known states only, and every state is reached."""
        self.assertEqual({state for state, _ in TABLE}, set(STATES))
        self.assertEqual(set(TABLE.values()), set(STATES))
        self.assertEqual(hand_over().now, IDLE)

    def test_gone_is_final(self) -> None:
        """It is reached from everywhere; nothing leads out of it, and nothing fails in it."""
        for state in STATES:
            self.assertEqual(TABLE[state, "gone"], GONE)
        for what in {what for _, what in STEPS}:
            self.assertEqual(TABLE[GONE, what], GONE)
