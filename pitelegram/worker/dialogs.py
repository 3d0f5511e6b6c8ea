"""Questions of Pi's extensions, asked in the worker's Thread, each answered once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.bridge import dialogs as words
from pitelegram.bridge.incoming import Origin, Press
from pitelegram.bridge.labels import STALE_BUTTON
from pitelegram.bridge.questions import (
    MAX_BUTTONS,
    Question,
    answer_of,
    option_of,
    read_press,
    read_question,
)
from pitelegram.errors import Refusal
from pitelegram.kernel.deferring import spawn
from pitelegram.pi.dialogs import METHODS, well_formed
from pitelegram.pi.interfaces import IPiHost
from pitelegram.worker.asking import CLOSED, POSTING, UNSEEN, Asking
from pitelegram.worker.bestcalls import BestEffort
from pitelegram.worker.notifying import Notifier
from pitelegram.worker.posting import Limited, NoThread, Outcome, Posted, Poster, Unsent, Unsure
from pitelegram.worker.traces import DialogTraces
from pitelegram.worker.turning import Turner

MAX_OPEN = 8
LOOK_AGAIN = 3.0
"""Seconds after which a question that found no Thread is sent again."""

CANCEL: dict[str, Any] = {"cancelled": True}


class Dialogs:
    """Answers every dialog exactly once: from Telegram, by the control port, or as cancelled.

    A cancelled question goes on in Pi; an unanswered one would block it, and its abort, for ever.

    @param birth: birth id of this worker.
    @param target: returns where this worker's messages go, None while that is unknown.
    @param changed: called when the number of open dialogs changed.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        host: IPiHost,
        birth: str,
        poster: Poster,
        traces: DialogTraces,
        notifier: Notifier,
        calls: BestEffort,
        target: Callable[[], dict[str, int] | None],
        changed: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._host = host
        self._birth = birth
        self._poster = poster
        self._turner = Turner(clock, poster)
        self._traces = traces
        self._notifier = notifier
        self._calls = calls
        self._target = target
        self._changed = changed
        self._open: dict[str, Asking] = {}

    # --- Pi ----------------------------------------------------------------------------------

    def requested(self, request: dict[str, Any]) -> None:
        """Pi asks or tells something; what only decorates a terminal is dropped."""
        method, ref = request.get("method"), request.get("id")
        if method == "notify":
            self._notifier.notify(request, self._key(str(ref)))
        if method not in METHODS or ref in self._open:
            return
        place, reason = self._target(), None
        if not well_formed(request):
            reason = "malformed"
        elif len(self._open) >= MAX_OPEN:
            reason = "crowd"
        elif place is None or not self._poster.ready():
            reason = "unsent"
        if reason is not None or place is None:
            if isinstance(ref, str):
                self._host.answer_dialog(ref, CANCEL)
            self._notifier.cancelled(reason or "unsent")
            return
        self._begin(request, read_question(request), place)

    def cancel(self) -> None:
        """Answer every open dialog as cancelled: an abort begins or is over."""
        for asking in list(self._open.values()):
            self._finish(asking, CANCEL, words.ABORTED)

    def pi_ended(self) -> None:
        """Pi is gone, and its questions with it."""
        for asking in list(self._open.values()):
            self._finish(asking, None, words.PI_ENDED)

    def _begin(self, request: dict[str, Any], question: Question, place: dict[str, int]) -> None:
        ref = request["id"]
        body = words.shown(question).body
        asking = Asking(ref, self._key(ref), request, question, body, place)
        self._open[ref] = asking
        asking.timers.append(self._clock.callLater(question.seconds, self._expired, asking))
        self._post(asking)
        self._changed()

    def _expired(self, asking: Asking) -> None:
        """Its time is over; with a time-out of its own Pi has answered itself."""
        if asking.state == POSTING:
            self._notifier.cancelled("unsent")
        answer = None if asking.question.own else CANCEL
        self._finish(asking, answer, words.EXPIRED)

    def _finish(self, asking: Asking, answer: dict[str, Any] | None, told: str) -> None:
        """Close it, once: whatever comes later does not find it."""
        del self._open[asking.ref]
        asking.words = told
        asking.over()
        if answer is not None:
            self._host.answer_dialog(asking.ref, answer)
        self._close_messages(asking, told)
        self._changed()

    def _close_messages(self, asking: Asking, told: str) -> None:
        unseen = told == words.EXPIRED
        for message_id in asking.messages:
            text = words.closed(asking.body, told)
            self._traces.over(asking.place["chatId"], message_id, text, unseen)
        asking.messages.clear()

    # --- its message -------------------------------------------------------------------------

    def _post(self, asking: Asking) -> None:
        place = asking.place
        shown = words.shown(asking.question)
        markup = words.keyboard(asking.question, asking.key)
        sending = spawn(self._log, "asking", self._poster.question(place, shown.text, markup))
        sending.addCallback(lambda outcome: outcome and self._posted(asking, place, outcome))

    def _posted(self, asking: Asking, place: dict[str, int], outcome: Outcome) -> None:
        if isinstance(outcome, Posted):
            self._appeared(asking, place, outcome.message_id)
        elif asking.state != POSTING or asking.place is not place:
            return
        elif isinstance(outcome, Limited | NoThread):
            asking.machine.feed("limited")
            seconds = outcome.seconds if isinstance(outcome, Limited) else LOOK_AGAIN
            self._post_later(asking, place, seconds)
        elif isinstance(outcome, Unsure):
            asking.machine.feed("unsure")
            self._notifier.unsure(asking.key, asking.question)
        else:
            self._finish(asking, CANCEL, words.CANCELLED)
            self._notifier.cancelled("unsent")

    def _post_later(self, asking: Asking, place: dict[str, int], seconds: float) -> None:
        """Send it again after some time, unless it went to another Thread by then."""

        def again() -> None:
            if asking.state != POSTING or asking.place is not place:
                return
            if self._target() is None:
                # The Thread is lost; the new one is told to L{placed}.
                self._post_later(asking, place, LOOK_AGAIN)
            else:
                self._post(asking)

        asking.timers = [timer for timer in asking.timers if timer.active()]
        asking.timers.append(self._clock.callLater(seconds, again))

    def _appeared(self, asking: Asking, place: dict[str, int], message_id: int) -> None:
        """Its message is there, perhaps too late."""
        if message_id in asking.messages:
            return
        chat_id, question = place["chatId"], asking.question
        self._traces.opened(chat_id, message_id, question.takes_text, asking.body)
        if asking.state == CLOSED or asking.place is not place:
            told = asking.words if asking.state == CLOSED else words.MOVED
            self._traces.over(chat_id, message_id, words.closed(asking.body, told))
            return
        asking.machine.feed("shown")
        asking.messages.append(message_id)
        self._attach(asking, place, message_id)

    def _attach(self, asking: Asking, place: dict[str, int], message_id: int) -> None:
        """Send what is too long to be shown, if there is anything."""
        attachment = words.shown(asking.question).attachment
        if attachment is not None:
            sending = self._poster.document(place, message_id, *attachment)
            done = spawn(self._log, "attaching a question's text", sending)
            done.addCallback(lambda outcome: self._attached(asking, place, message_id, outcome))

    def _attached(
        self, asking: Asking, place: dict[str, int], message_id: int, outcome: Outcome | None
    ) -> None:
        """Where it cannot go as a file, it comes as durable messages."""
        if isinstance(outcome, Limited) and asking.state != CLOSED:
            again = self._clock.callLater(outcome.seconds, self._attach, asking, place, message_id)
            asking.timers.append(again)
        elif isinstance(outcome, Unsent | NoThread):
            attachment = words.shown(asking.question).attachment
            self._notifier.whole(asking.key, attachment[1] if attachment else "")

    def placed(self) -> None:
        """There is a new link, or another Thread: close what is over, ask again what is not there."""
        self._traces.flush()
        place = self._target()
        for asking in list(self._open.values()):
            if place is not None and asking.place != place:
                asking.machine.feed("moved")
                self._close_messages(asking, words.MOVED)
                asking.place = place
                self._post(asking)

    # --- answers -----------------------------------------------------------------------------

    def pressed(self, press: Press, origin: Origin) -> None:
        """A button of a dialog was pressed.  A late press is told so and changes nothing."""
        button = read_press(press.data)
        asking = None if button is None else self._by_key(button.key, origin, origin.message_id)
        if button is None or asking is None:
            self._calls.answer_callback(press.callback_id, words.LATE)
            self._calls.remove_buttons(origin.chat_id, origin.message_id)
            return
        if button.action == "p":
            self._calls.answer_callback(press.callback_id, "")
            self._turner.turn(asking, origin.message_id or 0, button.number)
            return
        given = answer_of(asking.question, button)
        if given is None:
            self._calls.answer_callback(press.callback_id, STALE_BUTTON)
            return
        answer, said = given
        cancels = answer == CANCEL
        self._finish(asking, answer, words.CANCELLED if cancels else words.chosen(said))
        toast = words.CANCELLED_TOAST if cancels else words.TAKEN
        self._calls.answer_callback(press.callback_id, toast)

    def wants(self, origin: Origin) -> bool:
        """Whether a message is a reply to a dialog, open or not, and so never a prompt."""
        if origin.reply_to is None:
            return False
        if self._replied(origin) is not None:
            return True
        trace = self._traces.find(origin.chat_id, origin.reply_to)
        if trace is None:
            return origin.reply_key is not None
        return trace.takes_text or trace.state == "closing"

    def reply(self, origin: Origin, text: str | None) -> str | None:
        """Take a reply that L{wants} named; returns what the operator is told, if anything.

        @param text: None when the reply is no plain text.
        """
        asking = self._replied(origin)
        if asking is None:
            return words.LATE_REPLY
        question = asking.question
        if question.takes_text:
            if text is None:
                return words.TEXT_ONLY
            self._finish(asking, {"value": text}, words.ANSWERED)
            return None
        option = option_of(question, text) if text and len(question.options) > MAX_BUTTONS else None
        if option is None:
            return words.USE_BUTTONS
        self._finish(asking, {"value": option}, words.chosen(option))
        return None

    def answer(self, ref: str, answer: dict[str, Any]) -> None:
        """Answer an open dialog by Pi's id of it.

        @raise Refusal: C{execution-failed} when it is not open (any more), C{invalid-command} when
            the answer has the wrong form.
        """
        asking = self._open.get(ref)
        if asking is None:
            raise Refusal("execution-failed", "that question is not open any more")
        (name, value) = next(iter(answer.items()))
        expected = "confirmed" if asking.question.method == "confirm" else "value"
        right = (
            value is True
            if name == "cancelled"
            else name == expected and isinstance(value, bool if name == "confirmed" else str)
        )
        if not right:
            raise Refusal("invalid-command", f"this question takes {expected} or cancelled: true")
        question = asking.question
        if name == "value" and not question.takes_text and value not in question.options:
            raise Refusal("invalid-command", "that question has no such option")
        if name == "cancelled":
            told = words.CANCELLED
        elif name == "confirmed":
            told = words.chosen("Yes" if value else "No")
        else:
            told = words.ANSWERED if question.takes_text else words.chosen(value)
        self._finish(asking, answer, told)

    def listed(self) -> list[dict[str, Any]]:
        """The open ones, for C{get_state}."""
        return [
            {
                "dialogRef": ref,
                **{
                    name: asking.request[name]
                    for name in ("method", "title", "options")
                    if name in asking.request
                },
            }
            for ref, asking in self._open.items()
        ]

    # --- the end -----------------------------------------------------------------------------

    def stop(self) -> None:
        """This worker ends; what cannot be closed any more, the next one closes."""
        for asking in list(self._open.values()):
            self._finish(asking, None, words.WORKER_ENDED)
        self._notifier.flush()
        self._traces.stop()

    def tidy(self) -> bool:
        """Whether every message of a dialog that is over says so."""
        return self._traces.tidy()

    # --- inside ------------------------------------------------------------------------------

    def _key(self, ref: str) -> str:
        """Return what stands for a dialog of this Pi of this worker in its buttons."""
        named = "\0".join((self._birth, str(self._host.birth), ref))
        return hashlib.sha256(named.encode("utf-8", "replace")).hexdigest()[:12]

    def _by_key(self, key: str | None, origin: Origin, message_id: int | None) -> Asking | None:
        """Return the open dialog of that key, if that message shows it."""
        asking = next((each for each in self._open.values() if each.key == key), None)
        if asking is None or message_id is None or origin.chat_id != asking.place["chatId"]:
            return None
        if asking.state in (POSTING, UNSEEN):
            # Its buttons were seen before Telegram's answer told of them.
            self._appeared(asking, asking.place, message_id)
        return asking if message_id in asking.messages else None

    def _replied(self, origin: Origin) -> Asking | None:
        for asking in self._open.values():
            if origin.reply_to in asking.messages and origin.chat_id == asking.place["chatId"]:
                return asking
        return self._by_key(origin.reply_key, origin, origin.reply_to)
