"""One program: its streams, its limit, and how it is ended; under a clock, without processes."""

import os
import re
import signal
from pathlib import Path

from twisted.internet.defer import CancelledError
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.ids import ProcessBirth
from pitelegram.pi import launcher
from pitelegram.testing.spawner import FakeSpawner
from pitelegram.worker.ending import KILL_SECONDS, Processes
from pitelegram.worker.outputs import ERROR_CHARS, Head, bounded
from pitelegram.worker.programlife import LIFE
from pitelegram.worker.programs import WRITES_MOST, Starter


class Reactor(FakeSpawner, Clock):
    """Processes and time that a test moves."""

    def __init__(self):
        FakeSpawner.__init__(self)
        Clock.__init__(self)


class FakeProcesses(Processes):
    """A table of processes.

    @ivar living: births.
    @ivar below: those in the session of the program or below it.
    @ivar deaf: those that only SIGKILL ends.
    @ivar signals: (pid, number) in their order.
    """

    def __init__(self, reactor):
        self.living = set()
        self.below = []
        self.deaf = set()
        self.signals = []
        self._reactor = reactor

    def birth(self, pid):
        """See the real ones."""
        born = ProcessBirth(pid, f"{pid}:start:1")
        self.living.add(born)
        return born

    def led(self, leader):
        """See the real ones."""
        return [process for process in [leader, *self.below] if process in self.living]

    def descendants(self, process):
        """See the real ones."""
        return []

    def alive(self, process):
        """See the real ones."""
        return process in self.living

    def signal(self, process, number):
        """See the real ones."""
        self.signals.append((process.pid, number))
        if number == signal.SIGTERM and process in self.deaf:
            return
        self.living.discard(process)
        for fake in self._reactor.processes:
            if fake.pid == process.pid:
                fake.exit(None, number, end=not self.below)


class ProgramTests(SynchronousTestCase):
    """A program and its end."""

    def setUp(self):
        """A starter with nothing running."""
        self.reactor = Reactor()
        self.processes = FakeProcesses(self.reactor)
        environment = {"PATH": os.environ["PATH"], "HOME": "/home/o"}
        self.starter = Starter(self.reactor, "/", environment, self.processes)

    def run_it(self, *words, stdin=b"", keep=100, seconds=None):
        """Start a program; return its process and its result."""
        result = self.starter.run(words or ("cat",), stdin, keep, seconds)
        return self.reactor.processes[-1], result

    def test_started(self):
        """It is run by the launcher in the directory, with exactly its environment, and fed."""
        process, _ = self.run_it("cat", "a b", "$(x)", stdin=b"words")
        self.assertEqual(process.arguments[3], launcher.__file__)
        self.assertEqual(process.arguments[4:6], ["/", ""])
        self.assertTrue(os.path.isabs(process.arguments[6]))
        self.assertEqual(process.arguments[7:], ["a b", "$(x)"])
        self.assertEqual(set(process.options["env"]), {"PATH", "HOME"})
        self.assertEqual((process.written, process.stdin_closed), (b"words", True))

    def test_output(self):
        """Standard output is the result; standard error is not."""
        process, result = self.run_it()
        process.out(b"one ")
        process.err(b"noise")
        process.out(b"two\n")
        process.exit()
        ended = self.successResultOf(result)
        self.assertEqual((ended.ok, ended.out, ended.missing), (True, b"one two", 0))

    def test_bytes(self):
        """What goes into another program is kept byte by byte."""
        process, result = self.run_it(keep=None)
        process.out(b"\xff\x00\n")
        process.exit()
        self.assertEqual(self.successResultOf(result).out, b"\xff\x00\n")

    def test_failure(self):
        """The exit is told in words, with the beginning of standard error."""
        for code, number, words in (
            (3, None, "exit code 3"),
            (None, 11, "signal 11 (SIGSEGV)"),
        ):
            process, result = self.run_it()
            process.err(b"e" * 5000)
            process.exit(code, number)
            ended = self.successResultOf(result)
            self.assertEqual((ended.ok, ended.words), (False, words))
            self.assertEqual(ended.errors, "e" * ERROR_CHARS + "… [truncated 1000 chars]")

    def test_not_started(self):
        """What the launcher cannot start, the system refuses, or nobody finds, is told as such."""
        process, result = self.run_it()
        process.err(b"cannot start: Exec format error\n")
        process.exit(launcher.FAILED)
        self.assertEqual(self.successResultOf(result).words, "cannot start: Exec format error")
        self.reactor.error = OSError(11, "whatever")
        ended = self.successResultOf(self.starter.run(["cat"], b"", 1, None))
        self.assertEqual(ended.words, f"cannot be started: {os.strerror(11)}")
        for name in ("no-such-program", "/no/such/program", "/etc"):
            ended = self.successResultOf(self.starter.run([name], b"", 1, None))
            self.assertEqual((ended.ok, ended.words), (False, "was not found"))
        gone = Starter(self.reactor, "/no/such/place", {"PATH": os.environ["PATH"]}, self.processes)
        ended = self.successResultOf(gone.run(["cat"], b"", 1, None))
        self.assertIn("directory is gone", ended.words)

    def test_own_exit_127(self):
        """A program that ends with 127 itself is not called unstartable."""
        process, result = self.run_it()
        process.exit(127)
        self.assertEqual(self.successResultOf(result).words, "exit code 127")

    def test_relative_path_entries(self):
        """A program is never found in the project by a relative entry of the path."""
        directory = Path(self.mktemp()).absolute()
        directory.mkdir()
        (directory / "evil").write_text("#!/bin/sh\n")
        (directory / "evil").chmod(0o755)
        here = os.path.relpath(directory)
        starter = Starter(self.reactor, str(directory), {"PATH": f"{here}:.:"}, self.processes)
        self.assertFalse(self.successResultOf(starter.run(["evil"], b"", 1, None)).ok)

    def test_in_time(self):
        """A program that ends in time leaves no timer behind."""
        process, result = self.run_it(seconds=120)
        self.reactor.advance(119)
        process.exit()
        self.assertTrue(self.successResultOf(result).ok)
        self.assertEqual(self.reactor.getDelayedCalls(), [])

    def test_terminated(self):
        """At its limit it is terminated; one that listens is not killed."""
        process, result = self.run_it(seconds=120)
        self.reactor.advance(119.9)
        self.assertEqual(self.processes.signals, [])
        self.reactor.advance(0.1)
        self.assertEqual(self.processes.signals, [(5001, signal.SIGTERM)])
        ended = self.successResultOf(result)
        self.assertEqual((ended.ok, ended.words), (False, "took longer than 120 s"))
        self.assertEqual(self.reactor.getDelayedCalls(), [])

    def test_killed(self):
        """One that does not listen is killed 5 s later, and only then."""
        _, result = self.run_it(seconds=1)
        self.processes.deaf = set(self.processes.living)
        self.reactor.advance(1)
        self.reactor.pump([0.1] * int((KILL_SECONDS - 0.2) * 10))
        self.assertEqual(self.processes.signals, [(5001, signal.SIGTERM)])
        self.assertNoResult(result)
        self.reactor.pump([0.1] * 5)
        self.assertEqual(self.processes.signals[-1], (5001, signal.SIGKILL))
        self.assertEqual(self.successResultOf(result).words, "took longer than 1 s")

    def test_grandchildren(self):
        """All that it started is signalled with it, and waited for."""
        process, result = self.run_it(seconds=1)
        child = ProcessBirth(77, "77:start:2")
        self.processes.below = [child]
        self.processes.living.add(child)
        self.processes.deaf.add(child)
        self.reactor.advance(1)
        self.assertEqual({pid for pid, _ in self.processes.signals}, {5001, 77})
        self.reactor.pump([0.1] * 10)
        self.assertNoResult(result)
        self.reactor.pump([0.1] * 50)
        self.assertEqual(self.processes.signals[-1], (77, signal.SIGKILL))
        self.assertFalse(self.successResultOf(result).ok)
        self.assertTrue(process.lost)

    def test_starts_faster_than_it_is_killed(self):
        """Processes that start others until they are stopped are all ended."""
        _, result = self.run_it(seconds=1)
        numbers = iter(range(100, 10_000))
        stopped = set()
        real = self.processes.signal

        def start():
            child = ProcessBirth(next(numbers), "x:start:3")
            self.processes.below.append(child)
            self.processes.living.add(child)
            self.processes.deaf.add(child)

        def bomb(process, number):
            if number == signal.SIGSTOP:
                stopped.add(process)
                if len(stopped) < 20:
                    start()  # by another one that was not seen yet
                return
            if number == signal.SIGKILL and process not in stopped:
                start()
                start()
            real(process, number)

        self.processes.signal = bomb
        start()
        self.reactor.advance(1)
        self.reactor.pump([0.1] * 110)
        self.assertEqual(self.successResultOf(result).words, "took longer than 1 s")
        self.assertEqual([each for each in self.processes.below if self.processes.alive(each)], [])

    def test_unkillable(self):
        """One that not even SIGKILL ends holds nobody up for ever."""
        _, result = self.run_it(seconds=1)
        self.processes.signal = lambda process, number: None
        self.reactor.advance(1)
        self.reactor.pump([0.1] * 110)
        self.assertIn("would not end", self.successResultOf(result).words)
        self.assertEqual(self.reactor.getDelayedCalls(), [])
        self.reactor.processes[-1].exit()
        self.assertEqual(self.reactor.getDelayedCalls(), [])

    def test_cancelled(self):
        """Cancelling gives the caller his answer at once and ends the program."""
        _, result = self.run_it()
        result.cancel()
        self.failureResultOf(result, CancelledError)
        self.assertEqual(self.processes.signals, [(5001, signal.SIGTERM)])

    def test_cancelled_in_its_end(self):
        """Cancelling one that is being ended, or has ended, changes nothing."""
        process, result = self.run_it(seconds=1)
        self.processes.deaf = set(self.processes.living)
        self.reactor.advance(1)
        result.cancel()
        self.failureResultOf(result, CancelledError)
        self.reactor.pump([0.1] * 60)
        self.assertEqual([number for _, number in self.processes.signals], [15, 9])

    def test_stop(self):
        """The starter ends all programs and tells when nothing is left."""
        _, first = self.run_it()
        _, second = self.run_it()
        self.processes.deaf = set(self.processes.living)
        stopped = self.starter.stop()
        self.assertNoResult(stopped)
        self.reactor.pump([0.1] * 60)
        self.successResultOf(stopped)
        self.assertEqual(self.successResultOf(first).words, "was stopped")
        self.assertEqual(self.successResultOf(second).words, "was stopped")
        self.successResultOf(self.starter.stop())

    def test_flood(self):
        """A program that writes without end is ended, and its flood is not kept."""
        process, result = self.run_it(keep=None)
        chunk = b"y" * (8 * 1024 * 1024)
        for _ in range(WRITES_MOST // len(chunk)):
            process.out(chunk)
        self.assertEqual(self.processes.signals, [])
        process.out(b"y")
        self.assertEqual(self.processes.signals, [(5001, signal.SIGTERM)])
        self.assertEqual(self.successResultOf(result).words, "wrote more than 64 MB")

    def test_held_streams(self):
        """Somebody else who holds the streams open is waited for half a second, no longer."""
        process, result = self.run_it()
        process.out(b"done")
        process.exit(end=False)
        self.reactor.pump([0.05] * 9)
        self.assertNoResult(result)
        self.reactor.pump([0.05] * 2)
        self.assertEqual(self.successResultOf(result).out, b"done")

    def test_late_streams(self):
        """As long as something new comes the streams are read, up to a bound."""
        process, result = self.run_it(keep=None)
        process.exit(end=False)
        for _ in range(98):
            process.out(b"x")
            self.reactor.advance(0.05)
        self.assertNoResult(result)
        self.reactor.pump([0.05] * 3)
        self.assertEqual(len(self.successResultOf(result).out), 98)


class LifeTests(SynchronousTestCase):
    """The states of a program."""

    def test_page(self):
        """The page in the documentation has the same steps."""
        page = Path(__file__).parents[2] / "docs" / "machines" / "program.md"
        row = re.compile(r"^\| `([\w-]+)` \| `([\w-]+)` \| `([\w-]+)` \|", re.MULTILINE)
        steps = {(state, event): to for state, event, to in row.findall(page.read_text("utf-8"))}
        self.assertEqual(steps, dict(LIFE))


class HeadTests(SynchronousTestCase):
    """Bounded texts."""

    def test_bounds(self):
        """The first characters are kept, the others counted, spaces at the end not at all."""
        table = (
            ([b"abc"], ("abc", 0)),
            ([b"abcde", b"fg"], ("abcde", 2)),
            ([b"abcde\n"], ("abcde", 0)),
            ([b"abcde\n", b"f\n"], ("abcde", 2)),
            (["äöüß€".encode()], ("äöüß€", 0)),
            (["äöüß€".encode()[:3], "äöüß€".encode()[3:], b"x"], ("äöüß€", 1)),
            ([b"a\xff"], ("a\ufffd", 0)),
            ([b"a\xe2"], ("a\ufffd", 0)),
            ([], ("", 0)),
            ([b" \n"] * 100, ("", 0)),
        )
        for chunks, expected in table:
            head = Head(5)
            for chunk in chunks:
                head.add(chunk)
            self.assertEqual(head.close(), expected, chunks)

    def test_mark(self):
        """A longer text says how many characters are missing (fault class 94)."""
        self.assertEqual(bounded("x" * 12_000), "x" * 12_000)
        self.assertEqual(bounded("x" * 12_345), "x" * 12_000 + "… [truncated 345 chars]")
