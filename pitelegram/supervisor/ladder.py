"""Ending a worker: how long each phase lasts, and whom a signal may reach."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

from pitelegram.ids import ProcessBirth
from pitelegram.kernel.birth import is_alive
from pitelegram.kernel.proctree import descendants, marked, protected_pids, signal_exact
from pitelegram.supervisor.life import State

TOTAL_SECONDS = 30.0

SHARES = {
    State.DRAINING: 0.5,
    State.ABORTING: 0.15,
    State.CLOSING: 0.1,
    State.TERMINATING: 0.17,
}
"""Of the whole time.  Killing has the rest, and goes on until death is proven."""

KILL_AGAIN_SECONDS = 1.0

SIGNALS = {State.TERMINATING: signal.SIGTERM, State.KILLING: signal.SIGKILL}


def phase_seconds(state: State, total: float) -> float:
    """Return how long a phase may last."""
    return SHARES[state] * total


class Reach:
    """Signals a worker's processes and nobody else.

    Never reached: this process, its ancestors, and a process that holds an owner or binding lock
    that is not this worker's, with everything below it.

    @param mark: the spawn id in the environment of everything the worker started.
    @param lock: the binding's lock file, which its processes may hold.
    @param owners: returns the births of all processes that own a transport or another binding.
    @param known: processes of this worker that may not be found below it any more (its Pi).
    """

    def __init__(
        self,
        mark: str | None,
        lock: Path,
        owners: Callable[[], Iterable[ProcessBirth]],
        known: Iterable[ProcessBirth] = (),
    ) -> None:
        self._mark = mark
        self._lock = lock
        self._owners = owners
        self._listed: list[ProcessBirth] = list(known)

    def signal_worker(self, worker: ProcessBirth | None, number: int) -> None:
        """List everything below the worker, then signal the worker itself."""
        if worker is None or worker.pid in self._spared():
            return
        below, known = descendants(worker.pid), set(self._listed)
        if is_alive(worker):
            self._listed += [birth for birth in below if birth not in known]
            signal_exact(worker, number)

    def signal_rest(self, number: int) -> int:
        """Signal those listed that still live, then carriers of the mark; returns how many."""
        spared = self._spared()
        rest = [birth for birth in self._listed if is_alive(birth)]
        if self._mark is not None:
            rest += [birth for birth in marked(self._mark) if birth not in rest]
        return sum(signal_exact(birth, number) for birth in rest if birth.pid not in spared)

    def _spared(self) -> set[int]:
        spared = set(protected_pids())
        roots = {birth.pid for birth in self._owners() if is_alive(birth)}
        candidates = {birth.pid for birth in self._listed}
        if self._mark is not None:
            candidates |= {birth.pid for birth in marked(self._mark)}
        roots |= {pid for pid in candidates if _holds_another_lock(pid, self._lock)}
        for root in roots - spared:
            spared.add(root)
            spared.update(birth.pid for birth in descendants(root))
        return spared


def _holds_another_lock(pid: int, own: Path) -> bool:
    """Whether a process has the lock file of another binding open."""
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    for name in names:
        try:
            target = Path(os.readlink(f"/proc/{pid}/fd/{name}"))
        except OSError:
            continue
        if target.suffix == ".lock" and target.parts[-3:-1] == ("telegram", "workers"):
            if target != own:
                return True
    return False
