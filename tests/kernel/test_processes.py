"""Real processes: whom a signal reaches, and when an end is seen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.interfaces import IReactorFDSet, IReactorTime
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase, TestCase
from zope.interface import directlyProvides

from pitelegram.ids import ProcessBirth
from pitelegram.kernel.birth import is_alive, own_birth, process_birth
from pitelegram.kernel.ending import ProcessEnd
from pitelegram.kernel.proctree import (
    MARK_VARIABLE,
    descendants,
    marked,
    protected_pids,
    signal_exact,
)

TREE = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"],
                         start_new_session=True)
print(child.pid, flush=True)
time.sleep(60)
"""


def sleeper(**environment: str) -> subprocess.Popen:
    """A process that sleeps."""
    return subprocess.Popen(["sleep", "60"], env={**os.environ, **environment})


def birth_of(process: subprocess.Popen) -> ProcessBirth:
    """Its birth."""
    birth = process_birth(process.pid)
    assert birth is not None
    return ProcessBirth(process.pid, birth)


class SignalTests(SynchronousTestCase):
    """L{signal_exact}, L{descendants} and L{marked}."""

    def start(self, **environment: str) -> subprocess.Popen:
        """A sleeper that is ended and reaped."""
        process = sleeper(**environment)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_exact(self) -> None:
        """The right birth is signalled; another birth under the same pid is not."""
        process = self.start()
        birth = birth_of(process)
        wrong = ProcessBirth(process.pid, f"{process.pid}:start:1")
        self.assertFalse(signal_exact(wrong, signal.SIGTERM))
        self.assertTrue(is_alive(birth))
        self.assertTrue(signal_exact(birth, signal.SIGTERM))
        self.assertEqual(process.wait(10), -signal.SIGTERM)
        self.assertFalse(signal_exact(birth, signal.SIGTERM))

    def test_zombie_is_dead(self) -> None:
        """A process that ended and was not collected counts as dead and gets nothing."""
        process = self.start()
        birth = birth_of(process)
        process.kill()
        until = time.monotonic() + 10
        while is_alive(birth) and time.monotonic() < until:
            time.sleep(0.01)
        self.assertFalse(is_alive(birth))
        self.assertFalse(signal_exact(birth, signal.SIGTERM))

    def test_never_ourselves(self) -> None:
        """This process and its ancestors are out of reach."""
        self.assertIn(os.getpid(), protected_pids())
        self.assertIn(os.getppid(), protected_pids())
        self.assertFalse(signal_exact(own_birth(), signal.SIGKILL))
        parent = process_birth(os.getppid())
        assert parent is not None
        self.assertFalse(signal_exact(ProcessBirth(os.getppid(), parent), signal.SIGKILL))

    def test_descendants(self) -> None:
        """Grandchildren in sessions of their own are found."""
        process = subprocess.Popen([sys.executable, "-c", TREE], stdout=subprocess.PIPE)
        assert process.stdout is not None
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        grandchild = int(process.stdout.readline())
        found = descendants(process.pid)
        self.assertIn(grandchild, [birth.pid for birth in found])
        for birth in found:
            signal_exact(birth, signal.SIGKILL)
        self.assertEqual(descendants(2**22 + 5), [])

    def test_marked(self) -> None:
        """Carriers of the whole mark are found, those of a longer or another one are not."""
        mark = f"mark-{os.getpid()}"
        mine = self.start(**{MARK_VARIABLE: mark})
        self.start(**{MARK_VARIABLE: mark + "x"})
        self.start()
        until = time.monotonic() + 10
        while not marked(mark) and time.monotonic() < until:
            time.sleep(0.01)
        self.assertEqual([birth.pid for birth in marked(mark)], [mine.pid])


class EndTests(TestCase):
    """L{ProcessEnd} on a real reactor."""

    def setUp(self) -> None:
        from twisted.internet import reactor

        self.reactor = reactor

    @inlineCallbacks
    def test_real_end(self):
        """The end of a process is seen, by all who wait, early or late."""
        process = sleeper()
        self.addCleanup(process.wait)
        watch = ProcessEnd(birth_of(process), self.reactor)
        first = watch.when_ended()
        self.assertFalse(watch.ended)
        process.kill()
        yield first
        yield watch.when_ended()
        self.assertTrue(watch.ended)

    @inlineCallbacks
    def test_already_gone(self):
        """A birth that is gone, or never was, has ended."""
        yield ProcessEnd(ProcessBirth(2**22 + 5, "x"), self.reactor).when_ended()
        yield ProcessEnd(ProcessBirth(os.getpid(), "other"), self.reactor).when_ended()

    def test_stop(self):
        """After stop nothing is heard and nothing is left in the reactor."""
        process = sleeper()
        self.addCleanup(process.wait)
        watch = ProcessEnd(birth_of(process), self.reactor)
        heard: list[None] = []
        watch.when_ended().addCallback(heard.append)
        watch.stop()
        watch.stop()
        process.kill()
        later: Deferred[None] = Deferred()
        self.reactor.callLater(0.05, later.callback, None)
        return later.addCallback(lambda _: self.assertEqual(heard, []))

    def test_without_descriptors(self) -> None:
        """Without process descriptors the birth is looked at each second."""
        clock, alive = Clock(), [True]
        watch = ProcessEnd(ProcessBirth(5, "x"), clock, lambda birth: alive[0])
        heard: list[None] = []
        watch.when_ended().addCallback(heard.append)
        clock.pump([1.0] * 3)
        self.assertEqual(heard, [])
        alive[0] = False
        clock.advance(1)
        self.assertEqual(heard, [None])
        self.assertEqual(clock.getDelayedCalls(), [])

    def test_descriptor_given_up(self) -> None:
        """When the reactor lets go of the descriptor the birth is looked at instead."""
        clock, alive, readers = Clock(), [True], []
        directlyProvides(clock, IReactorTime, IReactorFDSet)
        clock.addReader, clock.removeReader = readers.append, readers.remove  # type: ignore[attr-defined]
        watch = ProcessEnd(ProcessBirth(os.getpid(), "x"), clock, lambda birth: alive[0])
        self.addCleanup(watch.stop)
        if not hasattr(os, "pidfd_open"):
            return self.assertEqual(readers, [])
        [reader] = readers
        reader.connectionLost(None)
        self.assertEqual((readers, reader.fileno()), ([], -1))
        clock.pump([1.0] * 3)
        self.assertFalse(watch.ended)
        alive[0] = False
        clock.advance(1)
        self.assertTrue(watch.ended)
        return None
