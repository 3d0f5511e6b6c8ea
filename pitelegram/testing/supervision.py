"""A supervisor in memory: processes, their lives and their locks are the test's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import attrs
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock
from zope.interface import implementer

from pitelegram.ids import ProcessBirth, managed_binding
from pitelegram.kernel.paths import Paths
from pitelegram.routing.interfaces import IFollower, IRegistry
from pitelegram.store.bindings import Bindings
from pitelegram.store.leadership import Leadership
from pitelegram.store.specs import Specs
from pitelegram.supervisor.environment import EnvironmentRules
from pitelegram.supervisor.launch import LOCK_FD, Launcher
from pitelegram.supervisor.parts import Parts
from pitelegram.supervisor.room import MIB, Room
from pitelegram.supervisor.roots import Roots
from pitelegram.supervisor.supervisor import Supervisor
from pitelegram.targets import TelegramTarget
from pitelegram.testing.delivery import FakeNotices
from pitelegram.testing.followers import FakeThreads
from pitelegram.testing.spawner import FakeProcess, FakeSpawner
from pitelegram.testing.stores import leader_database


class FakeShutdownLink:
    """The part of a link that supervision uses.

    @ivar asked: C{(mode, deadline_ms)} of each shutdown.
    @ivar failure: what each shutdown fails with, None for nothing.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.failure: Exception | None = None

    def shutdown(self, mode: str, deadline_ms: int) -> Deferred[None]:
        """Keep the request."""
        self.asked.append((mode, deadline_ms))
        return succeed(None) if self.failure is None else fail(self.failure)


@implementer(IFollower)
@attrs.define(eq=False, kw_only=True)
class FakeFollower:
    """A registration."""

    spec_id: str
    spawn_id: str
    birth: ProcessBirth
    state: dict[str, Any] = attrs.field(factory=dict)
    binding_key: str = attrs.field(
        default=attrs.Factory(lambda self: managed_binding(self.spec_id), takes_self=True)
    )
    kind: str = "managed"
    worker_id: str = "worker-1"
    generation: str = "generation-1"
    instance_id: str = "1:1"
    link: Any = attrs.field(factory=FakeShutdownLink)
    last_heard: float = 0.0
    ready: bool = True


@implementer(IRegistry)
class FakeRegistry:
    """Registrations by hand.

    @ivar current: live followers by binding.
    @ivar stale: bindings that are not heard of.
    """

    def __init__(self) -> None:
        self.current: dict[str, FakeFollower] = {}
        self.stale: set[str] = set()
        self.observers: list[Any] = []

    def live(self, binding_key: str) -> Any | None:
        """Return the current one."""
        return self.current.get(binding_key)

    def followers(self) -> list[Any]:
        """Return all."""
        return list(self.current.values())

    def is_stale(self, binding_key: str) -> bool:
        """Whom the test names."""
        return binding_key in self.stale

    def subscribe(self, observer: Any) -> None:
        """Keep an observer."""
        self.observers.append(observer)

    def target_changed(
        self,
        binding_key: str,
        target: TelegramTarget | None,
        old: TelegramTarget | None,
        reason: str,
    ) -> None:
        """Nobody needs to know."""

    def register(self, follower: FakeFollower) -> None:
        """A follower registers and sends its first heartbeat."""
        self.current[follower.binding_key] = follower
        for observer in self.observers:
            observer.registered(follower)

    def beat(self, follower: FakeFollower, **state: Any) -> None:
        """It sends another state."""
        follower.state.update(state)
        for observer in self.observers:
            observer.state_changed(follower)

    def lose(self, follower: FakeFollower) -> None:
        """Its connection ends."""
        self.current.pop(follower.binding_key, None)
        for observer in self.observers:
            observer.lost(follower)


class FakeReach:
    """Signals go into a list.

    @ivar sent: shared list of C{("worker"|"rest", signal number)}.
    @ivar mark: whose processes are meant.
    @param left: returns how many processes a signal to the rest reaches.
    """

    def __init__(
        self,
        sent: list[tuple[str, int]],
        mark: str | None,
        lock: Path,
        others: Callable[[], Iterable[ProcessBirth]],
        known: Iterable[ProcessBirth] = (),
        left: Callable[[FakeReach], int] = lambda reach: 0,
    ) -> None:
        self._left = left
        self.sent = sent
        self.mark = mark
        self.known = list(known)

    def signal_worker(self, worker: ProcessBirth | None, number: int) -> None:
        """Keep it, when there is a worker."""
        if worker is not None:
            self.sent.append(("worker", number))

    def signal_rest(self, number: int) -> int:
        """Keep it."""
        self.sent.append(("rest", number))
        return self._left(self)


class WorkerSpawner(FakeSpawner):
    """Makes workers that hold the binding's lock until they end; answers C{--version} itself.

    @ivar version: what Pi says.
    @ivar living: pids of the processes that live.
    """

    def __init__(self) -> None:
        super().__init__()
        self.version = b"1.6.0\n"
        self.living: set[int] = set()
        self.locks: dict[int, int] = {}
        self.workers: list[FakeProcess] = []

    def spawnProcess(self, processProtocol: Any, executable: Any, *args: Any, **kw: Any) -> Any:
        """See C{IReactorProcess}."""
        process = super().spawnProcess(processProtocol, executable, *args, **kw)
        if process.arguments[-1] == "--version":
            process.out(self.version)
            process.exit(0)
            return process
        assert process.pid is not None
        self.living.add(process.pid)
        self.locks[process.pid] = os.dup(process.options["childFDs"][LOCK_FD])
        self.workers.append(process)
        return process

    def end(
        self,
        process: FakeProcess,
        code: int | None = 0,
        signal: int | None = None,
        pi: bool = False,
    ) -> None:
        """A worker ends; with C{pi} its Pi lives on and holds the lock (see L{end_pi})."""
        assert process.pid is not None
        pid = process.pid
        self.living.discard(pid)
        if not pi:
            os.close(self.locks.pop(pid))
        process.exit(code, signal)

    def end_pi(self) -> None:
        """Every Pi that was left ends."""
        for pid in [pid for pid in self.locks if pid not in self.living]:
            os.close(self.locks.pop(pid))

    def close(self) -> None:
        """Give all locks back."""
        self.living.clear()
        self.end_pi()


class World:
    """A supervisor with everything it needs.

    @param base: a directory of the test's.
    @ivar free: bytes of memory that can be had; each process holds 100 MiB.
    @ivar remains: pids that carry a spawn's mark, by the mark.
    """

    def __init__(self, base: Path) -> None:
        self.clock = Clock()
        self.home = base / "home"
        self.project = self.home / "project"
        self.project.mkdir(parents=True)
        self.program = base / "pi"
        self.program.write_text("#!/bin/sh\n")
        self.program.chmod(0o755)
        self.paths = Paths(base / "agent")
        self.paths.prepare()
        self.database = leader_database(self.clock)
        self.specs = Specs(self.database)
        self.registry = FakeRegistry()
        self.notices = FakeNotices()
        self.threads = FakeThreads(Bindings(self.database))
        self.spawner = WorkerSpawner()
        self.signals: list[tuple[str, int]] = []
        self.remains: dict[str | None, list[int]] = {}
        self.ids = iter(f"{number:016x}" for number in range(1, 10_000))
        self.environ: Mapping[str, str] = {"PATH": "/usr/bin:/bin"}
        self.roots = Roots([self.home])
        self.given_up: list[str] = []
        self.refusal: Exception | None = None
        self.free = 64 * 1024 * MIB
        self.supervisor = self.make()

    def make(self) -> Supervisor:
        """Another supervisor on the same store and processes, as after a restart of the daemon."""
        launcher = Launcher(
            self.spawner,
            self.clock,
            self.paths,
            [str(self.program)],
            self.roots,
            self.environ,
            lambda: EnvironmentRules(agent_dir=str(self.paths.agent_dir), token_digest="d" * 64),
        )
        parts = Parts(
            specs=self.specs,
            leadership=Leadership(self.database),
            registry=self.registry,
            notices=self.notices,
            launcher=launcher,
            paths=self.paths,
            reactor=self.clock,
            random=Random(1),
            random_bytes=lambda count: b"x" * count,
            new_id=lambda: next(self.ids),
            monotonic=self.clock.seconds,
            now=self.clock.seconds,
            birth_of=lambda pid: f"{pid}:start:1" if pid in self.spawner.living else None,
            alive=lambda birth: birth.pid in self.spawner.living,
            room=Room(lambda: self.free, lambda _: 100 * MIB),
            reach=lambda *args: FakeReach(  # type: ignore[return-value]
                self.signals,
                *args,  # type: ignore[arg-type]
                left=lambda reach: len(self.remains.get(reach.mark, ())),
            ),
        )
        return Supervisor(parts, self.threads, self.roots, self.give_up)

    def give_up(self, binding_key: str) -> Deferred[None]:
        """Remember it; C{refusal} is raised if set."""
        if self.refusal is not None:
            return fail(self.refusal)
        self.given_up.append(binding_key)
        return self.threads.forget(binding_key)

    def follower(self, **state: Any) -> FakeFollower:
        """The registration of the newest worker process."""
        process = self.spawner.workers[-1]
        arguments = process.arguments
        assert process.pid is not None
        return FakeFollower(
            spec_id=arguments[arguments.index("--spec-id") + 1],
            spawn_id=arguments[arguments.index("--spawn-id") + 1],
            birth=ProcessBirth(process.pid, f"{process.pid}:start:1"),
            state=state,
        )

    def audit(self) -> list[tuple[str, str]]:
        """C{(actor, change)} of every transition."""
        return [(row["actor"], row["change"]) for row in self.database.read("SELECT * FROM audit")]

    def close(self) -> None:
        """Give everything back."""
        self.spawner.close()
