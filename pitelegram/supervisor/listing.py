"""A worker as listings show it."""

from __future__ import annotations

from typing import Any

from pitelegram.ids import ProcessBirth, managed_binding
from pitelegram.kernel.redact import redact_public
from pitelegram.store.rows import Spec
from pitelegram.supervisor.interfaces import WorkerView
from pitelegram.supervisor.life import RESTING, State

ACTIVITIES = ("idle", "active", "queued", "compacting")
ERROR_LIMIT = 500
MODEL_LIMIT = 60


def worker_view(
    spec: Spec,
    state: State,
    follower: Any | None,
    *,
    process: ProcessBirth | None,
    pi: ProcessBirth | None,
    session_file: str | None,
    restarts: int,
    last_error: str | None,
    until_ms: int | None,
) -> WorkerView:
    """Put together what is known; processes are named only while one may live.

    @param follower: its live registration, or None.
    @param last_error: redacted already: it may be asked for many times.
    """
    reported = follower.state if follower is not None else {}
    alive = state not in RESTING
    told = reported.get("lastError")
    error = last_error or (
        redact_public(" ".join(str(told).split()), ERROR_LIMIT) if told else None
    )
    queued, activity = reported.get("queued"), reported.get("activity")
    model = reported.get("model")
    return WorkerView(
        spec_id=spec.spec_id,
        binding_key=managed_binding(spec.spec_id),
        name=spec.name,
        directory=spec.directory,
        state=state.value,
        activity=activity if activity in ACTIVITIES else "idle",
        queued=queued if type(queued) is int else 0,
        restarts=restarts,
        worker_id=follower.worker_id if follower is not None else None,
        pid=process.pid if alive and process is not None else None,
        pi_pid=pi.pid if alive and pi is not None else None,
        session_file=session_file or spec.session_file,
        last_error=error,
        until_ms=until_ms if state is State.BACKOFF else None,
        model=" ".join(model.split())[:MODEL_LIMIT] if isinstance(model, str) else None,
    )
