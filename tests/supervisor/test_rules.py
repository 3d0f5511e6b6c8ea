"""Names, roots, environment, restart policy, and the table of the life machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from pitelegram.errors import LaunchFailed, Refusal
from pitelegram.ids import ProcessBirth
from pitelegram.kernel.birth import process_birth
from pitelegram.panel.interfaces import IDirectories
from pitelegram.supervisor.directories import Directories
from pitelegram.supervisor.environment import EnvironmentRules, pi_environment, worker_environment
from pitelegram.supervisor.life import LADDER, TRANSITIONS, Event, Life, State
from pitelegram.supervisor.names import worker_name
from pitelegram.supervisor.policy import RestartPolicy
from pitelegram.supervisor.roots import Roots, check_session
from pitelegram.supervisor.version import PiVersion, is_another
from pitelegram.testing.spawner import FakeSpawner

TOKEN = "123456:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc"


class NameTests(SynchronousTestCase):
    """L{worker_name}."""

    def test_names(self) -> None:
        """Base name, then the parent in front, then a number."""
        for path, taken, name in (
            ("/a/My App", (), "my-app"),
            ("/a/app", ("app",), "a-app"),
            ("/a/app", ("app", "a-app"), "a-app-2"),
            ("/a/app", ("app", "a-app", "a-app-2"), "a-app-3"),
            ("/", (), "worker"),
            ("/", ("worker",), "worker-2"),
            ("/ü/日本", (), "worker"),
            ("/a/_x_", (), "x"),
        ):
            self.assertEqual(worker_name(Path(path), taken), name)

    @given(st.text(max_size=60), st.text(max_size=60), st.sets(st.text(max_size=4), max_size=5))
    def test_grammar(self, parent: str, own: str, taken: set[str]) -> None:
        """Whatever the directory is called, the name is new, short and plain."""
        clean = [part.replace("/", "").replace("\0", "") or "x" for part in (parent, own)]
        directory = Path("/", *clean)
        names = set(taken)
        for _ in range(4):
            name = worker_name(directory, names)
            self.assertNotIn(name, names)
            self.assertRegex(name, re.compile(r"\A[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?\Z"))
            names.add(name)


class RootsTests(SynchronousTestCase):
    """L{Roots} and L{check_session}."""

    def setUp(self) -> None:
        self.base = Path(self.mktemp()).absolute()
        for name in ("root/a", "root/B", "root/.hidden", "outside", "sessions", "root2"):
            (self.base / name).mkdir(parents=True)
        (self.base / "root" / "file").write_text("")
        (self.base / "root" / "out").symlink_to(self.base / "outside")
        (self.base / "root" / "in").symlink_to(self.base / "root2")
        (self.base / "root" / "loop").symlink_to(self.base / "root" / "loop")
        self.roots = Roots([self.base / "root", self.base / "root2", self.base / "absent"])

    def test_contains(self) -> None:
        """Real paths count, names that only look alike do not."""
        for name, inside in (
            ("root", True),
            ("root/a", True),
            ("root/a/absent", True),
            ("root/in", True),
            ("root/out", False),
            ("root/../outside", False),
            ("root2", True),
            ("rootless", False),
            ("", False),
        ):
            self.assertEqual(self.roots.contains(self.base / name), inside, name)

    def test_names_that_are_no_text(self) -> None:
        """They are neither shown nor started in."""
        strange = os.fsencode(self.base / "root") + b"/\xff"
        os.mkdir(strange)
        names = [path.name for path in self.roots.children(self.base / "root")]
        self.assertNotIn(os.fsdecode(b"\xff"), names)
        with self.assertRaises(Refusal) as caught:
            self.roots.resolve(os.fsdecode(strange))
        self.assertEqual(caught.exception.code, "not-a-directory")
        str(caught.exception).encode()

    def test_directories(self) -> None:
        """What the picker sees: roots that exist, the way up to them, recent ones that may be used."""
        used = [str(self.base / name) for name in ("outside", "root/gone", "root/a", "root2")]
        directories = Directories(self.roots, lambda: used)
        self.assertTrue(verifyObject(IDirectories, directories))
        root = str(self.base / "root")
        self.assertEqual(directories.roots(), [root, str(self.base / "root2")])
        self.assertEqual(directories.recent(5), [f"{root}/a", str(self.base / "root2")])
        self.assertEqual(directories.recent(1), [f"{root}/a"])
        self.assertEqual(directories.parent(f"{root}/a"), root)
        self.assertIsNone(directories.parent(root))
        self.assertIsNone(directories.parent("/"))
        self.assertEqual(directories.resolve(f"{root}/in"), str(self.base / "root2"))
        self.assertIn(f"{root}/a", directories.children(root))

    def test_children(self) -> None:
        """Directories by name, links that stay inside; hidden ones, files and links out are left out."""
        names = [path.name for path in self.roots.children(self.base / "root")]
        self.assertEqual(names, ["a", "B", "in"])
        self.assertEqual(self.roots.children(self.base / "absent"), [])

    def test_resolve(self) -> None:
        """Only an existing directory inside, by its real path."""
        self.assertEqual(self.roots.resolve(str(self.base / "root" / "in")), self.base / "root2")
        for path, code in (
            (str(self.base / "root" / "file"), "not-a-directory"),
            (str(self.base / "root" / "gone"), "not-a-directory"),
            (str(self.base / "root" / "out"), "outside-roots"),
            (str(self.base / "root" / "a" / ".." / ".." / "outside"), "outside-roots"),
            ("a\0b", "not-a-directory"),
            ("~", "not-a-directory"),
            ("", "not-a-directory"),
        ):
            error = self.assertRaises(Refusal, self.roots.resolve, path)
            self.assertEqual(error.code, code, path)

    def session(self, first: Any, name: str = "s.jsonl") -> str:
        """A session file with that first line."""
        path = self.base / "sessions" / name
        path.write_text((first if isinstance(first, str) else json.dumps(first)) + "\n{}\n")
        return str(path)

    def test_session(self) -> None:
        """A recorded session has to be Pi's own, valid, and to work inside the roots."""
        sessions = self.base / "sessions"
        good = self.session({"type": "session", "cwd": str(self.base / "root" / "a")})
        check_session(good, sessions, self.roots)
        check_session(str(sessions / "missing.jsonl"), sessions, self.roots)
        (self.base / "sessions" / "link").symlink_to("/etc/passwd")
        for bad in (
            self.session({"type": "session", "cwd": str(self.base / "outside")}, "1"),
            self.session({"type": "session", "cwd": str(self.base / "root" / "gone")}, "2"),
            self.session({"type": "session"}, "3"),
            self.session({"type": "message", "cwd": str(self.base / "root")}, "4"),
            self.session("not json", "5"),
            self.session([1], "6"),
            str(sessions / "link"),
            str(sessions / ".." / "root" / "file"),
            "/etc/passwd",
        ):
            error = self.assertRaises(LaunchFailed, check_session, bad, sessions, self.roots)
            self.assertTrue(error.permanent, bad)


SESSION_VARIABLES = (
    "PI_SESSION_ID",
    "PI_SESSION_FILE",
    "PI_PROVIDER",
    "PI_MODEL",
    "PI_REASONING_LEVEL",
)


class EnvironmentTests(SynchronousTestCase):
    """What a worker inherits."""

    def rules(self, **kw: Any) -> EnvironmentRules:
        """Rules with a token."""
        return EnvironmentRules(
            agent_dir="/agent", token_digest="d" * 64, tokens=(TOKEN,), bot_id=5, **kw
        )

    def test_list(self) -> None:
        """Listed names and patterns go in, everything else stays out."""
        passed = {
            "PATH": "p",
            "LC_ALL": "C",
            "XDG_RUNTIME_DIR": "x",
            "https_proxy": "h",
            "SSL_CERT_FILE": "s",
            "PI_OFFLINE": "1",
            "OPENAI_API_KEY": "k",
            "OPENAI_BASE_URL": "u",
            "AWS_REGION": "r",
            "OLLAMA_HOST": "o",
        }
        dropped = {
            "LD_PRELOAD": "x",
            "PYTHONPATH": "x",
            "NODE_OPTIONS": "x",
            "PI_TELEGRAM_PROFILE": "x",
            "PI_TELEGRAM_WORKER_MARK": "another's",
            "PI_SESSION_FILE": "x",
            "PI_MODEL": "x",
            "SECRET": "x",
            "path": "x",
        }
        result = worker_environment({**passed, **dropped}, self.rules(), "demo", "spawn")
        self.assertEqual(
            result,
            {
                **passed,
                "PI_CODING_AGENT_DIR": "/agent",
                "PI_TELEGRAM_DAEMON_WORKER": "1",
                "PI_TELEGRAM_FOLLOWER_OWNER_ID": "worker:demo",
                "PI_TELEGRAM_WORKER_BOT_TOKEN_SHA256": "d" * 64,
                "PI_TELEGRAM_WORKER_BOT_ID": "5",
                "PI_TELEGRAM_WORKER_MARK": "spawn",
            },
        )

    def test_another_pis_session(self) -> None:
        """Session and model of the Pi from whose shell all was started never go in, whatever lets them."""
        foreign = dict.fromkeys(SESSION_VARIABLES, "x")
        rules = self.rules(pass_env=("*",), extra=foreign)
        for result in (
            pi_environment({**foreign, "PI_OFFLINE": "1"}, rules),
            worker_environment({**foreign, "PI_OFFLINE": "1"}, rules, "demo", "spawn"),
        ):
            self.assertEqual(set(result) & set(foreign), set())
            self.assertEqual(result["PI_OFFLINE"], "1")

    def test_configured(self) -> None:
        """C{passEnv} lets more in, C{workers.env} adds and wins."""
        rules = self.rules(pass_env=("MY_*",), extra={"PATH": "mine", "NEW": "1"})
        result = pi_environment({"MY_X": "1", "YOUR_X": "1", "PATH": "theirs"}, rules)
        self.assertEqual(
            result,
            {"MY_X": "1", "PATH": "mine", "NEW": "1", "PI_CODING_AGENT_DIR": "/agent"},
        )

    def test_tokens_never(self) -> None:
        """A token leaves by its value, by its name, and by being a token's variable, whatever let it in."""
        inherited = {
            "X_API_KEY": f"a{TOKEN}b",
            "TELEGRAM_BOT_TOKEN": "t",
            "TELEGRAM_TOKEN": "t",
            "AWS_BOT": "other",
            "HOME": "/home",
        }
        rules = self.rules(
            pass_env=("*",),
            extra={"MINE": TOKEN, "TELEGRAM_MY_TOKEN_2": "t"},
            token_variables=frozenset(("AWS_BOT",)),
        )
        result = worker_environment(inherited, rules, "demo", "spawn")
        self.assertNotIn(TOKEN, json.dumps(result))
        for absent in ("X_API_KEY", "TELEGRAM_BOT_TOKEN", "TELEGRAM_TOKEN", "AWS_BOT", "MINE"):
            self.assertNotIn(absent, result)
        self.assertNotIn("TELEGRAM_MY_TOKEN_2", result)
        self.assertEqual(result["HOME"], "/home")
        self.assertNotIn(TOKEN, repr(rules))


class PolicyTests(SynchronousTestCase):
    """L{RestartPolicy}."""

    def test_pauses(self) -> None:
        """Pauses double with jitter up to a minute; the sixth crash in ten minutes is too many."""
        clock = Clock()
        policy = RestartPolicy(Random(3), clock.seconds)
        pauses = [policy.crashed() for _ in range(5)]
        for number, pause in enumerate(pauses):
            assert pause is not None
            self.assertTrue(2**number / 2 <= pause <= min(2**number, 60))
        self.assertIsNone(policy.crashed())
        clock.advance(601)
        self.assertIsNotNone(policy.crashed())
        self.assertEqual(policy.restarts, 6)
        policy.reset()
        self.assertEqual(policy.restarts, 0)
        self.assertLessEqual(policy.crashed() or 99, 1)

    def test_healthy(self) -> None:
        """Only ten minutes of health forgive."""
        clock = Clock()
        policy = RestartPolicy(Random(3), clock.seconds)
        for _ in range(4):
            policy.crashed()
        policy.running()
        clock.advance(500)
        self.assertGreater(policy.crashed() or 0, 4)
        policy.running()
        clock.advance(600)
        self.assertLessEqual(policy.crashed() or 99, 1)


class LifeTests(SynchronousTestCase):
    """The machine."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.seen: list[tuple[State, State, str]] = []
        self.life = Life(self.clock, self)

    def entered(self, before: State, state: State, actor: str, reason: str) -> None:
        """See L{ILifePort}."""
        self.seen.append((before, state, actor))

    def test_table(self) -> None:
        """Every state has a row, leads somewhere, and can be reached."""
        self.assertEqual(set(TRANSITIONS), set(State))
        reached = {state for row in TRANSITIONS.values() for state in row.values()}
        self.assertEqual(reached, set(State))
        for state in LADDER:
            ends = {TRANSITIONS[state][event] for event in (Event.ENDED, Event.AGAIN)}
            self.assertEqual(ends, {State.STOPPED, State.SPAWNING})

    def test_only_what_the_table_says(self) -> None:
        """In every state every event either follows the table or changes nothing."""
        for state in State:
            for event in Event:
                self.life.state, self.seen = state, []
                wanted = TRANSITIONS[state].get(event)
                self.assertEqual(self.life.receive(event, "daemon", "x"), wanted is not None)
                self.assertEqual(self.life.state, wanted or state)
                self.assertEqual(len(self.seen), int(wanted is not None))

    def test_timer(self) -> None:
        """A timer belongs to its state: leaving it ends the timer, a new one replaces it."""
        self.life.receive(Event.START, "operator", "x")
        self.life.arm(5, Event.OVERDUE, "policy", "x")
        self.life.receive(Event.READY, "daemon", "x")
        self.clock.advance(10)
        self.assertEqual(self.life.state, State.RUNNING)
        self.life.arm(5, Event.BROKEN, "policy", "x")
        self.life.arm(7, Event.CRASHED, "policy", "x")
        self.clock.advance(6)
        self.assertEqual(self.life.state, State.RUNNING)
        self.clock.advance(1)
        self.assertEqual(self.life.state, State.BACKOFF)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    @given(st.lists(st.sampled_from(list(Event)), max_size=40))
    def test_any_order(self, events: list[Event]) -> None:
        """No order of events leads out of the table or leaves a timer behind."""
        life = Life(self.clock, self)
        for event in events:
            before = life.state
            life.receive(event, "daemon", "x")
            self.assertIn(life.state, {before, *TRANSITIONS[before].values()})
        self.assertEqual(self.clock.getDelayedCalls(), [])


class VersionTests(SynchronousTestCase):
    """L{PiVersion}."""

    def setUp(self) -> None:
        self.program = Path(self.mktemp()).absolute()
        self.program.write_text("x")
        self.program.chmod(0o755)
        self.clock, self.spawner = Clock(), FakeSpawner()
        self.version = PiVersion([str(self.program), "word"], self.spawner, self.clock)

    def test_both_streams(self) -> None:
        """The version may come on either stream; both are read."""
        for number, stream in enumerate(("out", "err")):
            self.program.write_text("x" * number)
            checking = self.version.check({})
            process = self.spawner.processes[-1]
            self.assertEqual(process.arguments, [str(self.program), "word", "--version"])
            getattr(process, stream)(b"pi 0.84")
            getattr(process, stream)(b".4\n")
            process.exit(0)
            self.assertEqual(self.successResultOf(checking), [str(self.program), "word"])

    def test_refused(self) -> None:
        """Too old is permanent; silence, nonsense and no answer in time are not."""
        for said, permanent in (
            (b"0.84.3", True),
            (b"0.9.0", True),
            (b"hello", False),
            (b"", False),
        ):
            self.program.write_text(said.decode() or "y")
            checking = self.version.check({})
            self.spawner.processes[-1].out(said)
            self.spawner.processes[-1].exit(0)
            failure = self.failureResultOf(checking, LaunchFailed)
            self.assertEqual(failure.value.permanent, permanent, said)
        self.program.write_text("hangs")
        checking = self.version.check({})
        self.clock.advance(20)
        self.failureResultOf(checking, LaunchFailed)
        self.assertEqual(self.spawner.processes[-1].signals, ["KILL"])
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_wrapper_that_hangs(self) -> None:
        """What a wrapper started ends with it."""
        started = subprocess.Popen(["sleep", "60"])
        self.addCleanup(started.wait)
        self.addCleanup(started.kill)
        born = process_birth(started.pid)
        assert born is not None
        below = [ProcessBirth(started.pid, born)]
        version = PiVersion([str(self.program)], self.spawner, self.clock, lambda pid: below)
        checking = version.check({})
        self.clock.advance(20)
        self.failureResultOf(checking, LaunchFailed)
        self.assertEqual(started.wait(timeout=10), -9)

    def test_somebody_holds_the_streams(self) -> None:
        """A program that answered and ended is believed although its streams stay open."""
        checking = self.version.check({})
        process = self.spawner.processes[-1]
        process.out(b"1.6.0\n")
        process.exit(0, end=False)
        self.assertNoResult(checking)
        self.clock.advance(1)
        self.successResultOf(checking)
        self.assertTrue(process.lost)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_oh_my_pi(self) -> None:
        """Its numbers are higher, but it is another program: refused for good, whatever its name."""
        checking = self.version.check({})
        self.spawner.processes[-1].out(b"omp/18.2.3\n")
        self.spawner.processes[-1].exit(0)
        failure = self.failureResultOf(checking, LaunchFailed)
        self.assertTrue(failure.value.permanent)
        self.assertIn("install @earendil-works/pi-coding-agent 0.84.4", str(failure.value))
        package = self.program.parent / "node_modules" / "@oh-my-pi" / "cli.js"
        package.parent.mkdir(parents=True, exist_ok=True)
        package.write_text("x")
        link = self.program.parent / "linked"
        link.symlink_to(package)
        self.assertTrue(is_another([str(link)], "18.2.3"))
        self.assertTrue(is_another(["/usr/bin/bun", "/opt/omp"], "18.2.3"))
        self.assertFalse(is_another(["/home/omp/bin/pi"], "1.6.0"))
        self.assertFalse(is_another(["/usr/bin/pi"], "compiled 1.6.0"))

    def test_missing(self) -> None:
        """A command that is not there, or cannot be executed, is permanent."""
        self.program.chmod(0o644)
        failure = self.failureResultOf(self.version.check({"PATH": "/nowhere"}), LaunchFailed)
        self.assertTrue(failure.value.permanent)
        self.program.chmod(0o755)
        self.spawner.error = OSError("no")
        failure = self.failureResultOf(self.version.check({}), LaunchFailed)
        self.assertTrue(failure.value.permanent)
