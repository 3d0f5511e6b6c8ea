"""What a worker tells about itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pitelegram.bridge.menus.status import StatusView, Usage
from pitelegram.pi.interfaces import IPiHost
from pitelegram.worker.dialogs import Dialogs
from pitelegram.worker.handover import GONE, IDLE, WAITING
from pitelegram.worker.queue import Queue
from pitelegram.worker.sessions import Sessions


class Report:
    """The heartbeat's C{state}, and what C{/status} shows.

    @param stop_phase: returns the phase of the stop ladder, None before it.
    @ivar spawn_id: this spawn.
    @ivar ready: Pi answered its first C{get_state} and has not ended.
    @ivar last_error: what ended Pi or keeps it from working; redacted.
    """

    def __init__(
        self,
        host: IPiHost,
        queue: Queue,
        dialogs: Dialogs,
        sessions: Sessions,
        spawn_id: str,
        stop_phase: Callable[[], str | None],
    ) -> None:
        self._host = host
        self._queue = queue
        self._dialogs = dialogs
        self._sessions = sessions
        self.spawn_id = spawn_id
        self._stop_phase = stop_phase
        self.ready = False
        self.last_error: str | None = None

    def state(self) -> dict[str, Any]:
        """Return the heartbeat's state."""
        pi = self._host.state or {}
        streaming, compacting = bool(pi.get("isStreaming")), bool(pi.get("isCompacting"))
        session = self._sessions.current()
        model = pi.get("model")
        optional = {
            "stopPhase": self._stop_phase(),
            "model": _model_name(model) if isinstance(model, dict) else None,
            "thinkingLevel": pi.get("thinkingLevel"),
            "sessionId": session.get("sessionId"),
            "sessionFile": session.get("sessionFile"),
            "sessionName": session.get("sessionName"),
            "sessionEntries": pi.get("messageCount"),
            "piPid": self._host.pid,
            "piBirthId": self._host.birth,
            "lastError": self.last_error or self._queue.last_refusal,
        }
        return {
            "activity": self._activity(streaming, compacting),
            "streaming": streaming,
            "compacting": compacting,
            "pending": int(pi.get("pendingMessageCount") or 0),
            "queued": self._queue.waiting,
            "waitingForInput": bool(self._dialogs.listed()),
            "cwd": self._sessions.cwd(),
            "piReady": self.ready,
            "spawnId": self.spawn_id,
            **{name: value for name, value in optional.items() if value is not None},
        }

    def full(self) -> dict[str, Any]:
        """Return what C{get_state} answers: the heartbeat's state and the open dialogs."""
        return {**self.state(), "handOver": self._queue.state, "dialogs": self._dialogs.listed()}

    def at_work(self) -> bool:
        """Whether Pi works, or something was handed to it that has not ended."""
        return self.state()["activity"] in ("active", "compacting")

    def view(self, usage: Usage | None) -> StatusView:
        """Return what the status shows, with these figures."""
        state = self.state()
        model: Any = (self._host.state or {}).get("model")
        activity = "pending" if state["activity"] == "queued" else state["activity"]
        return StatusView(
            activity=activity if self.ready else "starting",
            model=state.get("model"),
            thinking=state.get("thinkingLevel"),
            reasoning=isinstance(model, dict) and model.get("reasoning") is True,
            queued=state["queued"],
            session=state.get("sessionName"),
            waiting=state["waitingForInput"],
            error=state.get("lastError"),
            usage=usage,
        )

    def _activity(self, streaming: bool, compacting: bool) -> str:
        if compacting:
            return "compacting"
        if streaming or self._queue.state not in (IDLE, WAITING, GONE):
            return "active"
        return "queued" if self._queue.waiting else "idle"


def _model_name(model: dict[str, Any]) -> str | None:
    provider, name = model.get("provider"), model.get("id")
    if not isinstance(name, str):
        return None
    return f"{provider}/{name}" if isinstance(provider, str) else name


def has_model(state: dict[str, Any]) -> bool:
    """Whether Pi's C{get_state} names a model that can be used."""
    model = state.get("model")
    return isinstance(model, dict) and model.get("id") not in (None, "", "unknown")
