"""C{/metrics}: the status document as Prometheus text 0.0.4.

Rendered here because it is a page of text: the client library would bring a registry of its own, which
this program has no use for, and its HTTP servers into every daemon.  Its parser checks this in the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"

HEALTH = ("ok", "degraded", "down")
PHASES = ("starting", "long-poll", "persisting", "retrying", "conflict", "stopped")
WORKER_STATES = (
    "stopped",
    "spawning",
    "running",
    "draining",
    "aborting",
    "closing",
    "terminating",
    "killing",
    "backoff",
    "failed",
    "adopting",
)
DISKS = ("ok", "low", "full", "unknown")

Value = float | int | None
Samples = Iterable[tuple[Mapping[str, str], Value]]


@attrs.define(eq=False)
class _Page:
    """Collects families."""

    lines: list[str] = attrs.field(factory=list)

    def family(self, name: str, kind: str, text: str, samples: Samples) -> None:
        """Add one family; a sample without a value is left out, and so is a family without any."""
        written = [
            f"{name}{_labels(labels)} {_number(value)}"
            for labels, value in samples
            if value is not None
        ]
        if written:
            self.lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}", *written]

    def gauge(self, name: str, text: str, value: Value) -> None:
        """Add a gauge with one sample."""
        self.family(name, "gauge", text, [({}, value)])

    def counts(self, name: str, text: str, counts: Mapping[str, int]) -> None:
        """Add a gauge by state."""
        self.family(name, "gauge", text, [({"state": s}, n) for s, n in counts.items()])

    def one_of(self, name: str, label: str, text: str, names: Iterable[str], now: Any) -> None:
        """Add a gauge of which exactly one sample is 1."""
        self.family(name, "gauge", text, [({label: each}, int(each == now)) for each in names])

    def bytes(self) -> bytes:
        """Return the page."""
        return ("\n".join(self.lines) + "\n").encode()


def render(status: Mapping[str, Any]) -> bytes:
    """Return a status document, which is public already, as a page of metrics."""
    page = _Page()
    _daemon(page, status)
    _polling(page, status["polling"])
    page.counts(
        "pitelegram_journal_updates", "Updates that are not settled, by state.", status["journal"]
    )
    page.counts(
        "pitelegram_outbox_deliveries", "Answers that did not arrive yet.", status["outbox"]
    )
    _workers(page, status)
    _store(page, status["storage_pressure"])
    return page.bytes()


def _daemon(page: _Page, status: Mapping[str, Any]) -> None:
    daemon = status["daemon"]
    page.family(
        "pitelegram_build_info",
        "gauge",
        "Version of the running daemon.",
        [({"version": daemon["version"], "profile": status["profile"]}, 1)],
    )
    uptime = max(0, status["written_at_ms"] - daemon["started_at_ms"]) / 1000
    page.gauge("pitelegram_uptime_seconds", "Time since the daemon started.", uptime)
    page.one_of("pitelegram_health", "health", "How the daemon is.", HEALTH, status["health"])
    page.gauge("pitelegram_problems", "Problems in the status document.", len(status["problems"]))


def _polling(page: _Page, polling: Mapping[str, Any]) -> None:
    receiving = int(polling["receiving"])
    page.gauge("pitelegram_polling_receiving", "Whether updates arrive.", receiving)
    page.one_of(
        "pitelegram_polling_phase", "phase", "What the long poll does.", PHASES, polling["phase"]
    )
    page.gauge(
        "pitelegram_polling_consecutive_failures",
        "Polls that failed since the last good one.",
        polling["consecutive_failures"],
    )
    page.gauge(
        "pitelegram_polling_last_success_timestamp_seconds",
        "When a poll last completed.",
        _seconds(polling["last_success_ms"]),
    )


def _workers(page: _Page, status: Mapping[str, Any]) -> None:
    workers = status["workers"]
    states = dict.fromkeys(WORKER_STATES, 0)
    for worker in workers:
        states[worker["state"]] = states.get(worker["state"], 0) + 1
    page.counts("pitelegram_workers", "Managed workers by state.", states)
    page.gauge("pitelegram_attached_workers", "Attached workers.", status["attached"]["count"])
    named = [({"worker": worker["name"]}, worker) for worker in workers]
    page.family(
        "pitelegram_worker_restarts",
        "gauge",
        "Restarts of a worker after crashes, as its policy counts them.",
        [(labels, worker["restarts"]) for labels, worker in named],
    )
    page.family(
        "pitelegram_worker_queued",
        "gauge",
        "Prompts that wait for a worker.",
        [(labels, worker["queued"]) for labels, worker in named],
    )


def _store(page: _Page, pressure: Mapping[str, Any]) -> None:
    page.counts(
        "pitelegram_commands", "Receipts of control commands.", pressure["commands"]["states"]
    )
    commits = pressure["commits"]
    page.family(
        "pitelegram_store_commit_seconds",
        "summary",
        "Duration of a commit; quantiles over the newest.",
        [
            ({"quantile": "0.5"}, commits["p50_us"] / 1e6),
            ({"quantile": "0.99"}, commits["p99_us"] / 1e6),
        ],
    )
    page.lines += [
        f"pitelegram_store_commit_seconds_sum {_number(commits['total_us'] / 1e6)}",
        f"pitelegram_store_commit_seconds_count {_number(commits['count'])}",
    ]
    page.gauge("pitelegram_store_bytes", "Size of the store.", pressure["database_bytes"])
    page.gauge("pitelegram_store_wal_bytes", "Size of its log.", pressure["wal_bytes"])
    page.one_of("pitelegram_disk", "disk", "Room for the store.", DISKS, pressure["disk"])
    page.gauge(
        "pitelegram_storage_pressure", "Whether storage is short.", int(pressure["pressure"])
    )
    page.family(
        "pitelegram_store_rows",
        "gauge",
        "Rows by table.",
        [({"table": t}, part["total"]) for t, part in pressure.items() if _is_table(part)],
    )
    maintenance = pressure["maintenance"]
    page.gauge(
        "pitelegram_maintenance_failed",
        "Whether the last maintenance failed.",
        int(maintenance["status"] == "failed"),
    )
    page.gauge(
        "pitelegram_maintenance_last_completed_timestamp_seconds",
        "When maintenance last completed.",
        _seconds(maintenance["last_completed_at_ms"]),
    )


def _is_table(part: Any) -> bool:
    return isinstance(part, dict) and "total" in part


def _seconds(at_ms: int | None) -> Value:
    return None if at_ms is None else at_ms / 1000


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float | int | None) -> str:
    return repr(value)
