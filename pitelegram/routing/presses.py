"""The buttons of choosers: each does what it says at most once, on the message that it stands in."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.logger import Logger

from pitelegram.botapi.interfaces import IBotApi, ISendGate
from pitelegram.errors import Fenced, StoreError, TelegramError
from pitelegram.ids import delivery_id
from pitelegram.kernel.deferring import spawn
from pitelegram.routing import cases, choosertexts
from pitelegram.routing.cases import Case
from pitelegram.routing.choosertexts import token_of
from pitelegram.routing.choosing import Choosing
from pitelegram.routing.clearing import Clearing
from pitelegram.routing.lanes import Entry
from pitelegram.store.choosers import FORWARD, RESTORE


@attrs.define(eq=False, kw_only=True)
class Presses:
    """Executes presses; the router has claimed their callback ids."""

    choosing: Choosing
    clearing: Clearing
    api: IBotApi
    gate: ISendGate
    _stripping: set[tuple[int, int]] = attrs.field(factory=set, init=False)
    _log = Logger()

    def wants(self, query: dict[str, Any]) -> bool:
        """Whether a button is a chooser's."""
        data = query.get("data")
        return isinstance(data, str) and data.partition(":")[0] in choosertexts.VERBS

    async def handle(self, query: dict[str, Any]) -> None:
        """Do what a button says and answer it."""
        verb, _, rest = str(query["data"]).partition(":")
        chooser_id, _, token = rest.partition(":")
        case = self.choosing.cases.by_id(chooser_id)
        if case is None or not _is_on(case, query):
            spawn(self._log, "taking dead buttons away", self._strip(query))
            await self._answer(query, choosertexts.EXPIRED)
            return
        await self._answer(query, await self._act(case, verb, token))

    async def _act(self, case: Case, verb: str, token: str) -> str:
        if verb == choosertexts.CLEAN:
            return await self._clean(case)
        if case.step.now != cases.SENT or case.held:
            return choosertexts.BUSY
        if case.is_over(self.choosing.now_ms()):
            return await self._end(case, "expired", choosertexts.EXPIRED)
        if verb == choosertexts.DISMISS:
            return await self._end(case, "dismissed", choosertexts.DISMISSED)
        if verb in (choosertexts.RESTORE_SCREEN, choosertexts.BACK):
            return self._turn(case, verb == choosertexts.RESTORE_SCREEN)
        return await self._choose(case, FORWARD if verb == choosertexts.SEND else RESTORE, token)

    def _turn(self, case: Case, restoring: bool) -> str:
        case.restoring = restoring and not case.is_command
        self._show_anew(case)
        return choosertexts.PICK if case.restoring else ""

    def _show_anew(self, case: Case) -> None:
        case.shown, case.urgent = None, True
        self.choosing.changed()

    async def _clean(self, case: Case) -> str:
        if case.step.now != cases.CLEANING or case.held:
            return choosertexts.BUSY
        done = await self.clearing.clear(case)
        return choosertexts.CLEANED if done else choosertexts.STILL_PENDING

    async def _end(self, case: Case, why: str, toast: str) -> str:
        try:
            await self.choosing.end(case, why)
        except StoreError as error:
            return self._refused(error)
        return toast

    # --- choosing -------------------------------------------------------------------------------

    async def _choose(self, case: Case, choice: str, token: str) -> str:
        key = self._worker(token)
        if key is None:
            self._show_anew(case)
            return choosertexts.NOT_ACTIVE
        if choice == RESTORE and case.is_command:
            return choosertexts.UNAVAILABLE
        entries = case.waiting()
        try:
            async with self.choosing.holding(case):
                await self._commit(case, choice, key, entries)
                if choice == RESTORE and not await self._take_over(case, key):
                    if await self._put_back(case, entries):
                        return choosertexts.UNAVAILABLE
        except StoreError as error:
            return self._refused(error)
        self.choosing.check(case)
        return choosertexts.RESTORED if choice == RESTORE else choosertexts.ROUTED

    def _worker(self, token: str) -> str | None:
        workers = self.choosing.candidates.workers()
        return next((w.binding_key for w in workers if token_of(w.binding_key) == token), None)

    async def _commit(self, case: Case, choice: str, key: str, entries: list[Entry]) -> None:
        """Pin what waits to the chosen binding, in one transaction with the choice.

        The router carries the pinned rows, like all others, as soon as the case is let go.
        """
        chooser, binding = case.chooser, self.choosing.bindings.get(key)
        assert chooser is not None and binding is not None
        ids = {
            entry.seq: delivery_id(entry.row.kind, key, entry.row.update_id) for entry in entries
        }
        old = binding.thread_id if choice == RESTORE else None
        pinned = await self.choosing.store.choose(
            chooser.chooser_id, choice, key, old, list(ids.items())
        )
        case.step.feed(cases.CHOSEN)
        chosen = attrs.evolve(chooser, choice=choice, recipient=key, old_thread_id=old)
        self.choosing.cases.asked(case, chosen)
        self.choosing.cases.choose(case, pinned)
        for entry in entries:
            if entry.seq in pinned:
                entry.recipient, entry.delivery_id = key, ids[entry.seq]
                entry.pinned, entry.held, entry.waiting_since = True, False, None

    async def _take_over(self, case: Case, key: str) -> bool:
        try:
            return await self.choosing.threads.reassign(
                key, case.target.chat_id, case.target.thread_id
            )
        except Fenced:
            raise
        except StoreError as error:
            self._log.error("a Thread was not taken over: {reason}", reason=str(error))
            return False

    async def _put_back(self, case: Case, entries: list[Entry]) -> bool:
        """Take a choice back that was not carried out; when that fails, it stands."""
        assert case.chooser is not None
        try:
            await self.choosing.store.put_back(case.chooser.chooser_id)
        except Fenced:
            raise
        except StoreError as error:
            self._log.error("a choice was not put back: {reason}", reason=str(error))
            return False
        for entry in entries:
            entry.recipient = entry.delivery_id = None
            entry.pinned, entry.held = False, True
        self.choosing.reopened(case)
        return True

    def _refused(self, error: StoreError) -> str:
        if isinstance(error, Fenced):
            raise error
        self._log.info("a choice was not taken: {reason}", reason=str(error))
        return choosertexts.UNAVAILABLE

    # --- answers --------------------------------------------------------------------------------

    async def _answer(self, query: dict[str, Any], toast: str) -> None:
        params: dict[str, Any] = {"callback_query_id": query["id"]}
        if toast:
            params["text"] = toast
        try:
            await self.api.call("answerCallbackQuery", params)
        except TelegramError as error:
            self._log.debug("a button was not answered: {code}", code=error.code)

    async def _strip(self, query: dict[str, Any]) -> None:
        """Once for a message, however often it is pressed: edits are few, and others wait for them."""
        message = query.get("message") or {}
        where = {"chat_id": message["chat"]["id"], "message_id": message["message_id"]}
        key = (where["chat_id"], where["message_id"])
        if key in self._stripping:
            return
        self._stripping.add(key)
        params = {**where, "reply_markup": {"inline_keyboard": []}}
        try:
            await self.gate.wait(where["chat_id"], "edit")
            await self.api.call("editMessageReplyMarkup", params)
        except TelegramError as error:
            self._log.debug("dead buttons stay: {code}", code=error.code)
        finally:
            self._stripping.discard(key)


def _is_on(case: Case, query: dict[str, Any]) -> bool:
    """Whether the pressed message is the chooser's own; one that is inaccessible names no Thread."""
    chooser, message = case.chooser, query.get("message")
    if chooser is None or chooser.message_id is None or not isinstance(message, dict):
        return False
    thread = message.get("message_thread_id")
    return (
        message["chat"]["id"] == chooser.chat_id
        and message.get("message_id") == chooser.message_id
        and (thread is None or thread == chooser.thread_id)
    )
