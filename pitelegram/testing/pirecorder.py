"""An observer of a Pi that remembers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, succeed
from zope.interface import implementer

from pitelegram.pi.interfaces import IPiObserver


@implementer(IPiObserver)
class PiRecorder:
    """Remembers what it was told.

    @ivar events: C{(method, arguments…)} in order.
    """

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []
        self._waiting: list[tuple[Callable[[], bool], Deferred[None]]] = []

    def run_started(self) -> None:
        """See L{IPiObserver}."""
        self._add("run_started")

    def text_delta(self, text: str) -> None:
        """See L{IPiObserver}."""
        self._add("text_delta", text)

    def thinking_delta(self, text: str) -> None:
        """See L{IPiObserver}."""
        self._add("thinking_delta", text)

    def user_message(self, text: str) -> None:
        """See L{IPiObserver}."""
        self._add("user_message", text)

    def assistant_message(self, message: dict[str, Any]) -> None:
        """See L{IPiObserver}."""
        self._add("assistant_message", message)

    def tool_started(self, call_id: str, name: str, arguments: Any) -> None:
        """See L{IPiObserver}."""
        self._add("tool_started", call_id, name, arguments)

    def tool_updated(self, call_id: str, name: str, result: Any) -> None:
        """See L{IPiObserver}."""
        self._add("tool_updated", call_id, name, result)

    def tool_ended(self, call_id: str, name: str, result: Any, failed: bool) -> None:
        """See L{IPiObserver}."""
        self._add("tool_ended", call_id, name, result, failed)

    def retrying(self, retry: Any) -> None:
        """See L{IPiObserver}."""
        self._add("retrying", retry)

    def retried(self, succeeded: bool, reason: str) -> None:
        """See L{IPiObserver}."""
        self._add("retried", succeeded, reason)

    def compaction(self, step: Any) -> None:
        """See L{IPiObserver}."""
        self._add("compaction", step)

    def settled(self, aborted: bool) -> None:
        """See L{IPiObserver}."""
        self._add("settled", aborted)

    def state_changed(self, state: dict[str, Any]) -> None:
        """See L{IPiObserver}."""
        self._add("state_changed", state)

    def dialog_requested(self, request: dict[str, Any]) -> None:
        """See L{IPiObserver}."""
        self._add("dialog_requested", request)

    def ended(self, reason: str) -> None:
        """See L{IPiObserver}."""
        self._add("ended", reason)

    def all(self, name: str) -> list[Any]:
        """The first argument of every event of that name; None for those without."""
        return [(event[1] if len(event) > 1 else None) for event in self.events if event[0] == name]

    def when(self, predicate: Callable[[], bool]) -> Deferred[None]:
        """Fire once C{predicate} is true; it is looked at after each event."""
        if predicate():
            return succeed(None)
        waiter: Deferred[None] = Deferred()
        self._waiting.append((predicate, waiter))
        return waiter

    def when_settled(self, times: int = 1) -> Deferred[None]:
        """Fire once that many runs were done."""
        return self.when(lambda: len(self.all("settled")) >= times)

    def _add(self, *event: Any) -> None:
        self.events.append(event)
        for entry in list(self._waiting):
            if entry[0]():
                self._waiting.remove(entry)
                entry[1].callback(None)
