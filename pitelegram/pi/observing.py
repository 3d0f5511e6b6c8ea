"""For those who watch a Pi: what some events hold, and an observer that does nothing."""

from __future__ import annotations

from typing import Any

import attrs
from zope.interface import implementer

from pitelegram.pi.interfaces import IPiObserver

TOOLS, THINKING = "tools", "thinking"
"""Events that are only decoded for those who want them (L{IPiHost.want})."""


@attrs.frozen(kw_only=True)
class Retry:
    """Pi asks the model again after a failure.

    @ivar attempt: from 1, C{of} so many.
    @ivar delay: seconds until then.
    @ivar reason: the provider's words.
    """

    attempt: int
    of: int
    delay: float
    reason: str


@attrs.frozen(kw_only=True)
class CompactionStep:
    """The beginning or the end of a compaction.

    @ivar reason: C{manual}, C{threshold} or C{overflow}.
    @ivar over: whether this is its end; the members below have a meaning only then.
    @ivar before: tokens of the conversation before it, None when nobody told.
    @ivar after: tokens after it, estimated.
    @ivar error: why it failed, None when it did not.
    """

    reason: str
    over: bool = False
    before: int | None = None
    after: int | None = None
    aborted: bool = False
    error: str | None = None


def result_text(result: Any) -> str:
    """Return the texts of a tool's result, one below the other; empty when it has none."""
    content = result.get("content") if isinstance(result, dict) else None
    parts = content if isinstance(content, list) else []
    return "\n".join(
        part["text"]
        for part in parts
        if isinstance(part, dict) and isinstance(part.get("text"), str) and part["text"]
    )


@implementer(IPiObserver)
class PiObserver:
    """Does nothing about anything: for those who only care about some of it."""

    def run_started(self) -> None:
        """See L{IPiObserver}, as for all below."""

    def text_delta(self, text: str) -> None: ...

    def thinking_delta(self, text: str) -> None: ...

    def user_message(self, text: str) -> None: ...

    def assistant_message(self, message: dict[str, Any]) -> None: ...

    def tool_started(self, call_id: str, name: str, arguments: Any) -> None: ...

    def tool_updated(self, call_id: str, name: str, result: Any) -> None: ...

    def tool_ended(self, call_id: str, name: str, result: Any, failed: bool) -> None: ...

    def retrying(self, retry: Retry) -> None: ...

    def retried(self, succeeded: bool, reason: str) -> None: ...

    def compaction(self, step: CompactionStep) -> None: ...

    def settled(self, aborted: bool) -> None: ...

    def state_changed(self, state: dict[str, Any]) -> None: ...

    def dialog_requested(self, request: dict[str, Any]) -> None: ...

    def ended(self, reason: str) -> None: ...
