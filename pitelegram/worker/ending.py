"""Ending a program of the operator's with all that it started."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.ids import ProcessBirth
from pitelegram.kernel import birth, proctree
from pitelegram.kernel.deferring import sleep

KILL_SECONDS = 5.0
"""Between SIGTERM and SIGKILL, and how long the end after that is waited for."""

_LOOK_SECONDS = 0.05
_PASSES = 50
"""How often in a row the processes are looked at while each look finds new ones."""

_log = Logger()


class Processes:
    """Looking at processes and signalling exactly one of them; tests have another."""

    def birth(self, pid: int) -> ProcessBirth | None:
        """Return which process has that number."""
        found = birth.process_birth(pid)
        return None if found is None else ProcessBirth(pid, found)

    def led(self, leader: ProcessBirth) -> list[ProcessBirth]:
        """Return the living ones of the session that C{leader} leads or led, itself included.

        (As long as a session has members its number is nobody else's.)
        """
        found = self.birth(leader.pid)
        if found is None:
            return proctree.in_session(leader.pid)
        return [leader, *proctree.in_session(leader.pid)] if found == leader else []

    def descendants(self, process: ProcessBirth) -> list[ProcessBirth]:
        """Return the living processes below a living one."""
        below = proctree.descendants(process.pid)
        return below if self.alive(process) else []

    def alive(self, process: ProcessBirth) -> bool:
        """Whether exactly that process lives."""
        return birth.is_alive(process)

    def signal(self, process: ProcessBirth, number: int) -> None:
        """Signal exactly that process; nothing happens when it is gone."""
        proctree.signal_exact(process, number)


class Ending:
    """Ends a program and everything that it started, gently first.

    @param leader: the program, which leads a session; None when it ended at once.
    @param reaped: tells whether its end was seen.
    """

    def __init__(
        self,
        clock: IReactorTime,
        processes: Processes,
        leader: ProcessBirth | None,
        reaped: Callable[[], bool],
    ) -> None:
        self._clock = clock
        self._processes = processes
        self._leader = leader
        self._reaped = reaped
        self._noted: set[ProcessBirth] = set()
        self._signalled: set[ProcessBirth] = set()

    async def run(self) -> None:
        """Signal all of them until they are gone."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in self._note():
                self._processes.signal(process, number)
                self._signalled.add(process)
            until = self._clock.seconds() + KILL_SECONDS
            while self._left() and self._clock.seconds() < until:
                if number == signal.SIGKILL:
                    self._kill_new()
                await sleep(self._clock, _LOOK_SECONDS)
            if not self._left():
                return
        _log.error("a program of a handler would not end")

    def _kill_new(self) -> None:
        """Kill what was started while the others were killed: stopped first, it starts nothing more."""
        stopped: list[ProcessBirth] = []
        for _ in range(_PASSES):
            new = [process for process in self._note() if process not in self._signalled]
            for process in new:
                self._processes.signal(process, signal.SIGSTOP)
                self._signalled.add(process)
            stopped += new
            if not new:
                break
        for process in stopped:
            self._processes.signal(process, signal.SIGKILL)

    def _note(self) -> list[ProcessBirth]:
        """Find all that belongs to it; return what lives."""
        if self._leader is not None:
            self._noted.update(self._processes.led(self._leader))
        for process in self._living(self._noted):
            self._noted.update(self._processes.descendants(process))
        return self._living(self._noted)

    def _left(self) -> bool:
        return not self._reaped() or bool(self._living(self._noted)) or bool(self._note())

    def _living(self, processes: Iterable[ProcessBirth]) -> list[ProcessBirth]:
        return [process for process in processes if self._processes.alive(process)]
