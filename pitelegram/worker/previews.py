"""The answer that Pi is writing, shown while it writes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import attrs
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.bridge.preview import Rendering, as_draft, frame
from pitelegram.bridge.rendering.prefix import ClosedPrefix
from pitelegram.bridge.rendering.records import Call
from pitelegram.kernel.deferring import sleep, spawn
from pitelegram.pi.observing import PiObserver
from pitelegram.worker.standin import Message, StandIn
from pitelegram.worker.trying import Fate, Outcome, Trying, place_of

FIRST = 0.3
"""Seconds that the first words of a message wait for some more."""
PACE = 1.0
EDIT_PACE = 3.0
"""Seconds between two frames, as drafts and as edits."""
FAILED_PACE = 5.0
"""Seconds after a frame that failed."""

LARGEST_DRAFT_ID = 2**31 - 1


@attrs.define(eq=False)
class Sheet:
    """Where the frames of one message of Pi are shown.

    @ivar draft_id: of the draft of the current message.
    @ivar message: what stands in for drafts, None before it was sent.
    @ivar unsure: nobody can tell whether that message is there: no other one is sent.
    @ivar over: whether the message is: nothing begins any more.
    """

    draft_id: int = 0
    message: Message | None = None
    unsure: bool = False
    over: bool = False


class Canvas:
    """Puts frames into the chat, in the best form that there is.

    A method that Telegram does not know is not tried again by this process.

    @param target: returns C{{"chatId","threadId"?}}, None while there is no Thread.
    """

    def __init__(
        self,
        calls: Trying,
        stand_in: StandIn,
        target: Callable[[], dict[str, int] | None],
    ) -> None:
        self._calls = calls
        self._target = target
        self._missing: set[str] = set()
        self.stand_in = stand_in

    def rendering(self, wished: Rendering) -> Rendering:
        """Return what frames are to be made of now."""
        return "html" if "sendRichMessageDraft" in self._missing else wished

    @property
    def pace(self) -> float:
        """Seconds between two frames."""
        return EDIT_PACE if "sendMessageDraft" in self._missing else PACE

    async def show(self, call: Call, sheet: Sheet) -> Outcome:
        """Show a frame; L{Fate.MISSING}: another form is to be tried."""
        target = self._target()
        if target is None:
            return Outcome(Fate.AWAY)
        method, params = as_draft(call, sheet.draft_id)
        if method in self._missing:
            return await self._edited(target, call, sheet)
        place, options = place_of(target)
        outcome = await self._calls.call(method, {**place, **params}, options)
        if outcome.fate is Fate.MISSING:
            self._missing.add(method)
        return outcome

    async def _edited(self, target: dict[str, int], call: Call, sheet: Sheet) -> Outcome:
        if sheet.message is None:
            if sheet.unsure:
                return Outcome(Fate.REFUSED)
            outcome, sheet.message = await self.stand_in.begin(target)
            if sheet.message is None:
                sheet.unsure = outcome.fate is Fate.UNSURE
                return Outcome(Fate.REFUSED) if outcome.fate is Fate.MISSING else outcome
        if sheet.over:
            self.stand_in.over(sheet.message)
            return Outcome(Fate.REFUSED)
        outcome = await self.stand_in.edit(sheet.message, call)
        return Outcome(Fate.REFUSED) if outcome.fate is Fate.MISSING else outcome


class Stream:
    """The previews of one run: one frame at a time, and each shows the latest text."""

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        random: Random,
        canvas: Canvas,
        rendering: Callable[[], Rendering],
    ) -> None:
        self._clock = clock
        self._random = random
        self._canvas = canvas
        self._rendering = rendering
        self._due = 0.0
        self._nap: Deferred[None] | None = None
        self._working = False
        self._sheet = Sheet()
        self._begin()

    def feed(self, text: str) -> None:
        """Pi wrote this."""
        if not self._fed:
            self._due = max(self._due, self._clock.seconds() + FIRST)
        self._fed = True
        self._prefix.feed(text)
        news = self._prefix.length > self._shown
        if news and not self._working and not self._sheet.over:
            self._working = True
            spawn(self._log, "a preview", self._work())

    def message_over(self) -> None:
        """What Pi writes next is another message; what stood in for this one gives way to it."""
        self._retire()
        self._begin()

    def close(self) -> None:
        """The run ended: nothing is sent any more."""
        self._retire()
        if self._nap is not None:
            self._nap.cancel()

    def _retire(self) -> None:
        self._sheet.over = True
        self._canvas.stand_in.over(self._sheet.message)

    def _begin(self) -> None:
        self._prefix = ClosedPrefix()
        self._fed = False
        self._shown = 0
        self._last: Call | None = None
        draft_id = self._random.randint(1, LARGEST_DRAFT_ID)
        self._sheet = Sheet(draft_id=draft_id, unsure=self._sheet.unsure)

    async def _work(self) -> None:
        try:
            while not self._sheet.over and self._prefix.length > self._shown:
                await self._wait()
                if not self._sheet.over:
                    await self._frame()
        finally:
            self._working = False

    async def _wait(self) -> None:
        seconds = self._due - self._clock.seconds()
        if seconds <= 0:
            return
        self._nap = sleep(self._clock, seconds)
        try:
            await self._nap
        except CancelledError:
            pass
        finally:
            self._nap = None

    async def _frame(self) -> None:
        prefix, sheet = self._prefix, self._sheet
        self._shown = prefix.length
        call = frame(prefix, self._canvas.rendering(self._rendering()))
        if call is None or call == self._last:
            return
        begun = self._clock.seconds()
        outcome = await self._canvas.show(call, sheet)
        fate = outcome.fate
        if prefix is self._prefix and fate is Fate.DONE:
            self._last = call
        elif prefix is self._prefix and fate is not Fate.REFUSED:
            self._shown = 0
        if fate is not Fate.MISSING:
            failed = fate in (Fate.AWAY, Fate.UNSURE, Fate.REFUSED)
            wait = FAILED_PACE if failed else max(self._canvas.pace, outcome.seconds)
            self._due = begun + wait


class Previews(PiObserver):
    """Shows each run's words while Pi writes them, where the operator wants that.

    Best effort: a frame that fails is left out, and nobody is told.  A run that shows none has no state
    here at all.

    @param setting: returns a setting of the operator.
    @param wanted: whether the run that begins is shown in the chat.
    """

    def __init__(
        self,
        clock: IReactorTime,
        random: Random,
        canvas: Canvas,
        setting: Callable[[str], Any],
        wanted: Callable[[], bool],
    ) -> None:
        self._clock = clock
        self._random = random
        self._canvas = canvas
        self._setting = setting
        self._wanted = wanted
        self.stream: Stream | None = None

    def placed(self) -> None:
        """There is a leader: what an earlier run left behind can go."""
        self._canvas.stand_in.clear()

    def stop(self) -> None:
        """This worker ends."""
        self._close()
        self._canvas.stand_in.stop()

    def run_started(self) -> None:
        """See L{IPiObserver<pitelegram.pi.interfaces.IPiObserver>}, as for all below."""
        self._close()
        if self._setting("draftPreviews") and self._wanted():
            self.stream = Stream(self._clock, self._random, self._canvas, self._rendering)

    def text_delta(self, text: str) -> None:
        """Pi wrote this."""
        if self.stream is not None:
            self.stream.feed(text)

    def assistant_message(self, message: dict[str, Any]) -> None:
        """A message is over."""
        if self.stream is not None:
            self.stream.message_over()

    def settled(self, aborted: bool) -> None:
        """The run is over."""
        self._close()

    def ended(self, reason: str) -> None:
        """Pi is gone."""
        self._close()

    def _rendering(self) -> Rendering:
        return "html" if self._setting("rendering") == "html" else "rich"

    def _close(self) -> None:
        stream, self.stream = self.stream, None
        if stream is not None:
            stream.close()
