"""The transaction guard: contention, abandonment, damage, and processes killed at every step."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import UnsafeFile
from pitelegram.kernel.guard import GuardBusy, GuardDamaged, TransactionGuard

DEAD = 2**22 + 11

COUNT = """
import sys
from pathlib import Path
from pitelegram.kernel.guard import TransactionGuard
guard, counter = TransactionGuard(Path(sys.argv[1])), Path(sys.argv[2])
def add():
    counter.write_text(str(int(counter.read_text()) + 1))
for _ in range(int(sys.argv[3])):
    guard.run_blocking(add, attempts=4000)
"""

KILLED = """
import os, signal, sys
from pathlib import Path
from pitelegram.kernel import guard as module
guard = module.TransactionGuard(Path(sys.argv[1]))
calls, last = [], int(sys.argv[2])
rename = os.rename
def counted(*args):
    calls.append("before")
    if len(calls) == last:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(*args)
    calls.append("after")
    if len(calls) == last:
        os.kill(os.getpid(), signal.SIGKILL)
os.rename = counted
guard.run_blocking(lambda: None)
"""


class GuardCase(SynchronousTestCase):
    """A guard in a fresh directory."""

    def setUp(self) -> None:
        self.directory = Path(self.mktemp()).absolute()
        self.directory.mkdir()
        self.path = self.directory / "owners.json.transaction"
        self.guard = TransactionGuard(self.path)

    def occupy(self, pid: int, at: float | None = None, name: str = "owner.{}.json") -> Path:
        """Another program's guard stands there."""
        uuid = "01234567-89ab-4cde-8f01-23456789abcd"
        self.path.mkdir(mode=0o700)
        inner = self.path / name.format(uuid)
        acquired = int((time.time() if at is None else at) * 1000)
        inner.write_text(json.dumps({"pid": pid, "acquiredAtMs": acquired, "generation": uuid}))
        return inner

    def enters(self) -> bool:
        """Whether one attempt gets in."""
        try:
            return self.guard.run_blocking(lambda: True, attempts=1)
        except (GuardBusy, GuardDamaged):
            return False


class GuardTests(GuardCase):
    """One process."""

    def test_shape(self) -> None:
        """Inside, the guard is a private directory with one private file that names us."""

        def look() -> None:
            [inner] = list(self.path.iterdir())
            payload = json.loads(inner.read_text())
            self.assertEqual(sorted(payload), ["acquiredAtMs", "generation", "pid"])
            self.assertEqual(inner.name, f"owner.{payload['generation']}.json")
            self.assertEqual(payload["pid"], os.getpid())
            self.assertEqual(self.path.stat().st_mode & 0o777, 0o700)
            self.assertEqual(inner.stat().st_mode & 0o777, 0o600)

        self.guard.run_blocking(look)
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_result_and_error(self) -> None:
        """The result comes back; an error passes through and the guard is gone."""
        self.assertEqual(self.guard.run_blocking(lambda: 5), 5)
        self.assertRaises(ZeroDivisionError, self.guard.run_blocking, lambda: 1 / 0)
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_not_reentrant(self) -> None:
        """A second entry while inside is contention, whoever asks."""
        other = TransactionGuard(self.path)
        self.guard.run_blocking(
            lambda: self.assertRaises(GuardBusy, other.run_blocking, lambda: None, attempts=2)
        )

    def test_waits_without_blocking(self) -> None:
        """Contention is waited for by the clock: 80 attempts, 25 ms apart."""
        inner = self.occupy(os.getppid())
        clock, done = Clock(), []
        self.guard.run(clock, lambda: done.append(1))
        clock.pump([0.025] * 10)
        self.assertEqual(done, [])
        inner.unlink()
        self.path.rmdir()
        clock.advance(0.025)
        self.assertEqual(done, [1])
        inner = self.occupy(os.getppid())
        waiting = self.guard.run(clock, lambda: None)
        clock.pump([0.025] * 80)
        self.failureResultOf(waiting, GuardBusy)
        self.assertTrue(inner.exists())
        self.assertEqual(clock.getDelayedCalls(), [])

    def test_abandoned(self) -> None:
        """A dead pid, a time before this boot, and a younger process under its pid free the guard."""
        parent = os.getppid()
        started = psutil.Process(parent).create_time()
        for pid, at in (
            (DEAD, None),
            (parent, psutil.boot_time() - 60),
            (parent, started - 3),
        ):
            self.occupy(pid, at)
            self.assertTrue(self.enters(), (pid, at))
            self.assertEqual(list(self.directory.iterdir()), [])

    def test_age_alone_frees_nothing(self) -> None:
        """A live owner keeps its guard however long it takes."""
        parent = os.getppid()
        inner = self.occupy(parent, psutil.Process(parent).create_time() - 1)
        self.assertFalse(self.enters())
        self.assertTrue(inner.exists())

    def test_crashed_reclaimer(self) -> None:
        """A guard whose reclaimer died is reclaimed; one whose reclaimer lives is not."""
        self.occupy(DEAD, name=f"owner.reclaim.{DEAD + 1}.{{}}.json")
        self.assertTrue(self.enters())
        inner = self.occupy(DEAD, name=f"owner.reclaim.{os.getppid()}.{{}}.json")
        self.assertFalse(self.enters())
        self.assertTrue(inner.exists())

    def test_damage_fails_closed(self) -> None:
        """What is no guard is left alone, and the error says so."""
        for make in (
            lambda: self.path.write_text("x"),
            lambda: self.occupy(DEAD).write_text("{"),
            lambda: self.occupy(DEAD).write_text('{"pid": "1"}'),
            lambda: self.occupy(DEAD, name="owner.{}.txt"),
            lambda: (self.occupy(DEAD), (self.path / "more").write_text("")),
            lambda: self.path.symlink_to("/nowhere"),
        ):
            make()
            self.assertRaises(GuardDamaged, self.guard.run_blocking, lambda: None, attempts=2)
            self.assertTrue(os.path.lexists(self.path))
            if self.path.is_dir():
                for inner in self.path.iterdir():
                    inner.unlink()
                self.path.rmdir()
            else:
                self.path.unlink()

    def test_replaced_inside(self) -> None:
        """A guard that is not ours any more when we leave is left alone."""

        def replace() -> None:
            [inner] = list(self.path.iterdir())
            inner.unlink()
            self.path.rmdir()
            self.occupy(os.getppid())

        self.guard.run_blocking(replace)
        self.assertEqual(len(list(self.path.iterdir())), 1)

    def test_leftovers(self) -> None:
        """Old leftovers of killed processes are swept; young and foreign entries stay."""
        for name, age in (
            ("staged.x", 100),
            ("released.y", 100),
            ("stale.1.z", 100),
            ("staged.n", 0),
        ):
            leftover = self.directory / f"owners.json.transaction.{name}"
            leftover.mkdir()
            os.utime(leftover, (time.time() - age, time.time() - age))
        (self.directory / "owners.json.other").mkdir()
        self.assertTrue(self.enters())
        self.assertEqual(
            sorted(entry.name for entry in self.directory.iterdir()),
            ["owners.json.other", "owners.json.transaction.staged.n"],
        )

    def test_no_directory(self) -> None:
        """A missing directory is a refusal without its path."""
        guard = TransactionGuard(self.directory / "absent" / "x.transaction")
        error = self.assertRaises(UnsafeFile, guard.run_blocking, lambda: None)
        self.assertNotIn("absent", str(error))


class ProcessTests(GuardCase):
    """Several processes."""

    def run_python(self, script: str, *arguments: object) -> subprocess.Popen:
        """Start one."""
        words = [sys.executable, "-c", script, *map(str, arguments)]
        return subprocess.Popen(words, stderr=subprocess.DEVNULL)

    def test_two_processes(self) -> None:
        """Two processes that add to one number lose nothing."""
        counter = self.directory / "number"
        counter.write_text("0")
        running = [self.run_python(COUNT, self.path, counter, 60) for _ in range(2)]
        self.assertEqual([process.wait(60) for process in running], [0, 0])
        self.assertEqual(counter.read_text(), "120")

    def test_killed_at_every_step(self) -> None:
        """kill -9 before and after each rename never blocks the next process."""
        for step in range(1, 5):
            process = self.run_python(KILLED, self.path, step)
            self.assertEqual(process.wait(30), -signal.SIGKILL, step)
            self.assertTrue(
                TransactionGuard(self.path).run_blocking(lambda: True, attempts=3), step
            )

    def test_killed_while_reclaiming(self) -> None:
        """kill -9 in the middle of taking an abandoned guard away does not block either."""
        for step in range(1, 5):
            self.occupy(DEAD)
            process = self.run_python(KILLED, self.path, step)
            self.assertEqual(process.wait(30), -signal.SIGKILL, step)
            self.assertTrue(
                TransactionGuard(self.path).run_blocking(lambda: True, attempts=3), step
            )
