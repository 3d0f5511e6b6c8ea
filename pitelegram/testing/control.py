"""Fakes behind the control socket."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred, fail, succeed
from zope.interface import implementer

from pitelegram.control.interfaces import IDaemon
from pitelegram.store.interfaces import ICommands


@implementer(IDaemon)
@attrs.define(eq=False)
class FakeDaemon:
    """A daemon that records what it is asked and answers what it is told.

    @ivar performed: C{(action, target, args, request_id)} in order.
    @ivar answers: by action: a result, an exception, or a Deferred; missing ones give C{{}}.
    """

    document: dict[str, Any] = attrs.Factory(lambda: {"schema_version": 1, "health": "ok"})
    public_workers: list[dict[str, Any]] = attrs.Factory(list)
    private_fields: dict[str, Any] = attrs.Factory(dict)
    items: list[dict[str, Any]] = attrs.Factory(list)
    past: list[dict[str, Any]] = attrs.Factory(list)
    performed: list[tuple[str, dict[str, Any], dict[str, Any], str]] = attrs.Factory(list)
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

    def perform(
        self, action: str, target: dict[str, Any], args: dict[str, Any], request_id: str
    ) -> Deferred[dict[str, Any]]:
        """Record the command and give the prepared answer."""
        self.performed.append((action, target, args, request_id))
        answer = self.answers.get(action, {})
        if isinstance(answer, Deferred):
            return answer
        return fail(answer) if isinstance(answer, Exception) else succeed(answer)


@implementer(ICommands)
class MemoryCommands:
    """The table of request ids, in memory.

    @ivar rows: by request id: C{fingerprint}, C{state}, C{envelope}.
    @ivar broken: by method name: the exception that it raises.
    @ivar broken_after: likewise, but raised after the change was made.
    """

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.broken: dict[str, Exception] = {}
        self.broken_after: dict[str, Exception] = {}

    def find(self, request_id: str) -> dict[str, Any] | None:
        """One row, or None."""
        if "find" in self.broken:
            raise self.broken["find"]
        row = self.rows.get(request_id)
        return None if row is None else dict(row)

    def reserve(self, request_id: str, fingerprint: str) -> Deferred[bool]:
        """Take an id; False when it is taken."""

        def change() -> bool:
            if request_id in self.rows:
                return False
            row = {"fingerprint": fingerprint, "state": "reserved", "envelope": None}
            self.rows[request_id] = row
            return True

        return self._do("reserve", change)

    def send_started(self, request_id: str) -> Deferred[None]:
        """Say that the effect begins."""
        return self._do("send_started", lambda: self.rows[request_id].update(state="send_started"))

    def finish(self, request_id: str, state: str, envelope: dict[str, Any]) -> Deferred[None]:
        """Store the end."""
        return self._do(
            "finish", lambda: self.rows[request_id].update(state=state, envelope=envelope)
        )

    def started(self) -> list[str]:
        """Ids left in C{send_started}."""
        return [key for key, row in self.rows.items() if row["state"] == "send_started"]

    def abandon(self, request_id: str) -> Deferred[None]:
        """Remove a reserved row."""

        def change() -> None:
            if self.rows.get(request_id, {}).get("state") == "reserved":
                del self.rows[request_id]

        return self._do("abandon", change)

    def _do(self, name: str, change: Callable[[], Any]) -> Deferred[Any]:
        if name in self.broken:
            return fail(self.broken[name])
        result = change()
        if name in self.broken_after:
            return fail(self.broken_after[name])
        return succeed(result)
