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

    def find(self, request_id: str) -> dict[str, Any] | None:
        """One row, or None."""
        if "find" in self.broken:
            raise self.broken["find"]
        return self.real.find(request_id)

    def reserve(self, request_id: str, fingerprint: str) -> Deferred[bool]:
        """Take an id; False when it is taken."""
        return self._do("reserve", request_id, fingerprint)

    def send_started(self, request_id: str) -> Deferred[None]:
        """Say that the effect begins."""
        return self._do("send_started", request_id)

    def finish(self, request_id: str, state: str, envelope: dict[str, Any]) -> Deferred[None]:
        """Store the end."""
        return self._do("finish", request_id, state, envelope)

    def started(self) -> list[str]:
        """Ids left in C{send_started}."""
        return self.real.started()

    def abandon(self, request_id: str) -> Deferred[None]:
        """Remove a reserved row."""
        return self._do("abandon", request_id)

    def _do(self, name: str, *arguments: Any) -> Deferred[Any]:
        if name in self.broken:
            return fail(self.broken[name])
        done = getattr(self.real, name)(*arguments)
        if name in self.broken_after:
            return done.addCallback(lambda _: fail(self.broken_after[name]))
        return done
