"""The public status document (contract, "Status document").

It holds no chat, Thread or message ids, no owner id, no paths, session ids, argv, environment,
output, tokens or secrets: it is built from named parts only, never by copying somebody's dict.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import attrs

from pitelegram.control import pressure
from pitelegram.supervisor.interfaces import WorkerView

SCHEMA_VERSION = 1

NAMES_SHOWN = 5
"""Workers that a problem names; of more it tells the number."""

DOWN_AFTER_MS = 60_000
"""Not receiving for this long is C{health: down}."""


@attrs.frozen(kw_only=True)
class Facts:
    """Everything the document is made of.  Times are milliseconds since the epoch.

    @ivar threads: binding key to C{(title, slot)}; the title as the Thread has it.
    @ivar continuity: binding key to its public C{stable_key} and version; absent or empty for none.
    @ivar not_receiving_since_ms: None while receiving.
    @ivar problems: sentences of the parts that have one, already public.
    """

    profile: str
    now_ms: int
    pid: int
    epoch: str
    started_at_ms: int
    version: str
    bot_username: str | None
    bot_id: int | None
    thread_mode: str
    paired: bool
    polling: dict[str, Any]
    not_receiving_since_ms: int | None
    journal: dict[str, int]
    outbox: dict[str, int]
    workers: Sequence[WorkerView]
    threads: dict[str, tuple[str | None, str | None]]
    attached: int
    problems: Sequence[str] = ()
    storage_pressure: dict[str, Any] = attrs.field(factory=dict)
    continuity: dict[str, dict[str, Any]] = attrs.field(factory=dict)


def document(facts: Facts) -> dict[str, Any]:
    """Return the status document."""
    stored = pressure.checked(facts.storage_pressure)
    problems = [*facts.problems, *_own_problems(facts), *pressure.problems(stored)]
    return {
        "schema_version": SCHEMA_VERSION,
        "profile": facts.profile,
        "written_at_ms": facts.now_ms,
        "daemon": {
            "role": "daemon",
            "pid": facts.pid,
            "epoch": facts.epoch,
            "started_at_ms": facts.started_at_ms,
            "version": facts.version,
        },
        "bot": {
            "username": facts.bot_username,
            "id": facts.bot_id,
            "thread_mode": facts.thread_mode,
            "paired": facts.paired,
        },
        "polling": {
            key: facts.polling[key]
            for key in ("phase", "last_success_ms", "consecutive_failures", "receiving")
        },
        "journal": _counts(facts.journal, ("pending", "held", "retry_wait", "failed")),
        "outbox": _counts(facts.outbox, ("pending", "sending", "uncertain", "dead_letter")),
        "workers": [
            worker(
                view,
                *facts.threads.get(view.binding_key, (None, None)),
                facts.continuity.get(view.binding_key, {}),
            )
            for view in facts.workers
        ],
        "attached": {"count": facts.attached},
        "health": _health(facts, problems),
        "problems": problems,
        "storage_pressure": stored,
    }


def worker(
    view: WorkerView, thread_name: str | None, slot: str | None, meta: dict[str, Any]
) -> dict[str, Any]:
    """Return one worker's public part."""
    return {
        "name": view.name,
        "state": view.state,
        "activity": view.activity,
        "queued": view.queued,
        "restarts": view.restarts,
        "thread_name": thread_name,
        "slot": slot,
        "meta": meta,
    }


def private_part(view: WorkerView) -> dict[str, Any]:
    """Return what only the local operator sees (C{workers list --private})."""
    return {
        "worker_id": view.worker_id,
        "directory": view.directory,
        "pid": view.pid,
        "pi_pid": view.pi_pid,
        "session_file": view.session_file,
        "last_error": view.last_error,
    }


def down(profile: str, now_ms: int, reason: str) -> dict[str, Any]:
    """Return the document without a daemon: C{health} is C{down}, with the reason."""
    return {
        "schema_version": SCHEMA_VERSION,
        "profile": profile,
        "written_at_ms": now_ms,
        "daemon": None,
        "health": "down",
        "problems": [reason],
        "workers": [],
    }


def instant(at_ms: int) -> str:
    """Return a time as people and programs read it: UTC, to the second."""
    return datetime.fromtimestamp(at_ms / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _counts(counts: dict[str, int], names: Sequence[str]) -> dict[str, int]:
    return {name: int(counts.get(name, 0)) for name in names}


def _own_problems(facts: Facts) -> list[str]:
    found = []
    if facts.not_receiving_since_ms is not None:
        since = instant(facts.not_receiving_since_ms)
        found.append(f"not receiving from Telegram since {since} (phase {facts.polling['phase']})")
    if facts.polling["phase"] == "conflict":
        found.append(
            "another poller or a webhook takes this bot's updates; end it (another profile or"
            " machine with the same token?)"
        )
    if facts.polling["phase"] == "persisting" and facts.polling["consecutive_failures"]:
        found.append("updates cannot be stored; Telegram keeps them until they can")
    if not facts.paired:
        found.append("no owner is paired; run pi-telegram setup")
    if facts.journal.get("failed"):
        found.append(f"{facts.journal['failed']} update(s) could not be delivered to a worker")
    if facts.outbox.get("uncertain"):
        found.append(f"{facts.outbox['uncertain']} answer(s) may or may not have arrived")
    if facts.outbox.get("dead_letter"):
        found.append(f"{facts.outbox['dead_letter']} answer(s) were refused by Telegram")
    for state in ("failed", "backoff"):
        names = [view.name for view in facts.workers if view.state == state]
        if names:
            verb = "is" if len(names) == 1 else "are"
            found.append(f"{_workers(names)} {verb} in state {state}")
    found += [
        f"worker {view.name} still runs, but did not register"
        for view in facts.workers
        if view.state == "adopting" and view.last_error is not None
    ]
    return found


def _workers(names: Sequence[str]) -> str:
    """Name some workers: one sentence for all of them, however many they are."""
    if len(names) == 1:
        return f"worker {names[0]}"
    shown = ", ".join(names[:NAMES_SHOWN])
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"workers {shown}{more}"


def _health(facts: Facts, problems: Sequence[str]) -> str:
    since = facts.not_receiving_since_ms
    if since is not None and facts.now_ms - since > DOWN_AFTER_MS:
        return "down"
    return "degraded" if problems else "ok"
