"""One attempt to make a worker process."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable

from twisted.logger import Logger

from pitelegram.errors import LaunchFailed, UnsafeFile
from pitelegram.ids import ProcessBirth, managed_binding
from pitelegram.kernel.deferring import deferred, sleep, spawn
from pitelegram.kernel.flock import FileLock
from pitelegram.store.rows import Spawn, Spec
from pitelegram.supervisor.ladder import Reach
from pitelegram.supervisor.launch import Exit
from pitelegram.supervisor.parts import Parts

HOLD_SECONDS = 10.0
"""How long a successor waits for the Pi of a worker that is gone, before it ends that Pi."""

LOOK_SECONDS = 0.25
TERM_SECONDS = 2.0
CREDENTIAL_BYTES = 32

GONE_ALREADY = "gone"
"""Stands for the birth of a process that was gone before it could be looked at."""


class Attempt:
    """Checks, takes the binding's lock, commits the intent, makes the process, commits its birth.

    A process that is killed anywhere in between leaves a store from which the next daemon sees what
    happened: no intent means no process; an intent without a birth means a process if, and only if,
    the binding's lock is held.

    @param ended: called with this attempt and how its process ended.
    @param others: returns processes that no signal may reach.
    @param former: the spawn before this one, where it is known.
    @ivar spawn_id: names this attempt; also the mark of everything it starts.
    @ivar process: what was made, None before.
    """

    _log = Logger()

    def __init__(
        self,
        parts: Parts,
        spec: Spec,
        ended: Callable[[Attempt, Exit], None],
        others: Callable[[], Iterable[ProcessBirth]],
        former: str | None = None,
    ) -> None:
        self._former = former
        self._parts = parts
        self._spec = spec
        self._ended = ended
        self._others = others
        self._path = parts.paths.worker_lock(managed_binding(spec.spec_id))
        self.spawn_id = parts.new_id() + parts.new_id()
        self.process: ProcessBirth | None = None

    @deferred
    async def run(self, launched: Callable[[], None]) -> None:
        """Fire once the process exists and its birth is committed.

        C{launched} is called as soon as the process exists.

        @raise LaunchFailed: there is no process.
        """
        pi = await self._parts.launcher.check(self._spec)
        lock = await self._take_lock()
        try:
            await self._end_remains()
            await self._close_record()
            await self._make(pi, lock)
        finally:
            lock.release()
        launched()
        assert self.process is not None
        await self._parts.specs.made(self.spawn_id, self.process.pid, self.process.birth)

    async def _make(self, pi: list[str], lock: FileLock) -> None:
        specs, credential = self._parts.specs, self._parts.random_bytes(CREDENTIAL_BYTES)
        try:
            await specs.intend(self.spawn_id, self._spec.spec_id, credential)
            pid = self._parts.launcher.launch(
                self._spec,
                self.spawn_id,
                credential,
                lock,
                pi,
                lambda exit: self._ended(self, exit),
            )
            self.process = ProcessBirth(pid, self._parts.birth_of(pid) or GONE_ALREADY)
        finally:
            if self.process is None:
                spawn(self._log, "closing an intent", specs.ended(self.spawn_id, "not made"))

    async def _end_remains(self) -> None:
        """Pi is gone; what its tools left running must not work beside the next one."""
        record = self._parts.specs.live_spawn(self._spec.spec_id)
        marks = {self._former, record.spawn_id if record is not None else None} - {None}
        reaches = [self._parts.reach(mark, self._path, self._others, []) for mark in marks]
        if sum(reach.signal_rest(signal.SIGTERM) for reach in reaches):
            await sleep(self._parts.reactor, TERM_SECONDS)
            for reach in reaches:
                reach.signal_rest(signal.SIGKILL)

    async def _close_record(self) -> None:
        """The lock is ours, so nothing of an earlier spawn lives."""
        former = self._parts.specs.live_spawn(self._spec.spec_id)
        if former is not None:
            await self._parts.specs.ended(former.spawn_id, "end unseen")

    async def _take_lock(self) -> FileLock:
        lock = await self._wait_for_lock()
        if lock is None:
            self._log.warn("the Pi of a worker that is gone holds its lock and is ended")
            await self._end_holder()
            lock = await self._wait_for_lock()
        if lock is None:
            raise LaunchFailed("another process holds this worker's lock; end it first")
        return lock

    @deferred
    async def _wait_for_lock(self) -> FileLock | None:
        until = self._parts.monotonic() + HOLD_SECONDS
        while True:
            try:
                lock = FileLock.try_acquire(self._path)
            except UnsafeFile as refusal:
                raise LaunchFailed(str(refusal), permanent=True) from None
            if lock is not None or self._parts.monotonic() >= until:
                return lock
            await sleep(self._parts.reactor, LOOK_SECONDS)

    async def _end_holder(self) -> None:
        former = self._parts.specs.live_spawn(self._spec.spec_id)
        reach = reach_of(self._parts, self._spec, former, self._others)
        reach.signal_rest(signal.SIGTERM)
        await sleep(self._parts.reactor, TERM_SECONDS)
        reach.signal_rest(signal.SIGKILL)


def reach_of(
    parts: Parts,
    spec: Spec,
    record: Spawn | None,
    others: Callable[[], Iterable[ProcessBirth]],
    known: Iterable[ProcessBirth] = (),
) -> Reach:
    """Return what a signal may reach of a spec's recorded spawn.

    @param known: processes of it that are known beside the recorded ones.
    """
    births = list(known)
    if record is not None:
        recorded = ((record.pid, record.birth), (record.pi_pid, record.pi_birth))
        births += [ProcessBirth(pid, birth) for pid, birth in recorded if pid and birth]
    mark = record.spawn_id if record is not None else None
    lock = parts.paths.worker_lock(managed_binding(spec.spec_id))
    return parts.reach(mark, lock, others, list(dict.fromkeys(births)))
