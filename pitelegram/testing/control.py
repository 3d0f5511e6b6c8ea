"""Fakes behind the control socket."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred, fail, succeed
from zope.interface import implementer

from pitelegram.control.interfaces import IDaemon, Subject
from pitelegram.control.pressure import TABLES
from pitelegram.errors import NobodyKnows, Refusal
from pitelegram.store.receipts import ICommands
from pitelegram.store.rows import Claim, Receipt


@implementer(IDaemon)
@attrs.define(eq=False)
class FakeDaemon:
    """A daemon that records what it is asked and answers what it is told.

    Every selector is resolved: to C{spec:<name>}, or to C{spec:<id>} without its C{w-}.

    @ivar performed: C{(action, subject key, args, request_id)} in order.
    @ivar settled: request ids whose fate was asked for.
    @ivar answers: by action: a result, an exception, or a Deferred; missing ones give C{{}}.
    @ivar fates: likewise for L{settle}.
    @ivar unknown: names that nobody has.
    @ivar away: what L{check} raises, if anything.
    """

    document: dict[str, Any] = attrs.Factory(lambda: {"schema_version": 1, "health": "ok"})
    public_workers: list[dict[str, Any]] = attrs.Factory(list)
    private_fields: dict[str, Any] = attrs.Factory(dict)
    items: list[dict[str, Any]] = attrs.Factory(list)
    past: list[dict[str, Any]] = attrs.Factory(list)
    performed: list[tuple[str, str, dict[str, Any], str]] = attrs.Factory(list)
    settled: list[str] = attrs.Factory(list)
    fates: dict[str, Any] = attrs.Factory(dict)
    unknown: set[str] = attrs.Factory(set)
    away: Exception | None = None
    answers: dict[str, Any] = attrs.Factory(dict)
    observers: list[Callable[[dict[str, Any]], None]] = attrs.Factory(list)

    def status(self) -> dict[str, Any]:
        """The document."""
        return self.document

    def workers(self, private: bool) -> list[dict[str, Any]]:
        """The workers, with the private fields when asked for."""
        extra = self.private_fields if private else {}
        return [{**worker, **extra} for worker in self.public_workers]

    def outbox(self) -> list[dict[str, Any]]:
        """The items."""
        return self.items

    def events(self, limit: int) -> list[dict[str, Any]]:
        """The newest past events."""
        return self.past[-limit:]

    def subscribe(self, observer: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
        """Remember an observer."""
        self.observers.append(observer)
        return lambda: self.observers.remove(observer)

    def happen(self, event: dict[str, Any]) -> None:
        """Give an event to every observer."""
        for observer in list(self.observers):
            observer(event)

    def resolve(self, action: str, target: dict[str, Any], args: dict[str, Any]) -> Subject:
        """Name the subject by its selector."""
        name = target.get("name") or target.get("worker_id", "").removeprefix("w-")
        name = args["directory"] if action == "worker.start" else name
        if name in self.unknown:
            raise Refusal(
                "unknown_worker", "no worker has that name or id; see pi-telegram workers list"
            )
        return Subject(key=f"spec:{name}" if name else "", name=name or None)

    def check(self, action: str, subject: Subject) -> None:
        """Let everything through, unless told otherwise."""
        if self.away is not None:
            raise self.away

    def perform(
        self, action: str, subject: Subject, args: dict[str, Any], request_id: str
    ) -> Deferred[dict[str, Any]]:
        """Record the command and give the prepared answer."""
        self.performed.append((action, subject.key, args, request_id))
        return _prepared(self.answers.get(action, {}))

    def settle(
        self, action: str, subject: Subject, args: dict[str, Any], receipt: Receipt
    ) -> Deferred[dict[str, Any]]:
        """Record the question and give the prepared answer."""
        self.settled.append(receipt.request_id)
        return _prepared(self.fates.get(action, NobodyKnows()))


def quiet_figures(**changes: Any) -> dict[str, Any]:
    """Return what a store tells of itself in which nothing is, with these parts changed."""
    figures: dict[str, Any] = {
        "database_bytes": 4096,
        "wal_bytes": 0,
        "disk": "ok",
        "commits": {"count": 2, "total_us": 30, "window": 2, "p50_us": 10, "p99_us": 20},
        "maintenance": {
            "status": "ok",
            "last_completed_at_ms": 1_700_000_000_000,
            "batch_size": 200,
            "cadence_seconds": 3600,
        },
        **{name: table.zeros() for name, table in TABLES.items()},
    }
    return {**figures, **changes}


def _prepared(answer: Any) -> Deferred[Any]:
    if isinstance(answer, Deferred):
        return answer
    return fail(answer) if isinstance(answer, Exception) else succeed(answer)


@implementer(ICommands)
@attrs.define(eq=False)
class FaultyCommands:
    """A table of request ids that fails when told to.

    @ivar real: does the work.
    @ivar broken: by method name: the exception that it raises, without doing anything.
    @ivar broken_after: likewise, but raised after the change was made.
    """

    real: ICommands
    broken: dict[str, Exception] = attrs.Factory(dict)
    broken_after: dict[str, Exception] = attrs.Factory(dict)

    def find(self, request_id: str) -> Receipt | None:
        """One row, or None."""
        if "find" in self.broken:
            raise self.broken["find"]
        return self.real.find(request_id)

    def reserve(self, claim: Claim) -> Deferred[bool]:
        """Take an id; False when it is taken."""
        return self._do("reserve", claim)

    def send_started(self, request_id: str, fingerprint: str, owner_hash: str) -> Deferred[bool]:
        """Say that the effect begins."""
        return self._do("send_started", request_id, fingerprint, owner_hash)

    def finish(self, request_id: str, state: str, envelope: dict[str, Any]) -> Deferred[bool]:
        """Store the end."""
        return self._do("finish", request_id, state, envelope)

    def abandon(self, request_id: str, owner_hash: str) -> Deferred[bool]:
        """Remove a reserved row."""
        return self._do("abandon", request_id, owner_hash)

    def started(self, before_ms: int | None = None) -> list[Receipt]:
        """Rows left in C{send_started}."""
        return self.real.started(before_ms)

    def has_effect(self, request_id: str) -> bool:
        """Whether a change was committed."""
        return self.real.has_effect(request_id)

    def forget(self, limit: int) -> Deferred[int]:
        """Delete what is old."""
        return self._do("forget", limit)

    def _do(self, name: str, *arguments: Any) -> Deferred[Any]:
        if name in self.broken:
            return fail(self.broken[name])
        done = getattr(self.real, name)(*arguments)
        if name in self.broken_after:
            return done.addCallback(lambda _: fail(self.broken_after[name]))
        return done
