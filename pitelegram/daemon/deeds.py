"""What the daemon does for a control command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pitelegram.errors import Refusal
from pitelegram.kernel.deferring import deferred
from pitelegram.leader import LeaderService
from pitelegram.supervisor.interfaces import WorkerView

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


class Deeds:
    """Does what L{pitelegram.control.interfaces.IDaemon.perform} says.

    @param leader: returns the leader, or refuses while there is none.
    """

    def __init__(self, leader: Callable[[], LeaderService]) -> None:
        self._lead = leader

    @property
    def _leader(self) -> LeaderService:
        return self._lead()

    @deferred
    async def perform(
        self, action: str, target: dict[str, Any], args: dict[str, Any], request_id: str
    ) -> dict[str, Any]:
        """See L{pitelegram.control.interfaces.IDaemon.perform}."""
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


def named(view: WorkerView) -> dict[str, Any]:
    """Return a worker as the result of a command."""
    return {"worker_id": view.worker_id, "name": view.name, "state": view.state}
