"""Machines do what their table says and nothing else."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.kernel.machine import Machine, NoTransition


class MachineTests(SynchronousTestCase):
    """L{Machine}."""

    def test_steps(self) -> None:
        """It follows the table; what the table does not have fails and changes nothing."""
        machine = Machine("closed", {("closed", "open"): "opened", ("opened", "shut"): "closed"})
        self.assertFalse(machine.can("shut"))
        self.assertRaises(NoTransition, machine.feed, "shut")
        self.assertEqual(machine.now, "closed")
        self.assertTrue(machine.can("open"))
        self.assertEqual(machine.feed("open"), "opened")
        self.assertEqual(machine.now, "opened")
