"""What the composer makes of settings."""

from __future__ import annotations

import grp
import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.assembly import check_before_start, environment_rules, run_options
from pitelegram.errors import ConfigError, LiveOwner, UnsafeFile
from pitelegram.kernel.exits import exit_code
from pitelegram.kernel.paths import Paths
from pitelegram.ownership.ownership import Ownership
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


class CheckTests(SynchronousTestCase):
    """What forbids a start is found before it, by looking."""

    def setUp(self) -> None:
        """A configured agent directory, and a place for a socket."""
        self.base = Path(self.mktemp()).absolute()
        self.agent = self.base / "agent"
        self.agent.mkdir(parents=True)
        settings = {"profiles": {"default": {"botToken": USED}}}
        (self.agent / "telegram.json").write_text(json.dumps(settings))
        place = Path(tempfile.mkdtemp(prefix="pt-"))
        self.addCleanup(shutil.rmtree, place)
        self.socket = place / "c.sock"

    def check(self, **changes: Any) -> None:
        """As before a start, with these options."""
        options = {"agent_dir": self.agent, "profile": "default"}
        check_before_start({**options, "control_socket": None, "socket_group": None, **changes})

    def test_group(self) -> None:
        """A group that is none of ours ends with 2, its directory's mode with 1; nothing is made."""
        ours = grp.getgrgid(os.getegid()).gr_name
        self.check(control_socket=str(self.socket))
        for group, kind, code in (("no-such-group", ConfigError, 2), (ours, UnsafeFile, 1)):
            error = self.assertRaises(
                kind, self.check, control_socket=str(self.socket), socket_group=group
            )
            self.assertEqual(exit_code(error), code)
        self.socket.parent.chmod(0o710)
        self.check(control_socket=str(self.socket), socket_group=ours)
        self.assertEqual(os.listdir(self.socket.parent), [])
        self.assertEqual(os.listdir(self.agent), ["telegram.json"])

    def test_two_profiles_of_one_bot(self) -> None:
        """A bot has one poller: while another profile's daemon has it, none is started."""
        bot = USED.partition(":")[0]
        twins = {
            "a": {"botId": int(bot)},
            "b": {"botToken": USED},
            "c": {"botToken": OTHER},
            "d": 7,
        }
        settings = {"profiles": {"default": {"botToken": USED}, **twins}}
        (self.agent / "telegram.json").write_text(json.dumps(settings))
        self.check()
        for profile in twins:
            paths = Paths(self.agent, profile)
            paths.prepare()
            owner = Ownership(
                paths, Clock(), bus_socket=paths.bus_socket, control_socket=paths.control_socket
            )
            self.successResultOf(owner.acquire("daemon"))
            if profile in ("a", "b"):
                error = self.assertRaises(LiveOwner, self.check)
                self.assertIn(f"profile {profile} is the same bot", str(error))
                self.assertEqual(exit_code(error), 4)
            else:
                self.check()
            self.successResultOf(owner.release())

    def test_open_directory(self) -> None:
        """A socket where others may write is refused."""
        error = self.assertRaises(UnsafeFile, self.check, control_socket="/tmp/pt-c.sock")
        self.assertEqual(
            error.code, "insecure_socket_parent" if os.geteuid() == 0 else "wrong_owner"
        )


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
