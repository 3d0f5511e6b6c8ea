"""The stop ladder."""

from __future__ import annotations

import signal
from typing import Any

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import PiGone
from pitelegram.ids import ProcessBirth
from pitelegram.kernel.observers import OneShot
from pitelegram.pi.stopping import StopLadder

TERM, KILL = signal.SIGTERM, signal.SIGKILL


class FakeProcesses:
    """A process table.

    @ivar table: living processes with the pid of their parent.
    @ivar stubborn: pids that survive SIGTERM.
    """

    def __init__(self) -> None:
        self.table: dict[ProcessBirth, int] = {}
        self.marks: dict[ProcessBirth, str] = {}
        self.stubborn: set[int] = set()
        self.immortal: set[int] = set()
        self.sent: list[tuple[int, int]] = []

    def add(self, pid: int, parent: int, mark: str | None = None) -> ProcessBirth:
        """A process appears."""
        process = ProcessBirth(pid, f"{pid}:start:{len(self.table)}")
        self.table[process] = parent
        if mark is not None:
            self.marks[process] = mark
        return process

    def descendants(self, pid: int) -> list[ProcessBirth]:
        """Children and theirs."""
        below = [process for process, parent in self.table.items() if parent == pid]
        return below + [deep for process in below for deep in self.descendants(process.pid)]

    def marked(self, mark: str) -> list[ProcessBirth]:
        """Who carries the mark."""
        return [process for process in self.table if self.marks.get(process) == mark]

    def signal(self, process: ProcessBirth, number: int) -> bool:
        """Processes end by their signal, mostly."""
        self.sent.append((process.pid, number))
        pid = process.pid
        if pid not in self.immortal and (number == KILL or pid not in self.stubborn):
            self.table.pop(process, None)
        return True

    def alive(self, process: ProcessBirth) -> bool:
        """Whether it is in the table."""
        return process in self.table

    def orphan(self, parent: int) -> None:
        """The children of C{parent} get another parent."""
        self.table = {p: (1 if q == parent else q) for p, q in self.table.items()}


class FakePi:
    """A Pi that ends at a chosen step."""

    def __init__(self, processes: FakeProcesses, ends_at: Any) -> None:
        self.pid: int | None = 10
        self.exited: OneShot[str] = OneShot()
        self.steps: list[Any] = []
        self._ends_at = ends_at
        self._processes = processes

    def close_stdin(self) -> None:
        """Its input is closed."""
        self.step("close")

    def signal(self, number: int) -> None:
        """It is signalled."""
        self.step(int(number))

    def step(self, what: Any) -> None:
        """Remember, and end where it was told to."""
        self.steps.append(what)
        if what == self._ends_at or (isinstance(self._ends_at, int) and what == KILL):
            self._processes.orphan(10)
            self.exited.fire(f"ended at {what}")


class StopLadderTests(SynchronousTestCase):
    """L{StopLadder}."""

    def setUp(self) -> None:
        """A Pi with a tool, and a background job that lost its parent."""
        self.clock = Clock()
        self.processes = FakeProcesses()
        self.tool = self.processes.add(20, 10)
        self.job = self.processes.add(30, 1, "spawn-1")
        self.foreign = self.processes.add(40, 1, "spawn-2")
        self.quiet: Deferred[object] = succeed(None)
        self.aborted: list[ProcessBirth] = []

    def stop(self, ends_at: Any, spare: Any = lambda _: False, until: float = 60) -> Any:
        """Run the ladder with a grace of 20 s."""
        self.pi = FakePi(self.processes, ends_at)
        ladder = StopLadder(
            self.pi,
            lambda: self.quiet,
            self.clock,
            self.processes,
            "spawn-1",
            spare,
            lambda: self.aborted,
        )
        words = Deferred.fromCoroutine(ladder.run(20.0))
        self.clock.pump([0.1] * int(until * 10))
        return words

    def test_by_its_input(self) -> None:
        """A Pi that ends by its closed input gets no signal; what it left behind does."""
        words = self.successResultOf(self.stop("close"))
        self.assertEqual((words, self.pi.steps), ("ended at close", ["close"]))
        self.assertEqual(set(self.processes.sent), {(20, TERM), (30, TERM)})
        self.assertEqual(list(self.processes.table), [self.foreign])
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_every_step(self) -> None:
        """A Pi that nothing moves is terminated twice and then killed, within the grace."""
        words = self.successResultOf(self.stop(int(KILL), until=21))
        self.assertEqual(self.pi.steps, ["close", TERM, TERM, KILL])
        self.assertIn("ended at", words)

    def test_quiet_that_hangs(self) -> None:
        """An abort that is not answered costs its share only."""
        self.quiet = Deferred()
        self.assertNoResult(self.stop("close", until=4.5))
        self.clock.pump([0.1] * 20)
        self.assertEqual(self.pi.steps, ["close"])
        self.quiet.errback(PiGone("late"))
        self.assertEqual(self.flushLoggedErrors(), [])

    def test_quiet_that_fails(self) -> None:
        """An expected failure of the abort is nothing; a fault is logged, and the stop goes on."""
        self.quiet = fail(PiGone("gone"))
        self.successResultOf(self.stop("close"))
        self.assertEqual(self.flushLoggedErrors(), [])
        self.quiet = fail(KeyError("fault"))
        self.successResultOf(self.stop("close"))
        self.assertEqual(len(self.flushLoggedErrors(KeyError)), 1)

    def test_orphans_of_an_abort(self) -> None:
        """What ran below Pi when it was aborted is ended, parent and mark or not."""
        self.aborted = [self.processes.add(50, 1)]
        self.successResultOf(self.stop("close"))
        self.assertIn((50, TERM), self.processes.sent)
        self.assertEqual(list(self.processes.table), [self.foreign])

    def test_stubborn_children(self) -> None:
        """What survives SIGTERM is killed."""
        self.processes.stubborn = {20}
        self.successResultOf(self.stop("close"))
        self.assertIn((20, KILL), self.processes.sent)
        self.assertEqual(list(self.processes.table), [self.foreign])

    def test_children_that_do_not_end(self) -> None:
        """What does not even die is named in the answer."""
        self.processes.immortal = {20}
        words = self.successResultOf(self.stop("close"))
        self.assertEqual(words, "ended at close; 1 of its processes would not end")

    def test_spared(self) -> None:
        """A process that holds somebody's lock is left alone."""
        self.successResultOf(self.stop("close", spare=lambda process: process.pid == 20))
        self.assertEqual(self.processes.sent, [(30, TERM)])
        self.assertIn(self.tool, self.processes.table)

    def test_pid_of_a_dead_child_is_used_again(self) -> None:
        """The children of a stranger that got a noted child's pid are no business of ours."""
        pi_ends = FakePi.step

        def reused(pi: FakePi, what: Any) -> None:
            del self.processes.table[self.tool]
            self.processes.add(20, 1)
            self.processes.add(21, 20)
            pi_ends(pi, what)

        self.patch(FakePi, "step", reused)
        self.successResultOf(self.stop("close"))
        self.assertEqual(self.processes.sent, [(30, TERM)])

    def test_cancelled(self) -> None:
        """A cancelled stop ends there."""
        words = self.stop("never", until=1)
        words.cancel()
        self.failureResultOf(words)
        self.assertEqual(self.clock.getDelayedCalls(), [])
