"""What the composer makes of settings."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.assembly import environment_rules, run_options
from pitelegram.kernel.paths import Paths
from pitelegram.settings.model import Settings
from pitelegram.settings.secret import Secret
from pitelegram.supervisor.environment import worker_environment
from pitelegram.tap import Options

USED, NEW, OTHER = (f"{number}:{'x' * 35}" for number in (111, 222, 333))


class RunOptionsTests(SynchronousTestCase):
    """What was resolved stays as it is."""

    def resolved(self, document: str, environ: dict[str, str]) -> Any:
        """Resolve options with this file and these variables, and make the record."""
        agent = Path(self.mktemp()).absolute()
        agent.mkdir(mode=0o700)
        (agent / "telegram.json").write_text(document)
        options = Options({"PI_CODING_AGENT_DIR": str(agent), **environ})
        options.parseOptions([])
        return run_options(options.resolved())

    def test_proxy_that_is_bypassed(self) -> None:
        """A proxy of the file does not come back when the environment says that none is used."""
        run = self.resolved(
            '{"network": {"proxy": "http://file:1"}}',
            {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "api.telegram.org"},
        )
        self.assertIsNone(run.proxy)

    def test_no_roots(self) -> None:
        """An empty list of roots allows nothing; it is not the home directory."""
        self.assertEqual(self.resolved('{"workers": {"roots": []}}', {}).roots, ())

    def test_everything_else(self) -> None:
        """The file's values arrive."""
        run = self.resolved('{"network": {"family": "ipv6"}, "workers": {"command": "pi x"}}', {})
        self.assertEqual((run.network_family, run.pi_command), ("ipv6", ("pi", "x")))


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
