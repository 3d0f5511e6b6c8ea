"""Tidies up after a choice: Threads and messages that are no longer needed, each by fresh proof.

Nothing here ever sends a message to a worker.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from pitelegram.botapi.interfaces import IBotApi
from pitelegram.errors import Fenced, Refused, StoreError, TelegramError
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.routing import cases
from pitelegram.routing.cases import Case
from pitelegram.routing.choosing import Choosing
from pitelegram.store.choosers import BOUND, FORWARD, HOME, RESTORE

LOOKS = 20
"""So often it is looked, L{DELAY} apart, whether what speaks against a deletion is over."""

DELAY = 5.0

GONE = "gone"
KEPT = "kept"
FAILED = "failed"
LATER = "later"


@attrs.define(eq=False, kw_only=True)
class Clearing:
    """Deletes the temporary Thread of a forward, the old one of a restore, and the chooser itself.

    @ivar stuck: called when something could not be deleted, to offer it as a button.
    """

    choosing: Choosing
    api: IBotApi
    clock: IReactorTime
    stuck: Callable[[], None] = attrs.field(default=lambda: None, init=False)
    _timers: dict[str, IDelayedCall] = attrs.field(factory=dict, init=False)
    _running: bool = attrs.field(default=True, init=False)
    _log = Logger()

    def stop(self) -> None:
        """Delete nothing more."""
        self._running = False
        timers, self._timers = self._timers, {}
        for timer in timers.values():
            timer.cancel()

    def begin(self, case: Case, failed: bool) -> None:
        """Tidy up once; C{failed}: a worker refused one of the messages, which stays readable."""
        spawn(self._log, "tidying up after a choice", self.clear(case, failed))

    @deferred
    async def clear(self, case: Case, failed: bool = False, looks: int = 0) -> bool:
        """Tidy up; fires with whether nothing is left to do.

        @param looks: how often it was put off already.
        """
        if case.step.now != cases.CLEANING or case.held or not self._running:
            return case.step.now == cases.DONE
        async with self.choosing.holding(case):
            outcome = await self._attempt(case, failed)
        if case.step.now != cases.CLEANING or case.waiting():
            # Somebody wrote there meanwhile: it is asked again.
            return False
        if outcome == LATER and looks < LOOKS:
            self._put_off(case, failed, looks + 1)
            return False
        if outcome in (FAILED, LATER):
            self._offer(case)
            return False
        try:
            await self.choosing.end(case, "failed" if failed else outcome)
        except StoreError as error:
            self._not_stored(error)
            self._offer(case)
            return False
        return True

    async def _attempt(self, case: Case, failed: bool) -> str:
        try:
            return await self._delete(case, failed)
        except StoreError as error:
            self._not_stored(error)
            return FAILED

    def _not_stored(self, error: StoreError) -> None:
        if isinstance(error, Fenced):
            raise error
        self._log.error("a choice could not be tidied up: {reason}", reason=str(error))

    def _put_off(self, case: Case, failed: bool, looks: int) -> None:
        if self._running and case.key not in self._timers:
            self._timers[case.key] = self.clock.callLater(DELAY, self._again, case, failed, looks)

    def _again(self, case: Case, failed: bool, looks: int) -> None:
        self._timers.pop(case.key, None)
        spawn(self._log, "tidying up after a choice", self.clear(case, failed, looks))

    def _offer(self, case: Case) -> None:
        if case.step.now == cases.CLEANING:
            case.stuck, case.shown, case.urgent = True, None, True
            self.stuck()

    async def _delete(self, case: Case, failed: bool) -> str:
        """Delete what the choice made needless; returns what the chooser is to say."""
        chooser = case.chooser
        assert chooser is not None
        if chooser.choice == FORWARD and chooser.thread_id is not None:
            return KEPT if failed else await self._thread(case, chooser.thread_id)
        if chooser.choice == RESTORE and chooser.old_thread_id is not None:
            outcome = await self._thread(case, chooser.old_thread_id)
            if outcome in (FAILED, LATER):
                return outcome
        return "over" if failed else await self._message(case)

    async def _thread(self, case: Case, thread_id: int) -> str:
        chooser = case.chooser
        assert chooser is not None
        against = await self.choosing.store.claim(chooser.chooser_id, chooser.chat_id, thread_id)
        if against is None and self._owner_of(chooser.chat_id, thread_id) is not None:
            # Bound between the proof and this moment.
            against = BOUND
        if against in (BOUND, HOME):
            return KEPT
        if against is not None:
            return LATER
        params = {"chat_id": chooser.chat_id, "message_thread_id": thread_id}
        try:
            await self.api.call("deleteForumTopic", params)
        except Refused as error:
            if error.code == 400 and "TOPIC_ID_INVALID" in error.description.upper():
                return GONE
            self._log.info("a Thread was not deleted: {code}", code=error.code)
            return FAILED
        except TelegramError as error:
            self._log.info("a Thread was not deleted: {why}", why=type(error).__name__)
            return FAILED
        return GONE

    def _owner_of(self, chat_id: int, thread_id: int) -> object:
        return self.choosing.bindings.by_target(chat_id, thread_id)

    async def _message(self, case: Case) -> str:
        chooser = case.chooser
        assert chooser is not None
        if chooser.message_id is None:
            return GONE
        params = {"chat_id": chooser.chat_id, "message_id": chooser.message_id}
        try:
            await self.api.call("deleteMessage", params)
        except Refused as error:
            if "message to delete not found" in error.description.lower():
                return GONE
            # Older than Telegram lets be deleted: it says how it ended, without buttons.
            return "over"
        except TelegramError as error:
            self._log.info("a chooser was not deleted: {why}", why=type(error).__name__)
            return FAILED
        return GONE
