"""From Pi's standard output to its observers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import Any

from twisted.logger import Logger

from pitelegram.pi.observing import THINKING, TOOLS, CompactionStep, Retry
from pitelegram.pi.projection import Projection
from pitelegram.pi.records import RecordReader, message_text
from pitelegram.pi.splitter import LineSplitter

_log = Logger()

DROPPED_REQUESTS = ("setStatus", "setTitle", "setWidget", "set_editor_text")
"""C{extension_ui_request} methods that nobody outside a terminal needs."""


class EventStream:
    """Splits, decodes, keeps the state current and tells observers, in order, never re-entrantly.

    What an observer causes while it is told something is told after everybody heard that.

    @param answered: takes each C{response} record.
    @param asked: takes each C{extension_ui_request} that waits for an answer or is a notice.
    @ivar projection: the state.
    @ivar unknown: decoded records that nobody here knows.
    """

    def __init__(
        self,
        answered: Callable[[dict[str, Any]], None],
        asked: Callable[[dict[str, Any]], None],
    ) -> None:
        self.projection = Projection(lambda state: self.tell("state_changed", state))
        self.unknown = 0
        self._splitter = LineSplitter()
        self._reader = RecordReader(self)
        self._observers: list[Any] = []
        self._untold: deque[tuple[str, tuple[Any, ...]]] = deque()
        self._telling = False
        self._running = False
        self._oversized = 0
        self._records: dict[str, Callable[[dict[str, Any]], None]] = {
            "response": answered,
            "agent_start": self._agent_start,
            "agent_settled": self._agent_settled,
            "message_end": self._message_end,
            "queue_update": self._queue_update,
            "auto_retry_start": self._retrying,
            "auto_retry_end": self._retried,
            "compaction_start": self._compaction_start,
            "compaction_end": self._compaction_end,
            "session_info_changed": self._renamed,
            "thinking_level_changed": self._thinking,
            "extension_error": self._extension_error,
            "extension_ui_request": lambda record: self._ui_request(record, asked),
        }

    @property
    def counts(self) -> dict[str, int]:
        """What came in: C{records}, and of these C{malformed}, C{not_objects}, C{oversized}, C{unknown}."""
        return {
            "records": self._reader.seen,
            "malformed": self._reader.malformed,
            "not_objects": self._reader.not_objects,
            "oversized": self._splitter.oversized,
            "unknown": self.unknown,
        }

    def subscribe(self, observer: Any) -> None:
        """Add an L{IPiObserver<pitelegram.pi.interfaces.IPiObserver>}."""
        self._observers.append(observer)

    def want(self, kinds: Collection[str]) -> None:
        """See L{IPiHost.want<pitelegram.pi.interfaces.IPiHost.want>}."""
        self._reader.want(TOOLS in kinds, THINKING in kinds)

    def received(self, data: bytes) -> None:
        """Take a chunk of standard output."""
        lines = self._splitter.feed(data)
        if lines:
            self._reader.feed(lines)
        if self._splitter.oversized != self._oversized:
            self._oversized = self._splitter.oversized
            _log.warn(
                "Pi wrote a line beyond the limit; it was left out ({n} so far)", n=self._oversized
            )

    def finish(self) -> None:
        """Nothing more will come."""
        self._reader.finish()

    def tell(self, what: str, *arguments: Any) -> None:
        """Call that method of every observer, now or after what is being told."""
        self._untold.append((what, arguments))
        if self._telling:
            return
        self._telling = True
        try:
            while self._untold:
                name, values = self._untold.popleft()
                for observer in list(self._observers):
                    self._tell_one(observer, name, values)
        finally:
            self._telling = False

    def text_delta(self, text: str) -> None:
        """See L{RecordSink<pitelegram.pi.records.RecordSink>}."""
        self.tell("text_delta", text)

    def thinking_delta(self, text: str) -> None:
        """See L{RecordSink<pitelegram.pi.records.RecordSink>}."""
        self.tell("thinking_delta", text)

    def tool(self, kind: str, record: dict[str, Any], failed: bool) -> None:
        """See L{RecordSink<pitelegram.pi.records.RecordSink>}."""
        which = str(record.get("toolCallId", "")), str(record.get("toolName", ""))
        if kind == "tool_execution_start":
            self.tell("tool_started", *which, record.get("args"))
        elif kind == "tool_execution_update":
            self.tell("tool_updated", *which, record.get("partialResult"))
        elif kind == "tool_execution_end":
            self.tell("tool_ended", *which, record.get("result"), failed)

    def record(self, kind: str, record: dict[str, Any]) -> None:
        """See L{RecordSink<pitelegram.pi.records.RecordSink>}."""
        known = self._records.get(kind)
        if known is None:
            self.unknown += 1
        else:
            known(record)

    def _tell_one(self, observer: Any, name: str, values: tuple[Any, ...]) -> None:
        try:
            getattr(observer, name)(*values)
        except Exception:
            _log.failure("an observer of Pi failed in {name}", name=name)

    def _agent_start(self, _: dict[str, Any]) -> None:
        """The start of a run, or of another attempt within one."""
        self.projection.update(isStreaming=True)
        if not self._running:
            self._running = True
            self.tell("run_started")

    def _agent_settled(self, record: dict[str, Any]) -> None:
        self.projection.update(isStreaming=False)
        if self._running:
            self._running = False
            self.tell("settled", record.get("aborted") is True)

    def _message_end(self, record: dict[str, Any]) -> None:
        message = record.get("message")
        if not isinstance(message, dict):
            return
        if message.get("role") == "user":
            self.tell("user_message", message_text(message))
        elif message.get("role") == "assistant":
            self.tell("assistant_message", {**message, "text": message_text(message)})

    def _queue_update(self, record: dict[str, Any]) -> None:
        self.projection.queue(record.get("steering"), record.get("followUp"))

    def _retrying(self, record: dict[str, Any]) -> None:
        retry = Retry(
            attempt=_whole(record.get("attempt")) or 1,
            of=_whole(record.get("maxAttempts")) or 1,
            delay=(_whole(record.get("delayMs")) or 0) / 1000,
            reason=_words(record.get("errorMessage")),
        )
        self.tell("retrying", retry)

    def _retried(self, record: dict[str, Any]) -> None:
        self.tell("retried", record.get("success") is True, _words(record.get("finalError")))

    def _compaction_start(self, record: dict[str, Any]) -> None:
        self.projection.update(isCompacting=True)
        self.tell("compaction", CompactionStep(reason=_words(record.get("reason"))))

    def _compaction_end(self, record: dict[str, Any]) -> None:
        self.projection.update(isCompacting=False)
        found = record.get("result")
        result: dict[str, Any] = found if isinstance(found, dict) else {}
        step = CompactionStep(
            reason=_words(record.get("reason")),
            over=True,
            before=_whole(result.get("tokensBefore")),
            after=_whole(result.get("estimatedTokensAfter")),
            aborted=record.get("aborted") is True,
            error=_words(record.get("errorMessage")) or None,
        )
        self.tell("compaction", step)

    def _renamed(self, record: dict[str, Any]) -> None:
        if isinstance(record.get("name"), str):
            self.projection.update(sessionName=record["name"])

    def _thinking(self, record: dict[str, Any]) -> None:
        if isinstance(record.get("level"), str):
            self.projection.update(thinkingLevel=record["level"])

    def _extension_error(self, record: dict[str, Any]) -> None:
        _log.warn("an extension of Pi failed in {where}", where=str(record.get("event"))[:60])

    def _ui_request(self, record: dict[str, Any], asked: Callable[[dict[str, Any]], None]) -> None:
        if record.get("method") not in DROPPED_REQUESTS:
            asked(record)


def _whole(value: object) -> int | None:
    """A number that is not negative, rounded down."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return int(value)


def _words(value: object) -> str:
    return value if isinstance(value, str) else ""
