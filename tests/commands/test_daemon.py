"""The daemon in the foreground and in the background, as processes."""

import io
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random

from twisted.internet.defer import Deferred

from pitelegram.commands.background import Starting, stop_daemon
from pitelegram.kernel.birth import process_birth
from pitelegram.kernel.deferring import deferred
from pitelegram.sandbox.server import SandboxTelegram
from pitelegram.testing.processes import run_program
from tests.commands.support import CommandCase


class DaemonCase(CommandCase):
    """Base: a configured bot at a local Telegram; whatever runs at the end is ended."""

    timeout = 120

    def setUp(self):
        """Start Telegram, configure the bot."""
        super().setUp()
        self.telegram = SandboxTelegram(self.reactor, self.reactor, Random(7))
        self.telegram.startService()
        self.addCleanup(self.telegram.stopService)
        self.addCleanup(self.end_daemon)
        bot = self.telegram.chat.world.bot
        self.configure(
            {
                "profiles": {
                    "default": {
                        "botToken": self.telegram.token,
                        "botId": bot["id"],
                        "botUsername": bot["username"],
                        "allowedUserId": self.telegram.chat.owner["id"],
                        "apiRoot": self.telegram.api_root,
                    }
                }
            }
        )

    def owner(self):
        """The owner record, None when there is none."""
        try:
            return json.loads(self.paths.owners.read_text()).get("default")
        except FileNotFoundError:
            return None

    def end_daemon(self):
        """Kill a daemon that a failed test left."""
        record = self.owner()
        if record is not None and record["pid"] != os.getpid():
            if process_birth(record["pid"]) == record["processBirthId"]:
                os.kill(record["pid"], signal.SIGKILL)


class BackgroundTests(DaemonCase):
    """C{start}, C{status}, C{stop}, C{restart}."""

    @deferred
    async def test_life(self):
        """Started it is ready; it is one; restarted it is another; stopped it is gone."""
        ended = await self.cli("start")
        self.assertEqual(ended.code, 0, ended.err)
        first = self.owner()
        self.assertEqual(first["role"], "daemon")
        self.assertIn(f"pid {first['pid']}", ended.out)
        self.assertEqual(self.paths.daemon_pid.read_text(), f"{first['pid']}\n")
        self.assertIn('set cluster.leader to "daemon"', ended.err)
        self.assertEqual(self.configured()["cluster"], {"leader": "daemon"})

        status = await self.cli("status", "--json")
        self.assertEqual(status.code, 0)
        document = json.loads(status.out)
        self.assertEqual(document["daemon"]["pid"], first["pid"])
        self.assertNotIn(self.telegram.token, status.out)

        second = await self.cli("start")
        self.assertEqual(second.code, 4)
        self.assertIn(f"pid {first['pid']}", second.err)

        ended = await self.cli("restart")
        self.assertEqual(ended.code, 0, ended.err)
        self.assertNotEqual(self.owner()["pid"], first["pid"])
        self.assertNotIn("cluster.leader", ended.err)

        ended = await self.cli("stop")
        self.assertEqual(ended.code, 0, ended.err)
        self.assertIsNone(self.owner())
        self.assertFalse(self.paths.daemon_pid.exists())
        ended = await self.cli("status")
        self.assertEqual(ended.code, 1)
        self.assertIn("down", ended.out)
        ended = await self.cli("stop")
        self.assertEqual(ended.code, 0)

    @deferred
    async def test_survives_its_starter(self):
        """The daemon has a session of its own and no terminal's descriptors."""
        await self.cli("start")
        pid = self.owner()["pid"]
        self.assertEqual(os.getsid(pid), pid)
        self.assertEqual(os.readlink(f"/proc/{pid}/fd/0"), "/dev/null")
        self.assertEqual(os.readlink(f"/proc/{pid}/cwd"), "/")
        self.assertEqual((await self.cli("stop")).code, 0)

    @deferred
    async def test_private_log(self):
        """Its log is private and has no token."""
        await self.cli("start")
        await self.cli("stop")
        log = self.paths.daemon_pid.with_suffix(".log")
        self.assertEqual(log.stat().st_mode & 0o777, 0o600)
        self.assertIn("pi-telegram ready", log.read_text())
        self.assertNotIn(self.telegram.token, log.read_text())

    @deferred
    async def test_refused_token(self):
        """A token that Telegram refuses is told at the start, with exit code 3."""
        self.telegram.revoke_token()
        ended = await self.cli("start")
        self.assertEqual(ended.code, 3)
        self.assertIn("pi-telegram setup", ended.err)

    @deferred
    async def test_not_configured(self):
        """Without a token: exit code 3, what to do, and nothing is made."""
        self.paths.telegram_json.unlink()
        for command in ("start", "run"):
            ended = await self.cli(command)
            self.assertEqual(ended.code, 3)
            self.assertIn("pi-telegram setup", ended.err)
            self.assertFalse(self.paths.telegram_json.exists())

    @deferred
    async def test_bad_option(self):
        """A bad option: exit code 2 with its name; what runs is not stopped for it."""
        for command in ("start", "run", "restart"):
            for words in (["--network-family", "ipv9"], ["--nonsense"]):
                ended = await self.cli(command, *words)
                self.assertEqual(ended.code, 2)
                self.assertIn(words[0], ended.err)

    @deferred
    async def test_hostile_directory(self):
        """A directory full of modules with our names changes nothing."""
        hostile = self.agent / "hostile"
        for name in ("pitelegram", "twisted", "attr", "treq", "zope"):
            (hostile / name).mkdir(parents=True)
            (hostile / name / "__init__.py").write_text("raise SystemExit('hostile code ran')")
        script = str(Path(sys.executable).with_name("pi-telegram"))
        environ = {**os.environ, "PI_CODING_AGENT_DIR": str(self.agent)}
        for words in (["start"], ["status"], ["stop"]):
            ended = await run_program(
                self.reactor, [script, *words], environ=environ, directory=str(hostile)
            )
            self.assertEqual(ended.code, 0, ended.err)


class ForegroundTests(DaemonCase):
    """C{run} and C{twistd}."""

    @deferred
    async def run_until_ready(self, words):
        """Run until the readiness line, then send SIGTERM; returns the output and exit code."""
        from twisted.internet.protocol import ProcessProtocol

        class Watching(ProcessProtocol):
            def __init__(self):
                self.out = b""
                self.ready = Deferred()
                self.ended = Deferred()

            def childDataReceived(self, fd, data):
                self.out += data
                if b"pi-telegram ready" in self.out and not self.ready.called:
                    self.ready.callback(None)

            def processEnded(self, reason):
                if not self.ready.called:
                    self.ready.callback(None)
                self.ended.callback(reason.value)

        watching = Watching()
        environ = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("PI_", "NOTIFY"))},
            "PI_CODING_AGENT_DIR": str(self.agent),
        }
        transport = self.reactor.spawnProcess(watching, words[0], words, environ, str(self.agent))
        await watching.ready
        if transport.pid is not None:
            transport.signalProcess("TERM")
        ended = await watching.ended
        return watching.out.decode(), ended.exitCode, ended.signal

    @deferred
    async def test_run(self):
        """C{run} says when it is ready, writes no pid file, and ends with 0 on SIGTERM."""
        words = [sys.executable, "-m", "pitelegram.cli", "run"]
        out, code, _ = await self.run_until_ready(words)
        self.assertRegex(out, r"pi-telegram ready profile=default bot=@sandbox_pi_bot pid=\d+\n")
        self.assertEqual(code, 0, out)
        self.assertNotIn(self.telegram.token, out)
        self.assertFalse((self.agent / "twistd.pid").exists())
        self.assertEqual(self.configured()["cluster"], {"leader": "daemon"})

    @deferred
    async def test_run_respects_auto(self):
        """C{run} leaves a chosen C{cluster.leader} alone."""
        self.configure({**self.configured(), "cluster": {"leader": "auto"}})
        await self.run_until_ready([sys.executable, "-m", "pitelegram.cli", "run"])
        self.assertEqual(self.configured()["cluster"], {"leader": "auto"})

    @deferred
    async def test_twistd(self):
        """C{twistd -n pi-telegram} is the same daemon."""
        twistd = str(Path(sys.executable).with_name("twistd"))
        out, code, _ = await self.run_until_ready([twistd, "-n", "--pidfile=", "pi-telegram"])
        self.assertIn("pi-telegram ready profile=default", out)
        self.assertEqual(code, 0, out)

    @deferred
    async def test_twistd_refusals(self):
        """twistd passes our exit codes on, in front and daemonised."""
        twistd = str(Path(sys.executable).with_name("twistd"))
        environ = {**os.environ, "PI_CODING_AGENT_DIR": str(self.agent)}
        self.own()
        for code, words in ((4, []), (2, ["--nonsense"]), (2, ["--log-level=loud"])):
            for front in (["-n"], []):
                ended = await run_program(
                    self.reactor,
                    [twistd, *front, "--pidfile=", "pi-telegram", *words],
                    environ=environ,
                    directory=str(self.agent),
                )
                self.assertEqual(ended.code, code, ended.out + ended.err)

    @deferred
    async def test_nothing_before_the_lock(self):
        """While somebody else leads, nothing is asked of Telegram, stored, told or said to be ours."""
        self.own(role="worker")
        before = self.paths.owners.read_bytes()
        for verb in ("run", "start"):
            ended = await self.cli(verb)
            self.assertEqual(ended.code, 4, ended.out + ended.err)
            self.assertIn(f"live worker (pid {os.getpid()})", ended.out + ended.err)
        unchecked = (
            "import sys; from pitelegram import assembly; from pitelegram.daemon import service;"
            "service.check = lambda paths, twins: None;"
            "from pitelegram.commands import foreground, parser;"
            "given = foreground.resolve(parser.build().parse_args(['run']));"
            "made = lambda: assembly.make_daemon(given);"
            "sys.exit(foreground.run_service(made, 'info', sys.stdout))"
        )  # as when the other one came after each look at the lock
        out, code, _ = await self.run_until_ready([sys.executable, "-c", unchecked])
        self.assertEqual(code, 4, out)
        self.assertEqual(self.telegram.calls, [])
        self.assertEqual(self.paths.owners.read_bytes(), before)
        self.assertEqual(list(self.agent.rglob("*.sqlite3*")), [])
        self.assertEqual(list(self.agent.rglob("*.sock")), [])
        self.assertNotIn("leader", self.configured().get("cluster", {}))


class StartingTests(CommandCase):
    """Waiting for a daemon that behaves badly."""

    def starting(self, script, seconds=10.0):
        """A start of a small program instead of the daemon."""
        resolved = {
            "agent_dir": str(self.agent),
            "profile": "default",
            "api_root": "http://x",
            "pi": "pi",
            "root": ["/r"],
            "proxy": "http://user:hunter22@proxy:1",
            "network_family": "auto",
            "control_socket": None,
            "socket_group": None,
            "log_level": "info",
        }
        return Starting(resolved, seconds, (sys.executable, "-c", script))

    def outcome(self, starting):
        """Run it; returns exit code, standard output and error."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = starting.run()
        return code, out.getvalue(), err.getvalue()

    def test_exit_code(self):
        """The exit code of a daemon that ends is passed on, with what it said."""
        for given, expected in ((5, 5), (3, 3), (0, 1)):
            script = f"import sys; print('pi-telegram: it is broken'); sys.exit({given})"
            code, out, err = self.outcome(self.starting(script))
            self.assertEqual((code, out), (expected, ""))
            self.assertIn("it is broken", err)
            self.assertFalse(self.paths.daemon_pid.exists())

    def test_killed(self):
        """A daemon that a signal ended is a failure."""
        script = "import os; os.kill(os.getpid(), 9)"
        self.assertEqual(self.outcome(self.starting(script))[0], 1)

    def test_never_ready(self):
        """One that does not become ready is named, and left running."""
        script = "import sys, time; time.sleep(60)"
        code, _, err = self.outcome(self.starting(script, seconds=0.5))
        self.assertEqual(code, 1)
        pid = int(err.split("pid ")[1].split(")")[0])
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self.assertIn("still starting", err)
        self.assertIn("logs", err)

    def test_started_from_a_workers_shell(self):
        """A daemon carries no worker's mark, which would end it with that worker, and no session."""
        self.patch(
            os,
            "environ",
            {
                **{name: value for name, value in os.environ.items() if name[:3] != "PI_"},
                **dict.fromkeys(("PI_TELEGRAM_WORKER_MARK", "PI_TELEGRAM_DAEMON_WORKER"), "m"),
                **dict.fromkeys(("PI_SESSION_ID", "PI_SESSION_FILE", "PI_PROVIDER"), "s"),
                **dict.fromkeys(("PI_MODEL", "PI_REASONING_LEVEL"), "s"),
                **dict.fromkeys(("PI_TELEGRAM_PROFILE", "PI_OFFLINE"), "p"),
            },
        )
        script = (
            "import os, sys;print(sorted(n for n in os.environ if n.startswith('PI_')));sys.exit(1)"
        )
        self.assertIn(
            "['PI_OFFLINE', 'PI_TELEGRAM_PROFILE', 'PI_TELEGRAM_PROXY']",
            self.outcome(self.starting(script))[2],
        )

    def test_ready(self):
        """Its word is taken from the notify socket; the proxy's password is in no argument."""
        script = (
            "import os, socket, sys;"
            "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM);"
            "assert 'hunter22' not in ' '.join(sys.argv), sys.argv;"
            "assert 'hunter22' in os.environ['PI_TELEGRAM_PROXY'];"
            "s.sendto(b'STATUS=soon', os.environ['NOTIFY_SOCKET']);"
            "s.sendto(b'READY=1', os.environ['NOTIFY_SOCKET'])"
        )
        code, out, err = self.outcome(self.starting(script))
        self.assertEqual((code, err), (0, ""))
        self.assertIn("The daemon runs", out)


class StopTests(CommandCase):
    """Whom C{stop} may end."""

    def stop(self, seconds=60.0):
        """Stop quietly; returns the exit code."""
        with redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
            return stop_daemon(self.paths, seconds)

    def sleeper(self):
        """A process to be stopped, or not."""
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_another_process(self):
        """A process that has the recorded pid but another birth is nobody's daemon."""
        process = self.sleeper()
        self.own(process.pid, birth=f"{process.pid}:start:1")
        self.assertEqual(self.stop(), 0)
        self.assertIsNone(process.poll())

    def test_worker_leads(self):
        """A terminal's worker is refused."""
        process = self.sleeper()
        self.own(process.pid, role="worker")
        self.assertEqual(self.stop(), 1)
        self.assertIsNone(process.poll())

    def test_without_birth(self):
        """A record that does not say which process it means is refused."""
        process = self.sleeper()
        self.own(process.pid, processBirthId=None, instanceId=f"{process.pid}:9999999999999")
        self.assertEqual(self.stop(), 1)
        self.assertIsNone(process.poll())

    def test_deaf(self):
        """A daemon that ignores the signal is not killed."""
        ready, told = socket.socketpair()
        script = (
            "import signal, socket, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
            "socket.socket(fileno=int(sys.argv[1])).send(b'x'); time.sleep(60)"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(told.fileno())], pass_fds=[told.fileno()]
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        ready.recv(1)
        ready.close()
        told.close()
        self.own(process.pid)
        self.assertEqual(self.stop(0.3), 1)
        self.assertIsNone(process.poll())

    def test_daemon(self):
        """A live daemon is asked to end."""
        process = self.sleeper()
        self.own(process.pid)
        self.assertEqual(self.stop(), 0)
        self.assertEqual(process.wait(), -signal.SIGTERM)
