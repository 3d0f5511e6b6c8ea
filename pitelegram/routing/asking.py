"""Shows choosers in the chat: one call at a time, within the chat's budget, at most a hundred open."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from pitelegram.botapi.interfaces import IBotApi, ISendGate
from pitelegram.errors import CertainlyUnsent, Refused, StoreError, TelegramError
from pitelegram.kernel.deferring import log_failure, spawn
from pitelegram.routing import cases, choosertexts
from pitelegram.routing.cases import Case
from pitelegram.routing.choosertexts import View, Worker
from pitelegram.routing.choosing import Choosing
from pitelegram.routing.interfaces import INotices
from pitelegram.store.choosers import COMMAND, THREAD, Chooser

CAPACITY = 100
"""Choosers that may be open; more wait unasked until there is room."""

PROVISION_PATIENCE = 60.0
"""Seconds that a Thread is not asked about while one is being made: it may be that."""

CALM = 3.0
"""Seconds that the workers' list must have been the same before choosers are edited for it."""

START_CALM = 15.0
"""The same after a start: workers that live on take a moment to be there again."""

MODE_DELAY = 5.0
"""Seconds between two looks whether the bot has Threads, while something waits."""

LONGEST_DELAY = 300.0
MISSING_LIMIT = 3
"""So many sends in a row must find no such Thread before it counts as deleted."""

GONE_TEXT = (
    "ℹ️ A Thread that belonged to no worker was deleted; {count} messages in it were dropped."
)

_LOST = re.compile(r"message to edit not found|message can't be edited|MESSAGE_ID_INVALID", re.I)
_NO_THREAD = re.compile(r"thread not found|TOPIC_ID_INVALID|TOPIC_DELETED", re.I)


@attrs.define(eq=False, kw_only=True)
class Asking:
    """Sends and edits the messages of choosers.

    @param fresh_id: makes the id of a chooser; nobody can guess one.
    @param owner: whose private chat is asked in, and no other.
    """

    choosing: Choosing
    api: IBotApi
    gate: ISendGate
    notices: INotices
    clock: IReactorTime
    fresh_id: Callable[[], str]
    owner: Callable[[], int | None]
    _running: bool = attrs.field(default=False, init=False)
    _busy: bool = attrs.field(default=False, init=False)
    _job: Deferred[None] | None = attrs.field(default=None, init=False)
    _timer: IDelayedCall | None = attrs.field(default=None, init=False)
    _last_words: list[tuple[Chooser, str]] = attrs.field(factory=list, init=False)
    _calm_at: float = attrs.field(default=0.0, init=False)
    _log = Logger()

    def start(self) -> None:
        """Show what is to be shown from now on."""
        self._running = True
        self._calm_at = self.clock.seconds() + START_CALM
        self.wake()

    def stop(self) -> None:
        """Send nothing more."""
        self._running = False
        self._cancel_timer()
        if self._job is not None:
            self._job.cancel()
            self._job = None

    def changed(self) -> None:
        """Rows, workers or answers have changed."""
        self._calm_at = max(self._calm_at, self.clock.seconds() + CALM)
        self.wake()

    def farewell(self, case: Case, why: str) -> None:
        """A case has ended: its message says so, or goes."""
        if why == "gone":
            return
        if case.chooser is not None and case.chooser.message_id is not None:
            self._last_words.append((case.chooser, why))
            self.wake()

    def wake(self) -> None:
        """Look what is to be done, unless that is being done."""
        if self._running and not self._busy:
            self._busy = True
            self._cancel_timer()
            self._job = Deferred.fromCoroutine(self._work())
            self._job.addErrback(self._failed)

    def _failed(self, failure: Failure) -> None:
        if failure.check(CancelledError) is None:
            log_failure(self._log, "showing a chooser", failure)
            self._look_again(5.0)

    async def _work(self) -> None:
        try:
            while self._running:
                case = self._next()
                if case is not None:
                    await self._show(case)
                elif self._last_words:
                    await self._say_last(*self._last_words.pop(0))
                else:
                    return
        finally:
            self._busy = False

    # --- what is next ---------------------------------------------------------------------------

    def _next(self) -> Case | None:
        """Return a case with something to show; else look again when one may have."""
        now = self.clock.seconds()
        self._drop_former()
        if not self.choosing.candidates.possible():
            self._without_threads()
            return None
        making = bool(self.choosing.bindings.provisions())
        room = self.choosing.cases.room(CAPACITY)
        newest = self.choosing.cases.newest_starts()
        workers = self.choosing.candidates.workers()
        soonest = first = None
        for case in self.choosing.cases:
            if case.step.now == cases.UNASKED and newest.get(case.command, case) is not case:
                continue
            due = self._due(case, making, room, workers)
            if due is not None and due <= now:
                if case.urgent:
                    return case
                first = first or case
            elif due is not None and (soonest is None or due < soonest):
                soonest = due
        if first is None and soonest is not None:
            self._look_again(soonest - now)
        return first

    def _without_threads(self) -> None:
        """Ask nothing now; once there certainly are no Threads, nothing waits for an answer."""
        if self.choosing.candidates.excluded():
            self.choosing.dissolve()
        if len(self.choosing.cases):
            self._look_again(MODE_DELAY)

    def _drop_former(self) -> None:
        """What a former owner wrote goes nowhere any more: nobody could be asked about it."""
        owner = self.owner()
        for case in self.choosing.cases:
            if owner is not None and case.target.chat_id != owner and case.asking and not case.held:
                self._log.warn("messages of a former owner are dropped")
                spawn(self._log, "dropping a case", self.choosing.end(case, "gone"))

    def _due(self, case: Case, making: bool, room: bool, workers: list[Worker]) -> float | None:
        """Return when something may be shown for a case; None: not before something changes."""
        now = self.clock.seconds()
        if case.held or case.target.chat_id != self.owner():
            return None
        if case.step.now in (cases.UNASKED, cases.OPEN):
            if (case.step.now == cases.UNASKED and not room) or not case.waiting():
                return None
            if making and not case.is_command and now - case.since < PROVISION_PATIENCE:
                return max(case.not_before, now + 1.0)
            return case.not_before
        if case.step.now == cases.SENT or (case.step.now == cases.CLEANING and case.stuck):
            if case.shown is None or case.shown != _view(case, workers):
                return max(case.not_before, 0.0 if case.urgent else self._calm_at)
        return None

    def _look_again(self, wait: float) -> None:
        self._cancel_timer()
        if self._running:
            self._timer = self.clock.callLater(max(0.01, wait), self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer = None
        self.wake()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- one case -------------------------------------------------------------------------------

    async def _show(self, case: Case) -> None:
        try:
            await self._try_to_show(case)
        except StoreError as error:
            self._log.error("a chooser cannot be stored: {reason}", reason=str(error))
            self._later(case)

    async def _try_to_show(self, case: Case) -> None:
        try:
            if case.step.now in (cases.UNASKED, cases.OPEN):
                await self._ask(case)
            else:
                await self._edit(case)
        except TelegramError as error:
            self._log.info("a chooser was not shown: {code}", code=error.code)
            await self._not_shown(case, error)

    async def _ask(self, case: Case) -> None:
        if case.step.now == cases.UNASKED:
            await self._open(case)
        await self.gate.wait(case.target.chat_id)
        if case.step.now != cases.OPEN:
            return
        assert case.chooser is not None
        view = choosertexts.question(case.chooser, self.choosing.candidates.workers(), False)
        place = {"chat_id": case.target.chat_id}
        if case.target.thread_id is not None:
            place["message_thread_id"] = case.target.thread_id
        sent = await self.api.call("sendMessage", {**place, **view.as_params()})
        message_id = sent.get("message_id") if isinstance(sent, dict) else None
        if type(message_id) is not int:
            self._later(case)
        elif sent.get("message_thread_id") != case.target.thread_id:
            await self._strayed(case, message_id)
        elif case.step.now != cases.OPEN or case.held:
            await self._take_back(case.target.chat_id, message_id)
        else:
            await self._shown(case, message_id, view)

    async def _open(self, case: Case) -> None:
        chooser = Chooser(
            chooser_id=self.fresh_id(),
            place=case.key,
            kind=COMMAND if case.is_command else THREAD,
            chat_id=case.target.chat_id,
            thread_id=case.target.thread_id,
            source_seq=case.seq,
            command=case.command,
            expires_ms=case.expires_ms,
        )
        async with self.choosing.holding(case):
            await self.choosing.store.open(chooser)
            case.step.feed(cases.ROOM)
            self.choosing.cases.asked(case, chooser)

    async def _shown(self, case: Case, message_id: int, view: View) -> None:
        assert case.chooser is not None
        async with self.choosing.holding(case):
            await self.choosing.store.sent(case.chooser.chooser_id, message_id)
            case.step.feed(cases.SHOWN)
            chooser = attrs.evolve(case.chooser, message_id=message_id)
            self.choosing.cases.asked(case, chooser)
            case.shown, case.tries, case.missing, case.restoring = view, 0, 0, False
            case.checked = self.clock.seconds()
        await self.choosing.supersede(case)

    async def _edit(self, case: Case) -> None:
        assert case.chooser is not None
        await self.gate.wait(case.target.chat_id, "edit")
        if case.held or case.step.now not in (cases.SENT, cases.CLEANING):
            return
        view = _view(case, self.choosing.candidates.workers())
        case.shown, case.urgent = view, False
        where = {"chat_id": case.chooser.chat_id, "message_id": case.chooser.message_id}
        await self.api.call("editMessageText", {**where, **view.as_params()})
        case.tries = 0

    async def _not_shown(self, case: Case, error: TelegramError) -> None:
        if isinstance(error, CertainlyUnsent) and error.retry_after is not None:
            self.gate.flood(case.target.chat_id, error.retry_after)
        if case.step.now == cases.OPEN and _NO_THREAD.search(error.description):
            await self._no_thread(case)
        elif isinstance(error, Refused) and _LOST.search(error.description):
            await self._missed(case)
        elif not isinstance(error, Refused) or case.step.now == cases.OPEN:
            case.shown = None
            self._later(case)

    def _later(self, case: Case) -> None:
        case.not_before = self.clock.seconds() + min(LONGEST_DELAY, 5.0 * 2.0 ** min(case.tries, 6))
        case.tries += 1

    async def _missed(self, case: Case) -> None:
        """Its message was deleted: ask again, or, without a button, tidy up again later."""
        assert case.chooser is not None
        if case.step.now == cases.CLEANING:
            self._later(case)
            case.stuck = False
            self.choosing.clear(case, False)
        if case.step.now != cases.SENT or case.held:
            return
        async with self.choosing.holding(case):
            await self.choosing.store.unsent(case.chooser.chooser_id)
            case.step.feed(cases.MISSED)
            self.choosing.cases.asked(case, attrs.evolve(case.chooser, message_id=None))

    # --- Threads that are gone --------------------------------------------------------------------

    async def _strayed(self, case: Case, message_id: int) -> None:
        """It landed outside of the Thread, which may be a sign that this was deleted."""
        await self._take_back(case.target.chat_id, message_id)
        await self._no_thread(case)

    async def _no_thread(self, case: Case) -> None:
        case.missing += 1
        self._later(case)
        if case.missing < MISSING_LIMIT:
            return
        try:
            me = await self.api.call("getMe", {})
        except TelegramError:
            return
        if me.get("has_topics_enabled") is not True or case.step.now != cases.OPEN:
            return
        text = GONE_TEXT.format(count=sum(e.row.kind == "message" for e in case.waiting()))
        notice = f"gone-{case.chooser.chooser_id if case.chooser else case.seq}"
        # Told before they go: killed in between, it is told again under the same id, which is once.
        await self.notices.post("daemon", text, notice)
        await self.choosing.end(case, "gone")

    async def _take_back(self, chat_id: int, message_id: int) -> None:
        try:
            await self.api.call("deleteMessage", {"chat_id": chat_id, "message_id": message_id})
        except TelegramError as error:
            self._log.info("a chooser was not taken back: {code}", code=error.code)

    # --- last words -------------------------------------------------------------------------------

    async def _say_last(self, chooser: Chooser, why: str) -> None:
        """Best effort: the buttons do nothing any more, whatever the message shows."""
        assert chooser.message_id is not None
        if why not in choosertexts.FAREWELLS:
            await self._take_back(chooser.chat_id, chooser.message_id)
            return
        await self.gate.wait(chooser.chat_id, "edit")
        where: dict[str, Any] = {"chat_id": chooser.chat_id, "message_id": chooser.message_id}
        try:
            await self.api.call(
                "editMessageText", {**where, **choosertexts.farewell(why).as_params()}
            )
        except TelegramError as error:
            self._log.info("the end of a chooser was not shown: {code}", code=error.code)


def _view(case: Case, workers: list[Worker]) -> View:
    assert case.chooser is not None
    if case.step.now == cases.CLEANING:
        return choosertexts.stuck(case.chooser)
    return choosertexts.question(case.chooser, workers, case.restoring)
