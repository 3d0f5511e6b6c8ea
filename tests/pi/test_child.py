"""The Pi process as its protocol sees it."""

from __future__ import annotations

import signal

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import PiGone, PiRefused
from pitelegram.pi.child import DRAIN_MOST, DRAIN_SECONDS, STDERR_TAIL, PiChild
from pitelegram.testing.spawner import FakeProcess, FakeSpawner


class PiChildTests(SynchronousTestCase):
    """L{PiChild}."""

    def setUp(self) -> None:
        """A running child."""
        self.clock = Clock()
        self.output: list[bytes] = []
        self.child = PiChild(self.clock, self.output.append, lambda s: s.replace("secret", "…"))
        self.process: FakeProcess = FakeSpawner(77).spawnProcess(self.child, "pi", ["pi"])

    def ended(self) -> list[str]:
        """What C{ended} has fired with."""
        heard: list[str] = []
        self.child.ended.when().addCallback(heard.append)
        return heard

    def test_output(self) -> None:
        """Every chunk of standard output is passed on."""
        self.process.out(b"a")
        self.process.out(b"b")
        self.assertEqual((self.output, self.child.pid), ([b"a", b"b"], 77))

    def test_stderr_is_a_redacted_tail(self) -> None:
        """Only the last of standard error is kept, without secrets."""
        self.process.err(b"x" * 100_000)
        self.process.err("secret \u00fc\n".encode() + b"\xff")
        tail = self.child.stderr_tail
        self.assertTrue(tail.endswith("… \u00fc\n\ufffd"))
        self.assertLessEqual(len(tail), STDERR_TAIL)

    def test_exit_then_end(self) -> None:
        """The exit is told at once, the end when the output was read."""
        self.process.exit(1, end=False)
        self.assertTrue(self.child.exited.fired)
        self.assertEqual(self.child.exit_code, 1)
        self.process.out(b"last")
        self.assertEqual(self.ended(), [])
        self.process.end()
        self.assertEqual((self.ended(), self.output), (["exit code 1"], [b"last"]))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_streams_held_by_others(self) -> None:
        """When somebody else keeps the streams open they are given up after a short silence."""
        self.process.exit(None, signal.SIGKILL, end=False)
        self.clock.advance(DRAIN_SECONDS * 0.9)
        self.process.out(b"more")
        self.clock.advance(DRAIN_SECONDS * 0.9)
        self.assertFalse(self.process.lost)
        self.clock.advance(DRAIN_SECONDS)
        self.assertTrue(self.process.lost)
        self.assertEqual(self.ended(), ["signal 9 (SIGKILL)"])

    def test_streams_that_never_fall_silent(self) -> None:
        """Whoever goes on writing in Pi's place does not keep its end from being seen."""
        self.process.exit(0, end=False)
        for _ in range(int(DRAIN_MOST / DRAIN_SECONDS * 2)):
            self.process.out(b"more")
            self.assertFalse(self.process.lost)
            self.clock.advance(DRAIN_SECONDS / 2)
        self.assertTrue(self.process.lost)
        self.assertEqual(self.ended(), ["exit code 0"])

    def test_write(self) -> None:
        """What is written reaches the process in order."""
        self.child.write(b"a\n")
        self.child.write(b"b\n")
        self.assertEqual(self.process.written, b"a\nb\n")

    def test_full_pipe(self) -> None:
        """While the pipe is full bytes wait; too many are refused; then they go in order."""
        child = PiChild(self.clock, self.output.append, str, pending_limit=10)
        process = FakeSpawner().spawnProcess(child, "pi", ["pi"])
        child.pauseProducing()
        child.write(b"12345")
        child.write(b"67890")
        self.assertRaises(PiRefused, child.write, b"x")
        self.assertEqual(process.written, b"")
        child.resumeProducing()
        child.write(b"x")
        self.assertEqual(process.written, b"1234567890x")

    def test_write_after_the_end(self) -> None:
        """Nothing is written to a Pi that has ended or whose input is closed."""
        self.child.close_stdin()
        self.child.close_stdin()
        self.assertTrue(self.process.stdin_closed)
        self.assertIsNone(self.process.producer)
        self.assertRaises(PiGone, self.child.write, b"x")
        self.process.exit(0)
        self.assertRaises(PiGone, self.child.write, b"x")
        self.assertEqual(self.process.written, b"")

    def test_signal(self) -> None:
        """A signal goes to the process while it is there."""
        self.child.signal(signal.SIGTERM)
        self.process.exit(None, signal.SIGTERM)
        self.child.signal(signal.SIGKILL)
        self.assertEqual(self.process.signals, [signal.SIGTERM])

    def test_never_spawned(self) -> None:
        """Before there is a process nothing can be written, and a signal does nothing."""
        child = PiChild(self.clock, self.output.append, str)
        self.assertRaises(PiGone, child.write, b"x")
        self.assertIsNone(child.pid)
        child.close_stdin()
