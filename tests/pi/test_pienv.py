"""Finding the Pi to test with."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.testing.pienv import VARIABLE, PiMissing, pi_command, pi_environment


class PiEnvironmentTests(SynchronousTestCase):
    """L{pitelegram.testing.pienv}."""

    def set(self, value: str) -> None:
        """Name a Pi for this test."""
        before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = value
        if before is None:
            self.addCleanup(os.environ.pop, VARIABLE, None)
        else:
            self.addCleanup(os.environ.__setitem__, VARIABLE, before)

    def test_named(self) -> None:
        """The variable holds shell words."""
        self.set("/bin/sh -c 'a b'")
        self.assertEqual(pi_command(), ["/bin/sh", "-c", "a b"])

    def test_missing(self) -> None:
        """A Pi that is not there is an error, never a reason to skip."""
        self.set("/no/such/pi")
        error = self.assertRaises(PiMissing, pi_command)
        self.assertIn(VARIABLE, str(error))

    def test_environment(self) -> None:
        """Pi is kept off the network and in its throw-away directory."""
        environment = pi_environment(Path("/agent"), {"X": "y"})
        self.assertEqual(environment["PI_CODING_AGENT_DIR"], "/agent")
        self.assertEqual((environment["PI_OFFLINE"], environment["X"]), ("1", "y"))
        self.assertNotIn(VARIABLE, environment)
