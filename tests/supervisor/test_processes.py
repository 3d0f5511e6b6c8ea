"""Supervision of real processes: a small stand-in takes the place of the worker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from twisted.internet.defer import succeed
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase

from pitelegram.ids import ProcessBirth, managed_binding
from pitelegram.kernel.birth import is_alive, process_birth
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.flock import FileLock, is_free
from pitelegram.kernel.paths import Paths
from pitelegram.kernel.proctree import MARK_VARIABLE
from pitelegram.store.bindings import Bindings
from pitelegram.store.leadership import Leadership
from pitelegram.store.specs import Specs
from pitelegram.supervisor.environment import EnvironmentRules
from pitelegram.supervisor.ladder import Reach
from pitelegram.supervisor.launch import Launcher
from pitelegram.supervisor.parts import Parts
from pitelegram.supervisor.roots import Roots
from pitelegram.supervisor.supervisor import Supervisor
from pitelegram.testing.delivery import FakeNotices
from pitelegram.testing.followers import FakeThreads
from pitelegram.testing.stores import leader_database
from pitelegram.testing.supervision import FakeFollower, FakeRegistry

STANDIN = """#!{python}
import json, os, signal, subprocess, sys, time
with os.fdopen(3, "rb") as pipe:
    secret = pipe.read()
report = dict(secret=secret.hex(), cwd=os.getcwd(), environ=dict(os.environ), pid=os.getpid(),
              fds=sorted(int(n) for n in os.listdir("/proc/self/fd")))
mode = os.environ["STANDIN"]
if mode != "obedient":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import signal, time;"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"],
        start_new_session=True, pass_fds=[4])
    report["child"] = child.pid
print("up", flush=True)
path = os.environ["REPORT"]
with open(path + ".new", "w") as file:
    json.dump(report, file)
os.rename(path + ".new", path)
time.sleep(60)
"""

TOKEN = "123456:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc"


def birth_of(pid: int) -> ProcessBirth:
    """The birth of a living process."""
    birth = process_birth(pid)
    assert birth is not None
    return ProcessBirth(pid, birth)


class ProcessCase(TestCase):
    """A supervisor on the real reactor."""

    timeout = 60

    def setUp(self) -> None:
        from twisted.internet import reactor

        self.reactor: Any = reactor
        self.base = Path(self.mktemp()).absolute()
        self.project = self.base / "home" / "project"
        self.project.mkdir(parents=True)
        self.paths = Paths(self.base / "agent")
        self.paths.prepare()
        self.report = self.base / "report"
        self.database = leader_database(self.reactor)
        self.specs = Specs(self.database)
        self.registry = FakeRegistry()
        self.notices = FakeNotices()
        self.mode = "obedient"
        self.supervisor = self.make()
        self.supervisor.startService()
        self.addCleanup(self.end_all)
        self.addCleanup(lambda: self.supervisor.stopService())

    def script(self, name: str, text: str) -> str:
        """An executable."""
        path = self.base / name
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def make(self) -> Supervisor:
        """A supervisor whose workers are stand-ins."""
        environ = {"PATH": os.environ["PATH"], "HOME": TOKEN, "TELEGRAM_BOT_TOKEN": "x", "ODD": "1"}
        launcher = Launcher(
            self.reactor,
            self.reactor,
            self.paths,
            [self.script("pi", "#!/bin/sh\necho 1.6.0\n")],
            Roots([self.base / "home"]),
            environ,
            self.rules,
            python=self.script("standin", STANDIN.format(python=sys.executable)),
        )
        parts = Parts(
            specs=self.specs,
            leadership=Leadership(self.database),
            registry=self.registry,
            notices=self.notices,
            launcher=launcher,
            paths=self.paths,
            reactor=self.reactor,
            random=Random(1),
            stop_seconds=2.0,
        )
        threads = FakeThreads(Bindings(self.database))
        return Supervisor(parts, threads, Roots([self.base / "home"]), lambda key: succeed(None))

    def rules(self) -> EnvironmentRules:
        """What the stand-in gets."""
        extra = {"STANDIN": self.mode, "REPORT": str(self.report), "BAD": f"x{TOKEN}"}
        return EnvironmentRules(
            agent_dir=str(self.paths.agent_dir), token_digest="d" * 64, extra=extra, tokens=(TOKEN,)
        )

    @deferred
    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait for something to become true; its value."""
        while not (value := condition()):
            await deferLater(self.reactor, 0.02)
        return value

    async def started(self) -> dict[str, Any]:
        """Start a worker and wait for its report."""
        await self.supervisor.start(str(self.project), "operator")
        await self.until(self.report.exists)
        return json.loads(self.report.read_text())

    def state(self) -> str:
        """The worker's state."""
        return self.supervisor.views()[0].state

    @deferred
    async def end_all(self) -> None:
        """Kill what the test left, and wait until its end was seen."""
        for key in self.paths.workers.glob("*.lock"):
            spec = key.stem.removeprefix("spec-")
            for row in self.database.read("SELECT spawn_id FROM spawns WHERE spec_id = ?", (spec,)):
                Reach(row["spawn_id"], key, list).signal_rest(signal.SIGKILL)
            await self.until(lambda key=key: is_free(key))
        await deferLater(self.reactor, 0.05)


class RealTests(ProcessCase):
    """Real processes."""

    @deferred
    async def test_what_a_worker_gets(self) -> None:
        """Credential, lock, directory and environment are as agreed, and nothing else is open."""
        report = await self.started()
        [view] = self.supervisor.views()
        spawned = self.specs.live_spawn(view.spec_id)
        assert spawned is not None
        self.assertEqual(report["secret"], spawned.credential.hex())
        self.assertEqual(len(spawned.credential), 32)
        self.assertEqual(report["cwd"], str(self.paths.data))
        self.assertEqual(report["pid"], view.pid)
        self.assertEqual([fd for fd in report["fds"] if fd not in (0, 1, 2, 4)][1:], [])
        self.assertFalse(is_free(self.paths.worker_lock(view.binding_key)))
        environ = report["environ"]
        self.assertEqual(environ[MARK_VARIABLE], spawned.spawn_id)
        self.assertNotIn(TOKEN, json.dumps(report))
        for absent in ("HOME", "BAD", "TELEGRAM_BOT_TOKEN", "ODD"):
            self.assertNotIn(absent, environ)
        log = self.paths.worker_log(view.binding_key)
        self.assertEqual(log.read_text(), "up\n")
        self.assertEqual(log.stat().st_mode & 0o777, 0o600)

    @deferred
    async def test_stop_of_the_obedient(self) -> None:
        """A worker that ends on SIGTERM is stopped quickly."""
        await self.started()
        [view] = self.supervisor.views()
        stopped = await self.supervisor.stop(view.spec_id, "operator")
        self.assertEqual(stopped.state, "stopped")
        self.assertTrue(is_free(self.paths.worker_lock(view.binding_key)))
        self.assertIsNone(self.specs.live_spawn(view.spec_id))

    @deferred
    async def test_stop_of_the_deaf(self) -> None:
        """A worker and its child in another session, both deaf to SIGTERM, end; bystanders live."""
        self.mode = "deaf"
        bystander = subprocess.Popen(["sleep", "60"])
        self.addCleanup(bystander.wait)
        self.addCleanup(bystander.kill)
        report = await self.started()
        [view] = self.supervisor.views()
        child, worker = birth_of(report["child"]), birth_of(report["pid"])
        before = time.monotonic()
        stopped = await self.supervisor.stop(view.spec_id, "operator")
        self.assertEqual(stopped.state, "stopped")
        self.assertFalse(is_alive(child) or is_alive(worker))
        self.assertLess(time.monotonic() - before, 10)
        self.assertIsNone(bystander.poll())

    @deferred
    async def test_the_child_of_a_killed_worker(self) -> None:
        """What a killed worker left is found by its mark and ended, and only then it is stopped."""
        self.mode = "deaf"
        report = await self.started()
        [view] = self.supervisor.views()
        child = birth_of(report["child"])
        os.kill(report["pid"], signal.SIGKILL)
        await self.until(lambda: self.state() == "backoff")
        self.assertTrue(is_alive(child))
        await self.supervisor.stop(view.spec_id, "operator")
        self.assertFalse(is_alive(child))

    @deferred
    async def test_adoption(self) -> None:
        """A new supervisor adopts the process, sees its end, and starts it again."""
        report = await self.started()
        [view] = self.supervisor.views()
        await self.supervisor.stopService()
        self.registry.observers.clear()
        self.supervisor = self.make()
        self.supervisor.startService()
        self.assertEqual(self.state(), "adopting")
        spawned = self.specs.live_spawn(view.spec_id)
        assert spawned is not None
        worker = birth_of(report["pid"])
        self.registry.register(
            FakeFollower(
                spec_id=view.spec_id,
                spawn_id=spawned.spawn_id,
                birth=worker,
                state={"piReady": True},
            )
        )
        self.assertEqual(self.state(), "running")
        self.report.unlink()
        os.kill(worker.pid, signal.SIGKILL)
        await self.until(self.report.exists)
        self.assertEqual(self.state(), "spawning")
        self.assertNotEqual(json.loads(self.report.read_text())["pid"], worker.pid)


class ReachTests(TestCase):
    """Whom signals reach."""

    def setUp(self) -> None:
        self.base = Path(self.mktemp()).absolute()
        self.workers = Paths(self.base).workers
        Paths(self.base).prepare()

    def sleeper(self, mark: str, lock: FileLock | None = None) -> ProcessBirth:
        """A marked process, perhaps with a lock."""
        process = subprocess.Popen(
            ["sleep", "60"],
            env={**os.environ, MARK_VARIABLE: mark},
            pass_fds=[lock.fd] if lock is not None else [],
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        while MARK_VARIABLE.encode() not in Path(f"/proc/{process.pid}/environ").read_bytes():
            time.sleep(0.005)
        return birth_of(process.pid)

    def wait_for_end(self, birth: ProcessBirth) -> None:
        """Until it is gone."""
        until = time.monotonic() + 10
        while is_alive(birth) and time.monotonic() < until:
            time.sleep(0.005)
        self.assertFalse(is_alive(birth))

    def lock(self, binding: str) -> FileLock:
        """A binding's lock."""
        lock = FileLock.try_acquire(self.workers / f"{binding}.lock")
        assert lock is not None
        self.addCleanup(lock.release)
        return lock

    def test_marks_and_locks(self) -> None:
        """Carriers of the mark end, with our lock too; holders of another lock and owners live."""
        mark = f"reach-{os.getpid()}"
        own, other = self.lock(managed_binding("a")), self.lock(managed_binding("b"))
        plain, holder = self.sleeper(mark), self.sleeper(mark, own)
        foreign, owner = self.sleeper(mark, other), self.sleeper(mark)
        reach = Reach(mark, self.workers / "spec-a.lock", lambda: [owner])
        self.assertEqual(reach.signal_rest(signal.SIGKILL), 2)
        self.wait_for_end(plain)
        self.wait_for_end(holder)
        self.assertTrue(is_alive(foreign) and is_alive(owner))

    def test_below_a_protected_process(self) -> None:
        """What a protected process started is as safe as itself."""
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import subprocess, time; c = subprocess.Popen(['sleep', '60']);"
                " print(c.pid, flush=True); time.sleep(60)",
            ],
            env={**os.environ, MARK_VARIABLE: "below"},
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        child = birth_of(int(process.stdout.readline()))
        self.addCleanup(os.kill, child.pid, signal.SIGKILL)
        reach = Reach("below", self.workers / "spec-a.lock", lambda: [birth_of(process.pid)])
        self.assertEqual(reach.signal_rest(signal.SIGKILL), 0)
        self.assertTrue(is_alive(child))

    def test_never_this_process(self) -> None:
        """Even when it is named as the worker, this process is not signalled; its children are safe."""
        child = self.sleeper("child")
        reach = Reach(None, self.workers / "spec-a.lock", list, [birth_of(os.getpid())])
        reach.signal_worker(birth_of(os.getpid()), signal.SIGKILL)
        self.assertEqual(reach.signal_rest(signal.SIGKILL), 0)
        self.assertTrue(is_alive(child))

    def test_reused_pid(self) -> None:
        """A listed pid that another process has now is left alone."""
        bystander = self.sleeper("other")
        stale = ProcessBirth(bystander.pid, f"{bystander.pid}:start:1")
        reach = Reach(None, self.workers / "spec-a.lock", list, [stale])
        reach.signal_worker(stale, signal.SIGKILL)
        self.assertEqual(reach.signal_rest(signal.SIGKILL), 0)
        self.assertTrue(is_alive(bystander))
