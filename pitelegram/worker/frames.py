"""Silent messages that change while something goes on: best effort, the latest state wins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred, TimeoutError, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from pitelegram.bridge.activity.lines import interrupted
from pitelegram.bus.interfaces import ILeaderLink
from pitelegram.errors import BusError, LinkLost, Refusal
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.kernel.jsonio import dumps, loads
from pitelegram.store.worker_interfaces import IInbox

PACE = 1.2
"""Seconds between two states of one message."""
FINAL_WAITS = 2.0
"""Seconds that an answer waits for what was shown before it."""
NO_LINK = 2.0
"""Seconds after which a link, or a leader that could not do it, is looked for again."""
MOST_WAITING = 8
"""Messages that may wait to be sent; of more the oldest is never sent."""
MOST_REMEMBERED = 8
_TRIES = 5

Make = Callable[[], dict[str, Any] | None]
"""Makes the parameters of a message; None leaves it as it is."""

_KEY = "activity"
_SAME = "message is not modified"


@attrs.define(eq=False)
class Frame:
    """One message.

    @ivar wanted: what it is to show, None to be deleted.
    @ivar make: makes what it is to show, when it may; None: C{wanted} is that already.
    @ivar shown: what it shows, None while it was not sent.
    @ivar due: when it may change next.
    @ivar closed: it will not change again.
    """

    wanted: dict[str, Any] | None = None
    make: Make | None = None
    shown: dict[str, Any] | None = None
    place: tuple[int, int] | None = None
    due: float = 0.0
    closed: bool = False
    tries: int = 0

    @property
    def pending(self) -> bool:
        """Whether it does not show what it is to show."""
        return self.make is not None or self.wanted != self.shown

    def make_now(self) -> None:
        """Find out what it is to show."""
        make, self.make = self.make, None
        made = make() if make is not None else None
        if made is not None:
            self.wanted = made


class Frames:
    """Sends them in order and edits them, one call at a time.

    @param link: returns the registered link, None while there is none.
    @param target: returns the worker's target, None while it has none.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        inbox: IInbox,
        link: Callable[[], ILeaderLink | None],
        target: Callable[[], dict[str, int] | None],
    ) -> None:
        self._clock = clock
        self._inbox = inbox
        self._link = link
        self._target = target
        self._frames: list[Frame] = []
        self._blocked = 0.0
        self._busy: Frame | None = None
        self._alarm: IDelayedCall | None = None
        self._waiting: list[tuple[list[Frame], Deferred[None]]] = []
        self._stored = inbox.get_meta(_KEY) or "[]"
        self._stopped = False

    # --- what is to be shown -------------------------------------------------------------------

    def open(self, make: Make) -> Frame:
        """A new message, behind all that are there."""
        frame = Frame(make=make)
        self._frames.append(frame)
        waiting = [each for each in self._frames if each.shown is None and each is not self._busy]
        if len(waiting) > MOST_WAITING:
            self._forget(waiting[0])
        self._go_on()
        return frame

    def show(self, frame: Frame, make: Make) -> None:
        """A message is to show this; it is made when the message may change."""
        if not frame.closed:
            frame.make = make
            self._go_on()

    def close(self, frame: Frame, make: Make | None = None) -> None:
        """A message shows this, or what it shows, for good; its last state comes at once."""
        if frame.closed:
            return
        frame.make = make or frame.make
        frame.closed, frame.due = True, 0.0
        self._go_on()

    def remove(self, frame: Frame) -> None:
        """A message goes."""
        if not frame.closed:
            frame.closed, frame.due = True, 0.0
            frame.make = frame.wanted = None
            self._go_on()

    def recover(self) -> None:
        """Mark what a former process left open."""
        try:
            found: Any = loads(self._stored)
            for chat_id, message_id, params in found[:MOST_REMEMBERED]:
                frame = Frame(interrupted(params), shown=params, closed=True)
                frame.place = chat_id, message_id
                self._frames.append(frame)
        except (ValueError, TypeError, AttributeError):
            self._log.warn("what a former process left in the Thread is not known")
        self._go_on()

    def settled(self) -> Deferred[None]:
        """Fire once what is closed now is shown, or cannot be, after 2 s at the latest.

        What was not sent by then never is: it would stand behind the answer.  What is open belongs to
        a later run.
        """
        frames = [frame for frame in self._frames if frame.closed and self._holds(frame)]
        if not frames or self._stopped:
            return succeed(None)
        if self._blocked > self._clock.seconds() + FINAL_WAITS or self._link() is None:
            self._drop(frames)
            return succeed(None)
        waiter: Deferred[None] = Deferred()
        self._waiting.append((frames, waiter))
        waiter.addTimeout(FINAL_WAITS, self._clock)
        return waiter.addErrback(lambda failure: failure.trap(TimeoutError) and self._late(frames))

    def over(self) -> None:
        """A run is over: without a leader what was not sent never is."""
        if self._link() is None:
            self._drop(self._frames)

    def stop(self) -> None:
        """Do nothing any more; what is open is marked by the next process."""
        self._stopped = True
        self._wake()
        for _, waiter in self._waiting:
            waiter.callback(None)
        self._waiting = []

    # --- one after the other -------------------------------------------------------------------

    def _go_on(self) -> None:
        """Make the next call, or be called when it is due."""
        if self._stopped or self._busy is not None:
            return
        self._wake()
        self._frames = [f for f in self._frames if self._lives(f)]
        frame = self._next()
        if frame is not None:
            wait = max(frame.due, self._blocked) - self._clock.seconds()
            if wait > 0:
                self._alarm = self._clock.callLater(wait, self._go_on)
            else:
                self._busy = frame
                spawn(self._log, "showing activity", self._call(frame)).addBoth(self._called)
                return
        self._remember()
        self._tell()

    def _lives(self, frame: Frame) -> bool:
        """Whether anything may still happen to it; what was never sent cannot be deleted."""
        if frame.shown is None and frame.wanted is None and frame.make is None:
            return False
        return frame.pending or not frame.closed

    def _next(self) -> Frame | None:
        """Return what is due first; messages are sent in their order."""
        unsent = next((f for f in self._frames if f.shown is None and f.pending), None)
        edits = [f for f in self._frames if f.shown is not None and f.pending]
        found = edits if unsent is None else [unsent, *edits]
        return min(found, key=lambda each: each.due, default=None)

    def _called(self, _: object) -> None:
        self._busy = None
        self._go_on()

    @deferred
    async def _call(self, frame: Frame) -> None:
        link, target = self._link(), self._target()
        if link is None or target is None:
            frame.due = self._clock.seconds() + NO_LINK
            return
        frame.make_now()
        wanted = frame.wanted
        if not frame.pending:
            return
        try:
            if frame.place is None:
                result = await link.call_api("sendMessage", *_sending(target, wanted))
                frame.place = target["chatId"], _message_id(result)
            else:
                await link.call_api(*_changing(frame.place, wanted))
        except Refusal as refusal:
            self._refused(frame, wanted, refusal)
        except LinkLost:
            # A message that may be there, nobody knows where, cannot be changed.
            self._pause(frame, NO_LINK) if frame.place else self._forget(frame)
        except (BusError, ValueError) as error:
            self._log.info("activity was not shown: {reason}", reason=str(error))
            self._forget(frame)
        else:
            frame.shown, frame.tries = wanted, 0
            frame.due = 0.0 if frame.closed else self._clock.seconds() + PACE

    def _refused(self, frame: Frame, wanted: dict[str, Any] | None, refusal: Refusal) -> None:
        words = str(refusal.fields.get("description") or refusal).lower()
        if refusal.code == "rate-limited" or refusal.fields.get("errorCode") == 429:
            wait: Any = refusal.fields.get("retryAfter")
            self._blocked = self._clock.seconds() + max(
                float(wait) if isinstance(wait, int | float) else 0.0, PACE
            )
        elif _SAME in words:
            frame.shown = wanted
        elif frame.place is not None and refusal.code in ("unavailable", "commit-unknown"):
            self._pause(frame, NO_LINK)
        else:
            self._log.info("activity was not shown: {reason}", reason=str(refusal))
            self._forget(frame)

    def _pause(self, frame: Frame, seconds: float) -> None:
        frame.tries += 1
        frame.due = self._clock.seconds() + seconds
        if frame.tries > _TRIES and frame.closed:
            self._forget(frame)

    def _forget(self, frame: Frame) -> None:
        """It stays as it is."""
        frame.closed, frame.wanted, frame.make = True, frame.shown, None

    def _wake(self) -> None:
        alarm, self._alarm = self._alarm, None
        if alarm is not None and alarm.active():
            alarm.cancel()

    # --- answers wait, a next process knows --------------------------------------------------------

    def _tell(self) -> None:
        """Let answers go that wait for nothing any more."""
        held = self._blocked > self._clock.seconds() + FINAL_WAITS
        for entry in list(self._waiting):
            frames, waiter = entry
            if held:
                self._drop(frames)
            if not any(self._holds(frame) for frame in frames):
                self._waiting.remove(entry)
                waiter.callback(None)

    def _holds(self, frame: Frame) -> bool:
        """Whether an answer has to wait for it: an edit that is held back may come after it."""
        edit_held_back = frame.shown is not None and self._blocked > self._clock.seconds()
        return frame.pending and frame.tries == 0 and not edit_held_back

    def _late(self, frames: list[Frame]) -> None:
        self._waiting = [entry for entry in self._waiting if entry[0] is not frames]
        self._drop(frames)

    def _drop(self, frames: list[Frame]) -> None:
        """What is not there yet does not come; what is being sent this moment is left alone."""
        for frame in frames:
            if frame.shown is None and frame is not self._busy:
                self._forget(frame)

    def _remember(self) -> None:
        """Store the messages that a next process would have to mark."""
        kept = [(*f.place, f.shown) for f in self._frames if f.place is not None]
        text = dumps(kept[-MOST_REMEMBERED:]).decode()
        if text != self._stored:
            self._stored = text
            spawn(self._log, "storing activity", self._inbox.set_meta(_KEY, text))


def _sending(target: dict[str, int], params: dict[str, Any] | None) -> tuple[dict, dict]:
    call: dict[str, Any] = {
        "chat_id": target["chatId"],
        **(params or {}),
        "disable_notification": True,
    }
    if "threadId" not in target:
        return call, {"aggregate": True}
    return {**call, "message_thread_id": target["threadId"]}, {}


def _changing(place: tuple[int, int], params: dict[str, Any] | None) -> tuple[str, dict[str, Any]]:
    where = {"chat_id": place[0], "message_id": place[1]}
    if params is None:
        return "deleteMessage", where
    return "editMessageText", {**where, **params}


def _message_id(result: Any) -> int:
    """@raise ValueError: there is none."""
    found = result.get("message_id") if isinstance(result, dict) else None
    if type(found) is not int:
        raise ValueError("Telegram named no message")
    return found
