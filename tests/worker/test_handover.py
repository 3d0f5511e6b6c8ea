"""The hand-over machine takes what its table says and nothing else."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import WorkerError
from pitelegram.worker import handover
from pitelegram.worker.handover import TABLE, HandOver

STATES = ("idle", "handing", "running", "storing", "waiting", "gone")
INPUTS = (
    "hand",
    "run",
    "settled",
    "accepted",
    "finished",
    "refused",
    "stored",
    "stored-running",
    "resume",
)


class Machine(SynchronousTestCase):
    """L{HandOver}."""

    def test_table(self) -> None:
        """Every pair either leads where the table says or is refused."""
        for state in STATES[:-1]:
            for what in INPUTS:
                machine = HandOver()
                machine.state = state
                if (state, what) in TABLE:
                    self.assertTrue(machine.can(what))
                    machine.put(what)
                    self.assertEqual(machine.state, TABLE[state, what])
                else:
                    self.assertFalse(machine.can(what))
                    self.assertRaises(WorkerError, machine.put, what)

    def test_table_is_closed(self) -> None:
        """It names known states and inputs only, and every state is reached."""
        self.assertEqual({state for state, _ in TABLE}, set(STATES[:-1]))
        self.assertEqual({what for _, what in TABLE}, set(INPUTS))
        self.assertEqual(set(TABLE.values()), set(STATES[:-1]))

    def test_gone_is_final(self) -> None:
        """Nothing leads out of it, and nothing fails in it."""
        machine = HandOver()
        machine.put("gone")
        for what in INPUTS:
            machine.put(what)
            self.assertEqual(machine.state, handover.GONE)
