"""What makes a sound."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.answer import notice
from pitelegram.kernel.alarms import is_alarm


class AlarmTests(SynchronousTestCase):
    """L{is_alarm}, and what a worker makes of it."""

    def test_signs(self) -> None:
        """Only what begins with a sign of trouble is one."""
        self.assertTrue(all(map(is_alarm, ("⚠️ no model", "💥 ended", "❌ cannot start"))))
        self.assertFalse(any(map(is_alarm, ("✅ ready", "", "all is well ⚠️"))))

    def test_every_message_of_a_long_notice(self) -> None:
        """All messages of a confirmation are silent; those of an alarm are not."""
        for text, silent in (("x" * 9000, True), ("⚠️" + "x" * 9000, None)):
            (delivery,) = notice("n", text, 0)
            quiet = [c["params"].get("disable_notification") for c in delivery["delivery"]["calls"]]
            self.assertEqual(quiet, [silent] * 3)
