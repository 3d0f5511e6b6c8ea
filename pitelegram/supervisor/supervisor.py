"""All managed workers of a profile."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred, DeferredList
from twisted.logger import Logger
from zope.interface import implementer

from pitelegram.errors import Refusal
from pitelegram.ids import ProcessBirth, managed_binding
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.routing.interfaces import (
    IBindingPolicy,
    IExpectation,
    IRegistryObserver,
)
from pitelegram.store.rows import Spec
from pitelegram.supervisor.directories import Directories
from pitelegram.supervisor.interfaces import ISupervisor, WorkerView
from pitelegram.supervisor.keeper import Keeper
from pitelegram.supervisor.life import RESTING, State
from pitelegram.supervisor.names import worker_name
from pitelegram.supervisor.parts import Parts, owner_births
from pitelegram.supervisor.roots import Roots
from pitelegram.threads.interfaces import IThreads

MINUTE = 60.0
PREFIX = "spec-"


@implementer(ISupervisor, IBindingPolicy, IExpectation, IRegistryObserver)
class Supervisor(Service):
    """Starts, watches and stops managed workers.

    Specs change only here and only for an operator; what is observed never edits them.  Stopping
    this service leaves every worker running.

    @param threads: gives a worker its Thread before it exists.
    @param roots: where workers may run.
    @param give_up: takes over what a binding left and removes it; may refuse.
    """

    _log = Logger()

    def __init__(
        self,
        parts: Parts,
        threads: IThreads,
        roots: Roots,
        give_up: Callable[[str], Deferred[None]],
    ) -> None:
        self._parts = parts
        self._give_up = give_up
        self._threads = threads
        self._roots = roots
        self.directories = Directories(roots, parts.specs.recent)
        self._keepers: dict[str, Keeper] = {}
        self._observers: list[Callable[[WorkerView], None]] = []
        self._starting: set[str] = set()
        self._naming: set[str] = set()
        self._loaded = False
        self._minute: Any = None

    def startService(self) -> None:
        """Take up every spec: adopt what lives, start what is wanted, end what is not."""
        super().startService()
        self._parts.registry.subscribe(self)
        for spec in self._parts.specs.list():
            self._keep(spec)
        self._loaded = True
        for keeper in list(self._keepers.values()):
            self._take_up(keeper)
        self._minute = self._parts.reactor.callLater(MINUTE, self._each_minute)

    @deferred
    async def stopService(self) -> None:
        """Let go of all workers; none of them is signalled."""
        Service.stopService(self)
        if self._minute is not None and self._minute.active():
            self._minute.cancel()
        await DeferredList([keeper.close() for keeper in self._keepers.values()])

    # --- ISupervisor -----------------------------------------------------------------------------

    @deferred
    async def start(
        self,
        directory: str,
        actor: str,
        spec_id: str | None = None,
        request_id: str | None = None,
    ) -> WorkerView:
        """See L{ISupervisor.start}."""
        real = str(self._roots.resolve(directory))
        if real in self._starting:
            raise Refusal("already-running", "a worker for that directory is being started")
        self._starting.add(real)
        try:
            keeper = await self._prepare(real, spec_id)
            made = await self._begin(
                keeper, lambda: keeper.start(actor, "a start was asked for"), request_id
            )
        finally:
            self._starting.discard(real)
        await made
        return keeper.view()

    @deferred
    async def stop(self, spec_id: str, actor: str, request_id: str | None = None) -> WorkerView:
        """See L{ISupervisor.stop}."""
        keeper = self._keeper(spec_id)
        await self._parts.specs.want(spec_id, "stopped", None, request_id)
        await keeper.stop(actor, "a stop was asked for")
        return keeper.view()

    @deferred
    async def restart(self, spec_id: str, actor: str, fresh: bool = False) -> WorkerView:
        """See L{ISupervisor.restart}."""
        keeper = self._keeper(spec_id)
        keeper.fresh = fresh
        made = await self._begin(keeper, lambda: keeper.restart(actor, "a restart was asked for"))
        await made
        return keeper.view()

    @deferred
    async def forget(self, spec_id: str, actor: str) -> None:
        """See L{ISupervisor.forget}."""
        keeper = self._keeper(spec_id)
        if keeper.life.state not in (State.STOPPED, State.FAILED) or not keeper.lock_free():
            raise Refusal("still-running", f"{keeper.spec.name} still runs; stop it first")
        directory = keeper.spec.directory
        if directory in self._starting:
            raise Refusal("still-running", f"{keeper.spec.name} is being started or forgotten")
        self._starting.add(directory)
        del self._keepers[spec_id]  # from here on nobody can start it
        try:
            await self._give_up(keeper.binding_key)
            await self._parts.specs.forget(spec_id)
        except BaseException:
            self._keepers[spec_id] = keeper
            raise
        finally:
            self._starting.discard(directory)
        await keeper.close()
        await self._parts.leadership.audit(f"spec:{spec_id}", actor, "forgotten", "asked for")

    def memory_warning(self, but: str = "") -> str | None:
        """See L{ISupervisor.memory_warning}."""
        others = (k for spec_id, k in self._keepers.items() if spec_id != but)
        return self._parts.room.warning(k.births() for k in others if k.life.state not in RESTING)

    def keep_waiting(self, spec_id: str) -> None:
        """See L{ISupervisor.keep_waiting}."""
        self._keeper(spec_id).keep_waiting()

    def session_file(self, ref: str) -> str:
        """See L{ISupervisor.session_file}."""
        return self._parts.launcher.session_file(ref)

    def views(self) -> list[WorkerView]:
        """See L{ISupervisor.views}."""
        return sorted((keeper.view() for keeper in self._keepers.values()), key=lambda v: v.name)

    def find(self, name: str | None = None, worker_id: str | None = None) -> WorkerView | None:
        """See L{ISupervisor.find}; what is given must fit."""
        if name is None and worker_id is None:
            return None
        for view in self.views():
            if name in (None, view.name) and worker_id in (None, view.worker_id):
                return view
        return None

    def when_settled(self, spec_id: str) -> Deferred[WorkerView]:
        """See L{ISupervisor.when_settled}."""
        return self._keeper(spec_id).when_settled()

    def subscribe(self, observer: Callable[[WorkerView], None]) -> None:
        """See L{ISupervisor.subscribe}."""
        self._observers.append(observer)

    # --- IBindingPolicy, IExpectation, IRegistryObserver -------------------------------------------

    def managed(self, spec_id: str, spawn_id: str) -> str | None:
        """See L{IBindingPolicy.managed}."""
        keeper = self._keepers.get(spec_id)
        if keeper is None or keeper.spawn_id != spawn_id or keeper.life.state in RESTING:
            return None
        return keeper.spec.directory

    def name(self, spec_id: str) -> str:
        """See L{IBindingPolicy.name}."""
        return self._keeper(spec_id).spec.name

    def is_starting(self, binding_key: str) -> bool:
        """See L{IExpectation.is_starting}."""
        keeper = self._keeper_of(binding_key)
        states = (State.SPAWNING, State.BACKOFF, State.ADOPTING)
        return keeper is not None and keeper.life.state in states

    def is_expected(self, binding_key: str) -> bool:
        """See L{IExpectation.is_expected}; before the specs are loaded every managed one is."""
        if not self._loaded:
            return binding_key.startswith(PREFIX)
        keeper = self._keeper_of(binding_key)
        return keeper is not None and keeper.life.state not in (State.STOPPED, State.FAILED)

    def registered(self, follower: Any) -> None:
        """See L{IRegistryObserver.registered}."""
        keeper = self._keepers.get(follower.spec_id)
        if keeper is not None:
            keeper.registered(follower)

    def state_changed(self, follower: Any) -> None:
        """See L{IRegistryObserver.state_changed}."""
        keeper = self._keepers.get(follower.spec_id)
        if keeper is not None:
            keeper.heard(follower)

    def lost(self, follower: Any) -> None:
        """A lost connection alone changes nothing: the process tells whether the worker lives."""

    # --- inside ------------------------------------------------------------------------------------

    async def _prepare(self, real: str, spec_id: str | None = None) -> Keeper:
        """Find or make the spec of a directory, with its Thread."""
        specs = self._parts.specs
        spec = specs.by_directory(real)
        if spec is not None:
            keeper = self._keepers.get(spec.spec_id) or self._keep(spec)
            if keeper.life.state not in RESTING:
                raise Refusal("already-running", f"{spec.name} runs in that directory already")
            await self._threads.ensure(keeper.binding_key, "managed", real)
            return keeper
        spec_id = spec_id or self._parts.new_id()
        spec = await self._create(spec_id, real)
        try:
            await self._threads.ensure(managed_binding(spec_id), "managed", real)
        except Refusal:
            await specs.forget(spec_id)
            raise
        return self._keep(spec)

    async def _create(self, spec_id: str, real: str) -> Spec:
        """Make a spec under a name that no other has, or is about to get."""
        specs = self._parts.specs
        taken = {known.name for known in specs.list()} | self._naming
        name = worker_name(self._roots.resolve(real), taken)
        self._naming.add(name)
        try:
            return await specs.create(spec_id, name, real)
        finally:
            self._naming.discard(name)

    async def _begin(
        self,
        keeper: Keeper,
        begin: Callable[[], Deferred[None]],
        request_id: str | None = None,
    ) -> Deferred[None]:
        """Commit the wish, say that it starts, and begin; C{begin}'s Deferred is handed through."""
        spec_id = keeper.spec.spec_id
        spec = self._parts.specs.get(spec_id) or keeper.spec
        slot = spec.slot_id or self._parts.new_id()
        await self._parts.specs.want(spec_id, "running", slot, request_id)
        short = self.memory_warning(but=spec_id)
        text = f"⏳ {spec.name} is starting…" + (f"\n⚠️ {short}" if short else "")
        posted = self._parts.notices.post(keeper.binding_key, text, None)
        spawn(self._log, "posting a notice", posted)
        return begin()

    def _keep(self, spec: Spec) -> Keeper:
        keeper = Keeper(
            spec, self._parts, lambda: self._others(spec.spec_id), lambda view: self._tell(view)
        )
        self._keepers[spec.spec_id] = keeper
        return keeper

    def _take_up(self, keeper: Keeper) -> None:
        """What the store says about a worker, against what really is."""
        wanted = keeper.spec.desired == "running"
        record = self._parts.specs.live_spawn(keeper.spec.spec_id)
        known = record is not None and record.pid is not None and record.birth is not None
        if record is not None and known:
            lives = self._parts.alive(ProcessBirth(record.pid, record.birth))  # type: ignore[arg-type]
        else:
            lives = record is not None and not keeper.lock_free()
        if record is not None and lives:
            keeper.adopt(record)
            if not wanted:
                spawn(
                    self._log, "ending a worker", keeper.stop("daemon", "its stop was begun before")
                )
        elif wanted and keeper.recall():
            return
        elif wanted:
            starting = keeper.start("daemon", "the daemon started")
            starting.addErrback(lambda failure: failure.trap(Exception) and None)
        elif record is not None and keeper.lock_free():
            closing = self._parts.specs.ended(record.spawn_id, "end unseen")
            spawn(self._log, "recording an end", closing)

    def _others(self, spec_id: str) -> Iterable[ProcessBirth]:
        """Processes that signals meant for one worker never reach."""
        births = list(owner_births(self._parts.paths))
        for other, keeper in self._keepers.items():
            if other != spec_id:
                births += keeper.births()
        return births

    def _tell(self, view: WorkerView) -> None:
        for observer in list(self._observers):
            observer(view)

    def _keeper(self, spec_id: str) -> Keeper:
        keeper = self._keepers.get(spec_id)
        if keeper is None:
            raise Refusal("unknown-worker", "there is no such worker")
        return keeper

    def _keeper_of(self, binding_key: str) -> Keeper | None:
        return self._keepers.get(binding_key.removeprefix(PREFIX))

    def _each_minute(self) -> None:
        self._minute = self._parts.reactor.callLater(MINUTE, self._each_minute)
        for keeper in self._keepers.values():
            self._parts.launcher.bound_log(keeper.spec)
