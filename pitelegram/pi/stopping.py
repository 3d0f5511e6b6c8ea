"""The stop ladder: everything of a Pi ends, gently first.

::

    quiet ──▶ close input ──▶ SIGTERM ──▶ SIGTERM ──▶ SIGKILL ──▶ sweep
              (Pi's exit in any of these: straight to the sweep)

Tools run in sessions of their own and background jobs lose their parent, so what Pi started is
noted with pid and birth before each step, and found by its environment mark at the end.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from pitelegram.errors import PiTelegramError
from pitelegram.ids import ProcessBirth
from pitelegram.kernel import birth, proctree
from pitelegram.kernel.deferring import sleep
from pitelegram.kernel.observers import OneShot

_log = Logger()

QUIET_SHARE = 0.25
CLOSE_SHARE = 0.35
SIGNALS = ((signal.SIGTERM, 0.1), (signal.SIGTERM, 0.1), (signal.SIGKILL, 0.1))
SWEEP_SHARE = 0.1
"""Shares of the total grace that each phase has."""

_LOOK_SECONDS = 0.05
_GIVE_UP_SECONDS = 5.0


class Processes(Protocol):
    """Looking at processes and signalling exactly one of them."""

    def descendants(self, pid: int) -> list[ProcessBirth]:
        """Living processes below C{pid}."""

    def marked(self, mark: str) -> list[ProcessBirth]:
        """Living processes that carry the mark, without this process and its ancestors."""

    def signal(self, process: ProcessBirth, number: int) -> bool:
        """Signal exactly that process."""

    def alive(self, process: ProcessBirth) -> bool:
        """Whether exactly that process lives."""


class SystemProcesses:
    """The real ones."""

    def descendants(self, pid: int) -> list[ProcessBirth]:
        """See L{Processes}."""
        return proctree.descendants(pid)

    def marked(self, mark: str) -> list[ProcessBirth]:
        """See L{Processes}."""
        return proctree.marked(mark)

    def signal(self, process: ProcessBirth, number: int) -> bool:
        """See L{Processes}."""
        return proctree.signal_exact(process, number)

    def alive(self, process: ProcessBirth) -> bool:
        """See L{Processes}."""
        return birth.is_alive(process)


class Stoppable(Protocol):
    """What the ladder needs of a Pi."""

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""

    @property
    def exited(self) -> OneShot[str]:
        """Fires with its exit in words."""

    def close_stdin(self) -> None:
        """Close its input."""

    def signal(self, number: int) -> None:
        """Signal it."""


class StopLadder:
    """One descent.

    @param quiet: cancels dialogs, clears the queue and aborts the run.
    @param mark: the environment mark of this Pi's processes, None when it has none.
    @param spare: tells of a process that must not be signalled (one that holds an owner's lock).
    @param aborted: returns what ran below Pi when a run was aborted.
    """

    def __init__(
        self,
        child: Stoppable,
        quiet: Callable[[], Deferred[object]],
        clock: IReactorTime,
        processes: Processes,
        mark: str | None,
        spare: Callable[[ProcessBirth], bool],
        aborted: Callable[[], Iterable[ProcessBirth]] = tuple,
    ) -> None:
        self._aborted = aborted
        self._child = child
        self._quiet = quiet
        self._clock = clock
        self._processes = processes
        self._mark = mark
        self._spare = spare
        self._noted: set[ProcessBirth] = set()

    async def run(self, grace: float) -> str:
        """Go down until Pi and its processes are gone; return the exit in words."""
        child = self._child
        if not child.exited.fired:
            await self._within(self._quiet(), grace * QUIET_SHARE)
            self._note()
            child.close_stdin()
            gone = await self._exits(grace * CLOSE_SHARE)
            for number, share in SIGNALS:
                if gone:
                    break
                self._note()
                child.signal(number)
                gone = await self._exits(grace * share)
        words = await child.exited.when()
        left = await self._sweep(grace * SWEEP_SHARE)
        return f"{words}; {left} of its processes would not end" if left else words

    def _note(self) -> None:
        if self._child.pid is not None and not self._child.exited.fired:
            self._noted.update(self._processes.descendants(self._child.pid))

    async def _exits(self, seconds: float) -> bool:
        await self._within(self._child.exited.when(), seconds)
        return self._child.exited.fired

    async def _within(self, work: Deferred[Any], seconds: float) -> None:
        """Wait for C{work}, at most so long; it goes on behind our back after that."""
        done: OneShot[None] = OneShot()
        work.addErrback(_unless_expected).addBoth(lambda _: done.fire(None))
        timer = self._clock.callLater(max(seconds, 0.0), done.fire, None)
        try:
            await done.when()
        finally:
            if timer.active():
                timer.cancel()

    async def _sweep(self, seconds: float) -> int:
        """End what is left; return how many processes did not go."""
        await self._end(signal.SIGTERM, seconds)
        return await self._end(signal.SIGKILL, _GIVE_UP_SECONDS)

    async def _end(self, number: int, seconds: float) -> int:
        left = self._left()
        for process in left:
            self._processes.signal(process, number)
        until = self._clock.seconds() + seconds
        while left and self._clock.seconds() < until:
            await sleep(self._clock, _LOOK_SECONDS)
            left = self._living(left)
        return len(left)

    def _left(self) -> list[ProcessBirth]:
        found = {*self._noted, *self._aborted()}
        for process in self._noted:
            below = self._processes.descendants(process.pid)
            if self._processes.alive(process):
                found.update(below)
        if self._mark is not None:
            found.update(self._processes.marked(self._mark))
        self._noted = found
        return [process for process in self._living(found) if not self._spare(process)]

    def _living(self, processes: Iterable[ProcessBirth]) -> list[ProcessBirth]:
        return [process for process in processes if self._processes.alive(process)]


def _unless_expected(failure: Failure) -> None:
    """A Pi that does not calm down is what the next steps are for; anything else is a fault."""
    if not failure.check(PiTelegramError):
        _log.failure("calming Pi down failed", failure)
