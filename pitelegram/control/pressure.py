"""C{storage_pressure}: figures are published only when they make sense together.

Each part must have exactly its members, whole numbers that are not negative (C{True} is none), totals
that add up, and the flag that follows from its figures.  A part that has not is shown as zeros, and the
whole as C{degraded}: a wrong figure is never shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

LARGE_LOG = 64 * 1024 * 1024
"""Bytes of the write-ahead log that are a problem."""

DISKS = ("ok", "low", "full", "unknown")
MAINTENANCE = ("never", "ok", "failed")

_LARGEST = 2**63 - 1

Figures = Mapping[str, Any]


@attrs.frozen
class _Table:
    """What is told of one table.

    @ivar numbers: its members beside C{total} and C{storage_pressure}.
    @ivar states: the members of C{states}, none for a table without.
    @ivar fits: whether figures of the right form make sense together.
    @ivar presses: what C{storage_pressure} must be, None for a table without that flag.
    """

    numbers: tuple[str, ...]
    states: tuple[str, ...] = ()
    fits: Callable[[Figures], bool] = lambda figures: True
    presses: Callable[[Figures], bool] | None = None

    def zeros(self) -> dict[str, Any]:
        """Return the table with nothing in it."""
        empty: dict[str, Any] = {"total": 0}
        if self.states:
            empty["states"] = dict.fromkeys(self.states, 0)
        empty.update(dict.fromkeys(self.numbers, 0))
        if self.presses is not None:
            empty["storage_pressure"] = False
        return empty

    def is_right(self, figures: Any) -> bool:
        """Whether these figures may be shown."""
        if not isinstance(figures, dict) or set(figures) != set(self.zeros()):
            return False
        if not all(_is_count(figures[name]) for name in ("total", *self.numbers)):
            return False
        if self.states and not _adds_up(figures["states"], self.states, figures["total"]):
            return False
        if self.presses is not None:
            flag = figures["storage_pressure"]
            if type(flag) is not bool or flag != self.presses(figures):
                return False
        return self.fits(figures)


def _aged(figures: Figures) -> bool:
    return bool(figures["overdue"] <= figures["eligible"] <= figures["total"])


def _settled(figures: Figures) -> bool:
    return _aged(figures) and bool(figures["eligible"] <= figures["states"]["settled"])


def _ended(figures: Figures) -> bool:
    return _aged(figures) and bool(figures["eligible"] <= figures["states"]["ended"])


def _beyond(figures: Figures) -> bool:
    pool = max(0, figures["total"] - figures["retention_count"])
    return _aged(figures) and bool(figures["eligible"] <= pool)


def _aside(figures: Figures) -> bool:
    states = figures["states"]
    return bool(
        figures["unresolved"] == states["uncertain"] + states["dead_letter"] + states["hold"]
    )


def _receipts(figures: Figures) -> bool:
    pool = figures["total"] - figures["states"]["send_started"]
    beyond = max(0, pool - figures["retention_count"])
    return bool(
        figures["stale_active"] <= figures["states"]["send_started"]
        and figures["eligible"] <= beyond
    )


def _is_late(figures: Figures) -> bool:
    return bool(figures["overdue"] > 0)


_BY_AGE = ("eligible", "overdue", "retention_seconds")

TABLES: Mapping[str, _Table] = {
    "journal": _Table(
        _BY_AGE,
        ("pending", "forwarding", "held", "retry_wait", "failed", "settled"),
        _settled,
        _is_late,
    ),
    "outbox": _Table(
        ("unresolved",),
        ("pending", "sending", "retry_wait", "uncertain", "dead_letter", "hold"),
        _aside,
    ),
    "tombstones": _Table((*_BY_AGE, "retention_count"), (), _beyond, _is_late),
    "commands": _Table(
        (
            "stale_active",
            "eligible",
            "retry_horizon_seconds",
            "retention_seconds",
            "retention_count",
        ),
        ("reserved", "send_started", "accepted", "rejected", "uncertain"),
        _receipts,
        lambda figures: bool(figures["stale_active"] > 0 or figures["eligible"] > 0),
    ),
    "audit": _Table(_BY_AGE, (), _aged, _is_late),
    "messages": _Table(_BY_AGE, (), _aged, _is_late),
    "spawns": _Table(_BY_AGE, ("intended", "made", "registered", "ended"), _ended, _is_late),
}

_COMMITS = ("count", "total_us", "window", "p50_us", "p99_us")


def checked(raw: Figures) -> dict[str, Any]:
    """Return C{storage_pressure} of the status document.

    @param raw: what L{pitelegram.store.pressure.Pressure.look} gave; a table that is None is not
        there yet.
    """
    doubts: list[str] = []

    def part(name: str, is_right: Callable[[Any], bool], else_: Any) -> Any:
        value = raw.get(name)
        if is_right(value):
            return value
        doubts.append(name)
        return else_

    shown: dict[str, Any] = {
        "database_bytes": part("database_bytes", _is_count, 0),
        "wal_bytes": part("wal_bytes", _is_count, 0),
        "disk": part("disk", lambda value: value in DISKS, "unknown"),
        "commits": part("commits", _are_commits, dict.fromkeys(_COMMITS, 0)),
        "maintenance": part("maintenance", _is_maintenance, _never()),
    }
    for name, table in TABLES.items():
        absent = name in raw and raw[name] is None
        shown[name] = table.zeros() if absent else part(name, table.is_right, table.zeros())
    doubts += sorted(set(raw) - set(shown))
    pressing = any(shown[name].get("storage_pressure", False) for name in TABLES)
    scarce = shown["disk"] in ("low", "full") or shown["wal_bytes"] > LARGE_LOG
    return {"status": "degraded" if doubts else "ok", "pressure": pressing or scarce, **shown}


def problems(shown: Figures) -> list[str]:
    """Return the sentences about what L{checked} returned."""
    found = []
    if shown["status"] != "ok":
        found.append("figures about the store make no sense together and are not shown")
    if shown["disk"] == "full":
        found.append("the disk is full; nothing new can be stored until there is room")
    elif shown["disk"] == "low":
        found.append("the disk is nearly full")
    if shown["wal_bytes"] > LARGE_LOG:
        found.append("the store's log has grown large; something reads the store all the time")
    if shown["outbox"]["states"]["hold"]:
        found.append(f"{shown['outbox']['states']['hold']} answer(s) are held back for safety")
    late = [name for name, table in TABLES.items() if "overdue" in table.numbers]
    late = [name for name in late if shown[name]["overdue"]]
    if late:
        found.append(f"what is old is not removed from the store ({', '.join(late)})")
    if shown["commands"]["stale_active"]:
        found.append(f"{shown['commands']['stale_active']} command(s) were never ended")
    return found


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST


def _adds_up(states: Any, names: tuple[str, ...], total: int) -> bool:
    return (
        isinstance(states, dict)
        and set(states) == set(names)
        and all(_is_count(count) for count in states.values())
        and sum(states.values()) == total
    )


def _are_commits(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and set(value) == set(_COMMITS)
        and all(_is_count(each) for each in value.values())
        and value["window"] <= value["count"]
        and value["p50_us"] <= value["p99_us"] <= value["total_us"]
    )


def _is_maintenance(value: Any) -> bool:
    if not isinstance(value, dict) or set(value) != set(_never()):
        return False
    at = value["last_completed_at_ms"]
    if value["status"] not in MAINTENANCE or not (at is None or _is_count(at)):
        return False
    if not _is_count(value["batch_size"]) or not _is_count(value["cadence_seconds"]):
        return False
    return (value["status"] != "ok" or at is not None) and (
        value["status"] != "never" or at is None
    )


def _never() -> dict[str, Any]:
    return {"status": "never", "last_completed_at_ms": None, "batch_size": 0, "cadence_seconds": 0}
