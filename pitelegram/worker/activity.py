"""What a run does beside its answer, shown in the Thread: thoughts, tools, retries, compactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from pitelegram.bridge.activity.lines import compaction_line, retry_line
from pitelegram.bridge.activity.marked import line
from pitelegram.bridge.activity.thoughts import MOST_FRAMES, Thoughts
from pitelegram.bridge.activity.tools import RUNNING, ToolView, fits, tools_message
from pitelegram.pi.interfaces import IPiHost
from pitelegram.pi.observing import (
    THINKING,
    TOOLS,
    CompactionStep,
    PiObserver,
    Retry,
    result_text,
)
from pitelegram.worker.frames import Frame, Frames

QUIET = "quiet"
WANTED = {
    QUIET: frozenset[str](),
    "thinking": frozenset({THINKING}),
    "tools": frozenset({TOOLS}),
    "verbose": frozenset({TOOLS, THINKING}),
}
"""What each mode needs of Pi's events."""


@attrs.define(eq=False)
class _Batch:
    """Tools of one message."""

    views: list[ToolView] = attrs.field(factory=list)
    frame: Frame | None = None


class Activity(PiObserver):
    """Makes messages of Pi's events; nothing of it reaches or delays what must not be lost.

    The mode is read when a run begins; when that fails, the run is quiet.  What fails and is tried
    again, and compactions that Pi begins by itself, are told in every mode.

    @param mode: returns C{quiet}, C{thinking}, C{tools} or C{verbose}.
    @param shown: whether what Pi does now is to be shown in the Thread at all.
    """

    _log = Logger()

    def __init__(
        self,
        host: IPiHost,
        frames: Frames,
        mode: Callable[[], str],
        shown: Callable[[], bool],
    ) -> None:
        self._host = host
        self._frames = frames
        self._mode = mode
        self._shown = shown
        self._thoughts = Thoughts()
        self._thinking: Frame | None = None
        self._batch: _Batch | None = None
        self._running: dict[str, tuple[_Batch, ToolView]] = {}
        self._retry: Frame | None = None
        self._compaction: Frame | None = None
        self._talking = False

    def before_final(self) -> Deferred[None]:
        """Fire when an answer may be sent: what was begun before it is shown, or 2 s are over."""
        return self._frames.settled()

    # --- the run -------------------------------------------------------------------------------

    def run_started(self) -> None:
        """Read what is to be shown of this run."""
        try:
            self._talking = self._shown()
            mode = self._mode() if self._talking else QUIET
            wanted = WANTED[mode]
        except Exception:
            self._log.failure("the mode of activity is not known: this run is quiet")
            wanted = WANTED[QUIET]
        self._host.want(wanted)

    def settled(self, aborted: bool) -> None:
        """The last state of everything, before the answer."""
        self._close()
        self._frames.over()
        self._host.want(WANTED[QUIET])

    def ended(self, reason: str) -> None:
        """Pi is gone: what runs is interrupted."""
        self._close()
        if self._compaction is not None:
            self._frames.close(self._compaction)
            self._compaction = None

    def assistant_message(self, message: dict[str, Any]) -> None:
        """The model is done thinking; when it said something, what follows stands below that."""
        self._thoughts.pause()
        self._thought()
        if str(message.get("text") or "").strip():
            self._close_thoughts()
            self._leave_batch()

    def _close(self) -> None:
        self._close_thoughts()
        for call_id in list(self._running):
            self._interrupt(call_id)
        self._leave_batch()
        self._end_retry()

    # --- thoughts ------------------------------------------------------------------------------

    def thinking_delta(self, text: str) -> None:
        """The model thinks."""
        if self._thoughts.frames >= MOST_FRAMES:
            self._close_thoughts()
        if self._thoughts.add(text):
            self._thought()

    def _thought(self) -> None:
        if not self._thoughts.news:
            return
        if self._thinking is None:
            self._thinking = self._frames.open(self._thoughts.message)
        else:
            self._frames.show(self._thinking, self._thoughts.message)

    def _close_thoughts(self) -> None:
        self._thoughts.pause()
        self._thought()
        frame, self._thinking, self._thoughts = self._thinking, None, Thoughts()
        if frame is not None:
            self._frames.close(frame)

    # --- tools ---------------------------------------------------------------------------------

    def tool_started(self, call_id: str, name: str, arguments: Any) -> None:
        """A tool runs: its arguments are visible at once."""
        self._interrupt(call_id)
        view = ToolView.of(name, arguments)
        if self._batch is not None and not fits(self._batch.views, view):
            self._leave_batch()
        if self._batch is None:
            self._batch = _Batch()
        self._batch.views.append(view)
        self._running[call_id] = self._batch, view
        self._draw(self._batch)

    def tool_updated(self, call_id: str, name: str, result: Any) -> None:
        """A tool has something already."""
        found, text = self._running.get(call_id), result_text(result)
        if found is not None and text:
            batch, view = found
            view.update(text)
            self._draw(batch)

    def tool_ended(self, call_id: str, name: str, result: Any, failed: bool) -> None:
        """A tool is done."""
        found = self._running.pop(call_id, None)
        if found is not None:
            batch, view = found
            view.end(result_text(result), failed)
            self._draw(batch)

    def _interrupt(self, call_id: str) -> None:
        """Nobody will tell the end of a tool, if there is one of that id."""
        found = self._running.pop(call_id, None)
        if found is not None:
            batch, view = found
            view.interrupt()
            self._draw(batch)

    def _leave_batch(self) -> None:
        """The next tool has another message; this one still shows how its own end."""
        batch, self._batch = self._batch, None
        if batch is not None:
            self._draw(batch)

    def _draw(self, batch: _Batch) -> None:

        def make() -> dict[str, Any]:
            return tools_message(batch.views)

        if batch.frame is None:
            batch.frame = self._frames.open(make)
        elif batch is self._batch or any(view.state == RUNNING for view in batch.views):
            self._frames.show(batch.frame, make)
        else:
            self._frames.close(batch.frame, make)

    # --- what goes wrong -----------------------------------------------------------------------

    def retrying(self, retry: Retry) -> None:
        """One line, which changes with every attempt."""
        if not self._talking:
            return
        params = line(retry_line(retry))
        if self._retry is None:
            self._retry = self._frames.open(lambda: params)
        else:
            self._frames.show(self._retry, lambda: params)

    def retried(self, succeeded: bool, reason: str) -> None:
        """Over, one way or the other: the answer says the rest."""
        self._end_retry()

    def _end_retry(self) -> None:
        frame, self._retry = self._retry, None
        if frame is not None:
            self._frames.remove(frame)

    def compaction(self, step: CompactionStep) -> None:
        """Tell of a compaction that nobody asked for; who asked for one is answered anyway."""
        if step.reason == "manual":
            return
        params = line(compaction_line(step))
        frame = self._compaction
        if step.over:
            self._compaction = None
            if frame is not None:
                self._frames.close(frame, lambda: params)
        elif frame is None and self._shown():
            self._compaction = self._frames.open(lambda: params)
