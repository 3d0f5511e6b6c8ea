"""What the daemon does for a control command."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred

from pitelegram.bus.interfaces import IFollowerLink
from pitelegram.control.interfaces import Subject
from pitelegram.daemon.operations import OPERATIONS
from pitelegram.daemon.workerport import BusPort
from pitelegram.errors import LaunchFailed, LinkLost, NobodyKnows, Refusal
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.leader import LeaderService
from pitelegram.ownership.continuity import without_stable_keys
from pitelegram.store.receipts import ICommands
from pitelegram.store.rows import Receipt
from pitelegram.supervisor.interfaces import WorkerView
from pitelegram.supervisor.life import LADDER

ACTOR = "operator"

PREFIX = "spec:"

MOST_FRESH = 1000

PATIENCE = 60.0
"""Seconds in which a worker that lives has to come back, to be asked what became of a command."""

LOOK_SECONDS = 0.25

UNASKED = ("decision_not_pending", "invalid_selection")
"""Refused before the worker is asked: of what it did the first time that tells nothing."""

PASSING = ("backend_unavailable", "stale_target")
"""Refusals of a worker that is on its way back."""

RESTING = ("stopped", "failed")

SPAWNING = "spawning"

THREADS = ("threads.review", "threads.delete_reviewed")


class Deeds:
    """Does what L{pitelegram.control.interfaces.IDaemon} promises of commands.

    @param leader: returns the leader, or refuses while there is none.
    @param commands: tells what was committed for a request.
    """

    def __init__(
        self, leader: Callable[[], LeaderService], commands: Callable[[], ICommands]
    ) -> None:
        self._lead = leader
        self._commands = commands
        self._fresh: dict[str, str] = {}

    @property
    def _leader(self) -> LeaderService:
        return self._lead()

    # --- before -----------------------------------------------------------------------------------

    def resolve(self, action: str, target: dict[str, Any], args: dict[str, Any]) -> Subject:
        """See L{pitelegram.control.interfaces.IDaemon.resolve}."""
        if action == "worker.start":
            return self._resolve_directory(args["directory"])
        if not target:
            return Subject()
        view: WorkerView | None = self._leader.supervisor.find(
            name=target.get("name"), worker_id=target.get("worker_id")
        )
        if view is None:
            raise Refusal(
                "unknown_worker", "no worker has that name or id; see pi-telegram workers list"
            )
        return Subject(key=f"{PREFIX}{view.spec_id}", name=view.name, worker_id=view.worker_id)

    def _resolve_directory(self, directory: str) -> Subject:
        real = os.path.realpath(directory)
        spec = self._leader.specs.by_directory(real)
        if spec is not None:
            self._fresh.pop(real, None)
            return Subject(key=f"{PREFIX}{spec.spec_id}", name=spec.name)
        if len(self._fresh) >= MOST_FRESH:
            self._fresh.clear()
        spec_id = self._fresh.setdefault(real, self._leader.ground.random_bytes(8).hex())
        return Subject(key=f"{PREFIX}{spec_id}")

    def check(self, action: str, subject: Subject) -> None:
        """See L{pitelegram.control.interfaces.IDaemon.check}."""
        if action in OPERATIONS:
            self._link(self._view(subject))

    # --- doing ------------------------------------------------------------------------------------

    @deferred
    async def perform(
        self, action: str, subject: Subject, args: dict[str, Any], request_id: str
    ) -> dict[str, Any]:
        """See L{pitelegram.control.interfaces.IDaemon.perform}."""
        supervisor = self._leader.supervisor
        if action == "worker.start":
            spec_id = subject.key.removeprefix(PREFIX)
            short = supervisor.memory_warning(but=spec_id)
            starting = supervisor.start(args["directory"], ACTOR, spec_id, request_id)
            done = await self._launched(subject, starting)
            return {**done, "warnings": [*done["warnings"], *([short] if short else [])]}
        if action == "outbox.retry":
            return await self._send_again(args["key"])
        if action in THREADS:
            return await self._threads(action)
        view = self._view(subject)
        if action == "resolve_target":
            return named(view)
        if action == "worker.stop":
            return named(await supervisor.stop(view.spec_id, ACTOR, request_id))
        if action == "worker.restart":
            return await self._launched(subject, supervisor.restart(view.spec_id, ACTOR))
        if action == "worker.forget":
            await supervisor.forget(view.spec_id, ACTOR)
            return named(view)
        if action in OPERATIONS:
            return await self._operate(view, action, request_id, args)
        raise Refusal("backend_unsupported", "this daemon cannot do that")

    async def _launched(self, subject: Subject, launch: Deferred[WorkerView]) -> dict[str, Any]:
        """The wish is stored: a worker that is tried again by itself was not refused."""
        try:
            return {**named(await launch), "warnings": []}
        except LaunchFailed as error:
            view = self._find(subject)
            if error.permanent or view is None or view.state != "backoff":
                raise
            return {**named(view), "warnings": [f"{error}; it is tried again by itself"]}

    async def _send_again(self, key: str) -> dict[str, Any]:
        if self._leader.outbox.state_of(key) == "hold":
            raise Refusal("rejected", "this answer is held back for safety; it is never sent")
        if not await self._leader.delivery.intake.again(key):
            raise Refusal("not_found", "no parked or refused delivery has that key")
        return {"key": key}

    async def _threads(self, action: str) -> dict[str, Any]:
        cleanup = self._leader.cleanup
        if action == "threads.review":
            _, names = await cleanup.review()
            return {"inactive": names}
        deleted, kept = await cleanup.delete_newest()
        return {"deleted": deleted, "kept": kept}

    async def _operate(
        self, view: WorkerView, action: str, request_id: str, args: dict[str, Any]
    ) -> dict[str, Any]:
        """Have the worker do it; what it says of public keys is not its to say."""
        if action == "worker.switch_session":
            args = {**args, "path": self._leader.supervisor.session_file(args["session_ref"])}
        port = BusPort(lambda: self._link(view))
        result = await OPERATIONS[action](port, request_id, args)
        found: dict[str, Any] = without_stable_keys(result)
        return found

    # --- afterwards -------------------------------------------------------------------------------

    @deferred
    async def settle(
        self, action: str, subject: Subject, args: dict[str, Any], receipt: Receipt
    ) -> dict[str, Any]:
        """See L{pitelegram.control.interfaces.IDaemon.settle}."""
        if action in OPERATIONS:
            return await self._ask_again(subject, action, receipt.request_id, args)
        view = self._find(subject)
        if action == "worker.forget" and view is None:
            return {"worker_id": None, "name": None, "state": "stopped"}
        if action in ("worker.start", "worker.stop"):
            if not self._commands().has_effect(receipt.request_id):
                raise Refusal("not-begun", "the daemon ended before it began; nothing was done")
            if action == "worker.stop":
                view = await self._after_descent(subject)
            if view is not None:
                return named(view)
        if action == "worker.restart":
            return await self._restarted(subject, receipt.started_ms or 0)
        raise NobodyKnows()

    async def _restarted(self, subject: Subject, since_ms: int) -> dict[str, Any]:
        """Look for a spawn since then; one that is being begun has not been recorded yet."""
        while (view := self._find(subject)) is not None:
            spawn = self._leader.specs.live_spawn(view.spec_id)
            if spawn is not None and spawn.intended_ms >= since_ms:
                return named(view)
            if view.state != SPAWNING:
                break
            await sleep(self._leader.ground.reactor, LOOK_SECONDS)
        raise NobodyKnows()

    async def _after_descent(self, subject: Subject) -> WorkerView | None:
        """Wait until the worker goes down no more: a stop that was taken over is done only then."""
        while (view := self._find(subject)) is not None and view.state in LADDER:
            await sleep(self._leader.ground.reactor, LOOK_SECONDS)
        return view

    async def _ask_again(
        self, subject: Subject, action: str, request_id: str, args: dict[str, Any]
    ) -> dict[str, Any]:
        """Ask the worker, or its successor, as soon as one is connected."""
        until = self._leader.ground.monotonic() + PATIENCE
        while (view := self._find(subject)) is not None and view.state not in RESTING:
            if self._leader.ground.monotonic() >= until:
                break
            try:
                return await self._operate(view, action, request_id, args)
            except Refusal as refusal:
                if refusal.code in UNASKED:
                    break
                if refusal.code not in PASSING:
                    raise
            except LinkLost:
                pass  # its successor is asked, or it itself on its next connection
            await sleep(self._leader.ground.reactor, LOOK_SECONDS)
        raise NobodyKnows()

    # --- inside -----------------------------------------------------------------------------------

    def _link(self, view: WorkerView) -> IFollowerLink:
        follower = self._leader.registry.live(view.binding_key)
        if follower is None or not follower.ready:
            why = f"worker {view.name} is not connected now"
            if view.state in ("stopped", "failed"):
                cure = f"pi-telegram workers restart {view.name} starts it"
                why = f"worker {view.name} is {view.state}; {cure}"
            raise Refusal("backend_unavailable", why)
        link: IFollowerLink = follower.link
        return link

    def _find(self, subject: Subject) -> WorkerView | None:
        spec_id = subject.key.removeprefix(PREFIX)
        views = self._leader.supervisor.views()
        return next((view for view in views if view.spec_id == spec_id), None)

    def _view(self, subject: Subject) -> WorkerView:
        view = self._find(subject)
        if view is None:
            raise Refusal(
                "unknown_worker", "no worker has that name or id; see pi-telegram workers list"
            )
        return view


def named(view: WorkerView) -> dict[str, Any]:
    """Return a worker as the result of a command."""
    return {"worker_id": view.worker_id, "name": view.name, "state": view.state}
