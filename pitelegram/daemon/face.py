"""What the daemon shows and does on the control socket and in the panel."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from zope.interface import implementer

from pitelegram import __version__
from pitelegram.control import status as documents
from pitelegram.control.interfaces import IDaemon
from pitelegram.errors import Refusal
from pitelegram.kernel.deferring import deferred
from pitelegram.leader import LeaderService
from pitelegram.panel.interfaces import IStatusSource
from pitelegram.supervisor.interfaces import WorkerView

if TYPE_CHECKING:
    from pitelegram.daemon.service import Daemon

ACTOR = "operator"

CONTROLS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "worker.prompt": lambda args: {"type": "prompt", "message": args["text"]},
    "worker.steer": lambda args: {"type": "steer", "message": args["text"]},
    "worker.abort": lambda args: {"type": "abort"},
    "worker.clear_queue": lambda args: {"type": "clear_queue"},
    "worker.get_state": lambda args: {"type": "get_state"},
    "worker.new_session": lambda args: {"type": "new_session"},
    "worker.compact": lambda args: (
        {"type": "compact", "customInstructions": args["instructions"]}
        if args.get("instructions")
        else {"type": "compact"}
    ),
    "worker.set_model": lambda args: {
        "type": "set_model",
        "provider": args["provider"],
        "modelId": args["model"],
    },
    "worker.set_thinking_level": lambda args: {
        "type": "set_thinking_level",
        "level": args["level"],
    },
}
"""Actions that are passed to the worker, as the bus wants them."""


@implementer(IDaemon, IStatusSource)
class Face:
    """See L{IDaemon}.

    @param daemon: whose parts are shown; its leader exists by the time anything is asked.
    """

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    @property
    def _leader(self) -> LeaderService:
        leader = self._daemon.leader
        if leader is None:
            raise Refusal("backend_unavailable", "the daemon is starting; try again")
        return leader

    # --- reading ------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """See L{IDaemon.status}."""
        leader, daemon = self._leader, self._daemon
        settings = leader.ground.owner.watcher.settings
        polling = leader.poll.snapshot()
        facts = documents.Facts(
            profile=daemon.paths.profile,
            now_ms=int(time.time() * 1000),
            pid=os.getpid(),
            epoch=leader.ground.epoch,
            started_at_ms=int(daemon.started_at * 1000),
            version=__version__,
            bot_username=leader.bot_username,
            bot_id=leader.ground.bot_id,
            thread_mode=leader.threads.mode(),
            paired=settings.allowed_user_id is not None,
            polling=polling,
            not_receiving_since_ms=polling.get("not_receiving_since_ms"),
            journal=leader.journal.counts(),
            outbox=leader.outbox.counts(),
            workers=leader.supervisor.views(),
            threads={b.binding_key: (b.thread_name, b.slot) for b in leader.bindings.list()},
            attached=sum(1 for f in leader.registry.followers() if f.kind == "attached"),
            problems=[*leader.orphans.problems(), *settings.problems, *self._own_problems()],
        )
        return documents.document(facts)

    def workers(self, private: bool) -> list[dict[str, Any]]:
        """See L{IDaemon.workers}."""
        listed: list[dict[str, Any]] = self.status()["workers"]
        if not private:
            return listed
        views = self._leader.supervisor.views()
        return [
            {**entry, **documents.private_part(view)}
            for entry, view in zip(listed, views, strict=True)
        ]

    def outbox(self) -> list[dict[str, Any]]:
        """See L{IDaemon.outbox}."""
        names = ("key", "state", "reason", "attempts", "created_at_ms")
        return [{name: item[name] for name in names} for item in self._leader.outbox.items()]

    def events(self, limit: int) -> list[dict[str, Any]]:
        """See L{IDaemon.events}."""
        return self._daemon.events.newest(limit)

    def subscribe(self, observer: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
        """See L{IDaemon.subscribe}."""
        return self._daemon.events.subscribe(observer)

    # --- doing --------------------------------------------------------------------------------

    @deferred
    async def perform(
        self, action: str, target: dict[str, Any], args: dict[str, Any], request_id: str
    ) -> dict[str, Any]:
        """See L{IDaemon.perform}."""
        supervisor = self._leader.supervisor
        if action == "worker.start":
            return named(await supervisor.start(args["directory"], ACTOR))
        if action == "outbox.retry":
            if not await self._leader.delivery.intake.again(args["key"]):
                raise Refusal("not_found", "no parked or refused delivery has that key")
            return {"key": args["key"]}
        if not target:
            raise Refusal("backend_unsupported", "this daemon cannot do that")
        view = self._view(target)
        if action == "resolve_target":
            return named(view)
        if action == "worker.stop":
            return named(await supervisor.stop(view.spec_id, ACTOR))
        if action == "worker.restart":
            return named(await supervisor.restart(view.spec_id, ACTOR))
        if action == "worker.forget":
            await supervisor.forget(view.spec_id, ACTOR)
            return named(view)
        if action in CONTROLS:
            return await self._control(view, request_id, CONTROLS[action](args))
        raise Refusal("backend_unsupported", "this daemon cannot do that")

    @deferred
    async def _control(
        self, view: WorkerView, request_id: str, command: dict[str, Any]
    ) -> dict[str, Any]:
        follower = self._leader.registry.live(view.binding_key)
        if follower is None or not follower.ready:
            why = f"worker {view.name} is not connected now"
            if view.state in ("stopped", "failed"):
                why = f"worker {view.name} is {view.state}; pi-telegram workers restart starts it"
            raise Refusal("backend_unavailable", why)
        result = await follower.link.control(request_id, command)
        return result if isinstance(result, dict) else {"result": result}

    def _view(self, target: dict[str, Any]) -> WorkerView:
        view: WorkerView | None = self._leader.supervisor.find(
            name=target.get("name"), worker_id=target.get("worker_id")
        )
        if view is None:
            raise Refusal("unknown_worker", "no worker has that name or id")
        return view

    def _own_problems(self) -> list[str]:
        leader = self._leader
        found = [
            f"worker {view.name} is silent, or not connected"
            for view in leader.supervisor.views()
            if view.state == "running" and leader.registry.is_stale(view.binding_key)
        ]
        if leader.delivery.sender.problem is not None:
            found.append(leader.delivery.sender.problem)
        if self._leader.ground.database.recovered is not None:
            found.append(
                "the store was damaged at this start; a new one was made, the old one is kept"
            )
        if self._leader.ground.owner.watcher.settings.recovered:
            found.append(
                "telegram.json was not valid JSON and was moved aside; nothing is cleaned up"
            )
        unusable = self._leader.ground.owner.watcher.problem
        if unusable is not None:
            found.append(f"telegram.json changed and cannot be used: {unusable}")
        ownership = self._daemon.ownership
        if ownership is not None and ownership.problem is not None:
            found.append(f"the transport lock cannot be kept fresh: {ownership.problem}")
        return found


def named(view: WorkerView) -> dict[str, Any]:
    """Return a worker as the result of a command."""
    return {"worker_id": view.worker_id, "name": view.name, "state": view.state}
