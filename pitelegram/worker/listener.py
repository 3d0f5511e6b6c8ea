"""Pi's events, to the parts that they concern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zope.interface import implementer

from pitelegram.pi.interfaces import IPiObserver
from pitelegram.pi.observing import CompactionStep, Retry
from pitelegram.worker.chataction import COMPACTION, RUN, ChatAction
from pitelegram.worker.dialogs import Dialogs
from pitelegram.worker.queue import Queue


@implementer(IPiObserver)
class Listener:
    """See L{IPiObserver}.

    @param changed: called when what the heartbeat tells may have changed.
    @param settled: called after each settled run.
    @param ended: called with the reason when Pi is gone.
    @ivar events: a number that changes with every event.
    """

    def __init__(
        self,
        queue: Queue,
        dialogs: Dialogs,
        typing: ChatAction,
        changed: Callable[[], None],
        settled: Callable[[], None],
        ended: Callable[[str], None],
    ) -> None:
        self._queue = queue
        self._dialogs = dialogs
        self._typing = typing
        self._changed = changed
        self._settled = settled
        self._ended = ended
        self.events = 0

    def run_started(self) -> None:
        """See L{IPiObserver.run_started}."""
        self.events += 1
        self._queue.hands.run_started()
        self._typing.show(True, RUN)

    def text_delta(self, text: str) -> None:
        """See L{IPiObserver.text_delta}; previews have their own observer."""
        self.events += 1

    def thinking_delta(self, text: str) -> None:
        """See L{IPiObserver.thinking_delta}."""
        self.events += 1

    def tool_started(self, call_id: str, name: str, arguments: Any) -> None:
        """See L{IPiObserver.tool_started}."""
        self.events += 1

    def tool_updated(self, call_id: str, name: str, result: Any) -> None:
        """See L{IPiObserver.tool_updated}."""
        self.events += 1

    def tool_ended(self, call_id: str, name: str, result: Any, failed: bool) -> None:
        """See L{IPiObserver.tool_ended}."""
        self.events += 1

    def retrying(self, retry: Retry) -> None:
        """See L{IPiObserver.retrying}."""
        self.events += 1

    def retried(self, succeeded: bool, reason: str) -> None:
        """See L{IPiObserver.retried}."""
        self.events += 1

    def compaction(self, step: CompactionStep) -> None:
        """See L{IPiObserver.compaction}."""
        self.events += 1

    def user_message(self, text: str) -> None:
        """See L{IPiObserver.user_message}."""
        self.events += 1
        self._queue.hands.user_message(text)

    def assistant_message(self, message: dict[str, Any]) -> None:
        """See L{IPiObserver.assistant_message}."""
        self.events += 1
        self._queue.hands.assistant_message(message)

    def settled(self, aborted: bool) -> None:
        """See L{IPiObserver.settled}."""
        self.events += 1
        self._typing.show(False, RUN)
        self._queue.hands.settled(aborted)
        self._settled()

    def state_changed(self, state: dict[str, Any]) -> None:
        """See L{IPiObserver.state_changed}."""
        self.events += 1
        self._typing.show(bool(state.get("isCompacting")), COMPACTION)
        self._queue.hands.state_changed(state)
        self._changed()

    def dialog_requested(self, request: dict[str, Any]) -> None:
        """See L{IPiObserver.dialog_requested}."""
        self.events += 1
        self._dialogs.requested(request)

    def ended(self, reason: str) -> None:
        """See L{IPiObserver.ended}."""
        self.events += 1
        self._typing.stop()
        self._dialogs.pi_ended()
        self._queue.ended()
        self._ended(reason)
