"""Exit codes of errors."""

from twisted.trial.unittest import SynchronousTestCase

from pitelegram import errors
from pitelegram.kernel.exits import exit_code


class ExitCodeTests(SynchronousTestCase):
    """L{exit_code}."""

    def test_codes(self) -> None:
        """As the contract has them."""
        for error, right in (
            (errors.UsageError("x"), 2),
            (errors.ConfigError("x"), 2),
            (errors.NotConfigured("x"), 3),
            (errors.LiveOwner(1, "daemon"), 4),
            (errors.OwnershipLost("x"), 5),
            (errors.OwnershipError("x"), 1),
            (errors.SocketInUse("x"), 1),
            (errors.StoreError("x"), 1),
            (OSError("x"), 1),
        ):
            self.assertEqual(exit_code(error), right, error)
