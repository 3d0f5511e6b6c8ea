"""The live followers: who they are, when they were heard last, and who replaces whom."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from pitelegram.bus.interfaces import IFollowerLink
from pitelegram.errors import BusBadRequest, BusError, Refusal, StaleGeneration
from pitelegram.ids import ProcessBirth
from pitelegram.kernel.deferring import deferred, sleep, spawn
from pitelegram.kernel.keyed import KeyedLock
from pitelegram.ownership.continuity import without_stable_keys
from pitelegram.routing.activity import at_work
from pitelegram.routing.claims import Claim, check_claim, check_replacement, is_rival
from pitelegram.routing.interfaces import (
    IBindingPolicy,
    IFollower,
    IRegistry,
    IRegistryObserver,
)
from pitelegram.routing.places import Places
from pitelegram.routing.workspaces import Workspaces
from pitelegram.store.interfaces import IBindings
from pitelegram.store.rows import Binding
from pitelegram.targets import TelegramTarget
from pitelegram.threads.interfaces import IThreads

HEARTBEAT_MS = 1_000
STALE_MS = 15_000

CLAIM_PATIENCE = 3.0
"""Seconds that a registration waits for the deletion of its Thread to end."""

LOOK_SECONDS = 0.1

UNAVAILABLE = "workspace-binding-unavailable"


@implementer(IFollower)
@attrs.define(eq=False, kw_only=True)
class Follower:
    """See L{IFollower}.

    @ivar serial: what its registration and its end are serialised by.
    """

    binding_key: str
    kind: str
    spec_id: str | None
    spawn_id: str | None
    worker_id: str
    generation: str
    instance_id: str
    birth: ProcessBirth
    link: IFollowerLink
    serial: str
    state: dict[str, Any] = attrs.field(factory=dict)
    last_heard: float
    ready: bool = False


@implementer(IRegistry)
@attrs.define(eq=False)
class Registry:
    """See L{IRegistry}.

    @param places: the picture of the bindings; it is thrown away when a binding is made.
    @param random_bytes: for generations, worker ids and binding keys.
    @param claimed: whether the Thread of a binding is being deleted just now.
    @param witness: raises for a follower that is not the process made for its spec.
    """

    epoch: str
    _bindings: IBindings
    _places: Places
    _threads: IThreads
    _policy: IBindingPolicy
    _clock: IReactorTime
    _random_bytes: Callable[[int], bytes] = attrs.field(repr=False)
    _witness: Callable[[Claim, dict[str, Any]], None]
    _claimed: Callable[[str], bool] = lambda binding_key: False
    _live: dict[str, Follower] = attrs.field(factory=dict, init=False)
    _by_link: dict[IFollowerLink, Follower] = attrs.field(factory=dict, init=False)
    _observers: list[IRegistryObserver] = attrs.field(factory=list, init=False)
    _serial: KeyedLock = attrs.field(factory=KeyedLock, init=False)
    _workspaces: Workspaces = attrs.field(init=False)
    _log = Logger()

    @_workspaces.default
    def _find_workspaces(self) -> Workspaces:
        return Workspaces(self._bindings)

    # --- views -------------------------------------------------------------------------------

    def live(self, binding_key: str) -> Follower | None:
        """See L{IRegistry.live}."""
        follower = self._live.get(binding_key)
        return follower if follower is not None and follower.link.connected else None

    def followers(self) -> list[Follower]:
        """See L{IRegistry.followers}."""
        return [each for each in self._live.values() if each.link.connected]

    def is_stale(self, binding_key: str) -> bool:
        """See L{IRegistry.is_stale}."""
        follower = self.live(binding_key)
        if follower is None:
            return True
        return (self._clock.seconds() - follower.last_heard) * 1000 > STALE_MS

    def of_link(self, link: IFollowerLink) -> Follower:
        """Return the follower that a link belongs to.

        @raise StaleGeneration: it has been replaced.
        """
        follower = self._by_link.get(link)
        if follower is None:
            raise StaleGeneration("this registration is not the current one; register again")
        return follower

    def subscribe(self, observer: IRegistryObserver) -> None:
        """See L{IRegistry.subscribe}."""
        self._observers.append(observer)

    def target_changed(
        self,
        binding_key: str,
        target: TelegramTarget | None,
        old: TelegramTarget | None,
        reason: str,
    ) -> None:
        """See L{IRegistry.target_changed}."""
        follower = self.live(binding_key)
        if follower is None:
            return
        if follower.link.registration is not None:
            follower.link.registration["target"] = _json(target)
        telling = follower.link.replace_target(_json(target), _json(old), reason)
        telling.addErrback(self._not_told)
        spawn(self._log, "telling a worker its new Thread", telling)

    def _not_told(self, failure: Failure) -> None:
        """Its link ended meanwhile: the next registration tells the target."""
        failure.trap(BusError)
        self._log.info("a worker was not told its new Thread: {reason}", reason=str(failure.value))

    # --- registration ------------------------------------------------------------------------

    @deferred
    async def register(
        self, link: IFollowerLink, registration: dict[str, Any], restore: bool
    ) -> dict[str, Any]:
        """Take a follower in; see L{pitelegram.bus.interfaces.IBusLeader.register}."""
        registration = without_stable_keys(registration)
        claim = check_claim(link.peer, registration, self._policy)
        return await self._serial.run(
            claim.directory, lambda: self._register(link, registration, claim, restore)
        )

    @deferred
    async def _register(
        self, link: IFollowerLink, registration: dict[str, Any], claim: Claim, restore: bool
    ) -> dict[str, Any]:
        self._identify(claim, registration)
        binding_key = claim.binding_key or self._workspace(claim, registration, restore)
        rivals = [
            each for each in self.followers() if is_rival(claim, binding_key, registration, each)
        ]
        check_replacement(claim, registration, link, rivals)
        await self._unclaimed(binding_key)
        await self._placed(binding_key, claim, restore)
        follower = self._new_follower(link, registration, claim, binding_key)
        await self._bindings.record_worker(
            binding_key,
            follower.worker_id,
            claim.kind,
            follower.birth.pid,
            follower.birth.birth,
            follower.generation,
            follower.instance_id,
        )
        await self._still_there(binding_key, claim, restore)
        self._replace(link, rivals)
        self._places.forget()
        self._live[binding_key] = follower
        self._by_link[link] = follower
        return self._answer(follower, registration)

    def _identify(self, claim: Claim, registration: dict[str, Any]) -> None:
        """Refuse before anything is changed: routes stay, and what was known last stays shown."""
        try:
            self._witness(claim, registration)
        except BusBadRequest as refusal:
            self._log.warn(
                "a follower of {binding} was refused: {why}",
                binding=claim.binding_key,
                why=str(refusal),
            )
            raise

    def _replace(self, link: IFollowerLink, rivals: list[Follower]) -> None:
        before = self._by_link.get(link)
        for follower in [*rivals, *([] if before is None else [before])]:
            if follower.link is not link:
                follower.link.abort()
            self._remove(follower)

    async def _unclaimed(self, binding_key: str) -> None:
        """Wait for the deletion of its Thread to end, if there is one."""
        for _ in range(int(CLAIM_PATIENCE / LOOK_SECONDS)):
            if not self._claimed(binding_key):
                break
            await sleep(self._clock, LOOK_SECONDS)

    async def _still_there(self, binding_key: str, claim: Claim, restore: bool) -> None:
        """See that its Thread was not claimed until the process was on record, which protects it."""
        if self._claimed(binding_key):
            await self._unclaimed(binding_key)
            await self._placed(binding_key, claim, restore)

    async def _placed(self, binding_key: str, claim: Claim, restore: bool) -> None:
        if restore:
            await self._restored(binding_key)
            return
        try:
            await self._threads.ensure(binding_key, claim.kind, claim.directory)
        except Refusal as refusal:
            raise BusBadRequest(str(refusal)) from None

    async def _restored(self, binding_key: str) -> None:
        """Nothing is made for who only comes back: its Thread must be there.

        @raise Refusal: C{workspace-binding-unavailable}.
        """
        binding = self._bindings.get(binding_key)
        if binding is None or binding.target is None or self._claimed(binding_key):
            raise Refusal(UNAVAILABLE, "this directory has no Thread to come back to")
        await self._threads.living(binding_key)

    def _workspace(self, claim: Claim, registration: dict[str, Any], restore: bool) -> str:
        """Find the binding of an attached worker, or a new one."""

        def is_free(binding_key: str) -> bool:
            live = self.live(binding_key)
            return live is None or is_rival(claim, "", registration, live)

        found = self._workspaces.find(claim.directory, registration, restore, is_free)
        if found is None and restore:
            raise Refusal(UNAVAILABLE, "this directory has no Thread to come back to")
        return found or f"ws-{self._random_bytes(8).hex()}"

    def _new_follower(
        self,
        link: IFollowerLink,
        registration: dict[str, Any],
        claim: Claim,
        binding_key: str,
    ) -> Follower:
        birth = ProcessBirth(registration["pid"], registration["processBirthId"])
        last = self._bindings.last_worker(binding_key)
        if last is not None and (last["pid"], last["birth"]) == (birth.pid, birth.birth):
            worker_id = last["worker_id"]
        else:
            worker_id = f"w-{self._random_bytes(8).hex()}"
        return Follower(
            binding_key=binding_key,
            kind=claim.kind,
            spec_id=claim.spec_id,
            spawn_id=claim.spawn_id,
            worker_id=worker_id,
            generation=f"g-{self._random_bytes(12).hex()}",
            instance_id=registration["instanceId"],
            birth=birth,
            link=link,
            serial=claim.directory,
            last_heard=self._clock.seconds(),
        )

    def _answer(self, follower: Follower, registration: dict[str, Any]) -> dict[str, Any]:
        binding = self._places.get(follower.binding_key)
        answer = {
            **registration,
            "registrationGeneration": follower.generation,
            "workerId": follower.worker_id,
            "bindingKey": follower.binding_key,
            "epoch": self.epoch,
            "target": _json(None if binding is None else binding.target),
            "heartbeatMs": HEARTBEAT_MS,
            "staleMs": STALE_MS,
        }
        for name, value in _names(binding).items():
            if value is None:
                answer.pop(name, None)
            else:
                answer[name] = value
        return answer

    # --- life --------------------------------------------------------------------------------

    def heartbeat(self, link: IFollowerLink, state: dict[str, Any]) -> dict[str, Any]:
        """Note a state; the first one makes the follower ready.  Returns the roster."""
        follower, state = self.of_link(link), without_stable_keys(state)
        follower.last_heard = self._clock.seconds()
        changed = state != follower.state
        moved = any(state.get(each) != follower.state.get(each) for each in ("cwd", "piReady"))
        follower.state = state
        if moved:
            self._follow_directory(follower, state)
        if not follower.ready:
            follower.ready = True
            self._tell("registered", follower)
        elif changed:
            self._tell("state_changed", follower)
        slots = [self._places.get(each.binding_key) for each in self.followers()]
        own = self._places.get(follower.binding_key)
        return {
            "liveSlots": sorted(each.slot for each in slots if each is not None and each.slot),
            "displayTitle": None if own is None else own.title,
            "epoch": self.epoch,
        }

    def _follow_directory(self, follower: Follower, state: dict[str, Any]) -> None:
        """Its session may be one of another project: the Thread stays, the binding follows.

        Before Pi is up nothing is known of its session.
        """
        cwd = state.get("cwd")
        if state.get("piReady") is False or not isinstance(cwd, str) or not is_directory(cwd):
            return
        directory = os.path.realpath(cwd)
        binding = self._places.get(follower.binding_key)
        if binding is not None and binding.directory != directory:
            busy = at_work(state)
            moving = self._threads.moved(follower.binding_key, directory, busy)
            spawn(self._log, "following a worker to another directory", moving)

    @deferred
    async def disconnect(
        self, link: IFollowerLink, reason: str, delete_thread: bool
    ) -> dict[str, Any]:
        """A follower leaves by itself; of its Thread L{BusLeader} decides."""
        return await self._serial.run(self.of_link(link).serial, lambda: self._leave(link))

    @deferred
    async def _leave(self, link: IFollowerLink) -> dict[str, Any]:
        self._remove(self.of_link(link))
        return {"thread": "kept"}

    def lost(self, link: IFollowerLink) -> None:
        """A connection ended."""
        follower = self._by_link.get(link)
        if follower is not None:
            self._remove(follower)

    def _remove(self, follower: Follower) -> None:
        if self._by_link.get(follower.link) is follower:
            del self._by_link[follower.link]
        if self._live.get(follower.binding_key) is follower:
            del self._live[follower.binding_key]
            self._tell("lost", follower)

    def _tell(self, event: str, follower: Follower) -> None:
        for observer in list(self._observers):
            try:
                getattr(observer, event)(follower)
            except Exception:
                self._log.failure("an observer of registrations failed")


def is_directory(cwd: str) -> bool:
    """Whether a text may be the path of a directory; it need not be there (any more)."""
    try:
        length = len(cwd.encode())
    except UnicodeEncodeError:
        return False
    return os.path.isabs(cwd) and "\0" not in cwd and length <= 4096


def _json(target: TelegramTarget | None) -> dict[str, int] | None:
    return None if target is None else target.as_json()


def _names(binding: Binding | None) -> dict[str, str | None]:
    return {
        "slot": None if binding is None else binding.slot,
        "threadName": None if binding is None else binding.thread_name,
        "displayTitle": None if binding is None else binding.title,
        "manualName": None if binding is None else binding.manual_name,
    }
