"""What the composer makes of settings."""

from __future__ import annotations

import hashlib
from pathlib import Path

import attrs
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.assembly import environment_rules
from pitelegram.kernel.paths import Paths
from pitelegram.settings.model import Settings
from pitelegram.settings.secret import Secret
from pitelegram.supervisor.environment import worker_environment

USED, NEW, OTHER = (f"{number}:{'x' * 35}" for number in (111, 222, 333))


class EnvironmentRulesTests(SynchronousTestCase):
    """The tokens of the daemon's start stay secret whatever the file says later."""

    def setUp(self) -> None:
        """Settings of the start."""
        self.at_start = Settings(
            profile="default",
            bot_token=Secret(USED),
            other_tokens=(Secret(OTHER),),
            token_variables=frozenset({"PI_OLD"}),
        )

    def environment(self, now: Settings) -> dict[str, str]:
        """What a worker gets of these variables."""
        rules = environment_rules(now, self.at_start, Paths(Path("/nowhere")), 111)
        given = {
            "PI_USED": f"<{USED}>",
            "PI_NEW": NEW,
            "PI_OTHER": OTHER,
            "PI_OLD": "short",
            "PI_LATER": "short",
            "PI_KEPT": "fine",
        }
        return worker_environment(given, rules, "a", "spawn")

    def test_token_was_exchanged(self) -> None:
        """Both tokens are removed; the digest is that of the token in use."""
        now = attrs.evolve(
            self.at_start,
            bot_token=Secret(NEW),
            other_tokens=(),
            token_variables=frozenset({"PI_LATER"}),
        )
        environment = self.environment(now)
        self.assertEqual([name for name in environment if name[3:].isalpha()], ["PI_KEPT"])
        self.assertEqual(
            environment["PI_TELEGRAM_WORKER_BOT_TOKEN_SHA256"],
            hashlib.sha256(USED.encode()).hexdigest(),
        )

    def test_token_was_taken_out(self) -> None:
        """Settings without any token forbid no launch and let nothing in."""
        environment = self.environment(Settings(profile="default"))
        self.assertNotIn("PI_USED", environment)
        self.assertNotIn("PI_OTHER", environment)
        self.assertNotIn("PI_OLD", environment)
        self.assertEqual(environment["PI_LATER"], "short")
