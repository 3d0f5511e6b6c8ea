"""The menus of the Thread: screens made of what is so now, and what their buttons do.

A button carries all that its press needs, so that menus outlive worker and daemon.  A press is
answered first, then its message is changed; neither waits for, nor undoes, what the press did.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
from twisted.logger import Logger

from pitelegram.bridge.answer import notice
from pitelegram.bridge.cutting import shorten
from pitelegram.bridge.incoming import Press
from pitelegram.bridge.menus import compact, main, model, queue, sessions, settings, thinking
from pitelegram.bridge.menus.data import Pressed, read
from pitelegram.bridge.menus.screen import Screen, Text
from pitelegram.bridge.menus.status import StatusView, Usage
from pitelegram.errors import PiGone, PiRefused, Refusal
from pitelegram.kernel.jsonio import dumps, loads
from pitelegram.store.rows import InboxRow
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.aside import Answers
from pitelegram.worker.bestcalls import BestEffort
from pitelegram.worker.changes import Changes
from pitelegram.worker.pifacts import PiFacts
from pitelegram.worker.preferences import Preferences
from pitelegram.worker.queue import Queue
from pitelegram.worker.sessionbook import SessionBook
from pitelegram.worker.settling import short_id
from pitelegram.worker.showing import Shower

EXPIRED = "Interactive message expired."
FAILED = "Telegram control action failed: "
TOAST = 200
"""Characters of an answer to a press."""
USAGE_DUE = 0.4
"""Seconds that the status waits for Pi's figures."""

_INSTRUCTIONS = "compact"


@attrs.frozen
class Outcome:
    """What a press came to.

    @ivar screen: what its message becomes; None leaves it.
    """

    toast: str = ""
    screen: Screen | None = None


class Menus:
    """Makes screens and does what buttons ask.

    @param view: returns the status with these figures.
    @param with_name: whether the leader can name Threads.
    """

    _log = Logger()

    def __init__(
        self,
        inbox: IInbox,
        facts: PiFacts,
        queue: Queue,
        preferences: Preferences,
        book: SessionBook,
        changes: Changes,
        shower: Shower,
        calls: BestEffort,
        view: Callable[[Usage | None], StatusView],
        with_name: Callable[[], bool],
    ) -> None:
        self._inbox = inbox
        self._facts = facts
        self._queue = queue
        self._preferences = preferences
        self._book = book
        self._changes = changes
        self._shower = shower
        self._calls = calls
        self._view = view
        self._with_name = with_name
        self._answered: tuple[int | None, str] = None, ""
        self._families: dict[str, Callable[[InboxRow, Pressed], Awaitable[Outcome]]] = {
            "compact": self._compact,
            "menu": self._menu,
            "model": self._model,
            "newsession": self._new_session,
            "queue": self._in_queue,
            "session": self._session,
            "settings": self._setting,
            "status": self._status,
            "thinking": self._thinking,
        }

    # --- screens -------------------------------------------------------------------------------

    async def main(self) -> Screen:
        """Return the main menu."""
        try:
            found = [(each.name, each.description) for each in await self._facts.templates()]
        except (PiRefused, PiGone):
            found = []
        status = self._view(await self._facts.usage(USAGE_DUE))
        return main.main_menu(
            main.MainView(status=status, templates=found, with_name=self._with_name())
        )

    async def status(self) -> Screen:
        """Return the status card, within half a second whatever Pi does."""
        return main.status_card(self._view(await self._facts.usage(USAGE_DUE)))

    async def models(self, page: int = 0) -> Screen:
        """Return the list of models."""
        await self._facts.ready()
        return model.model_list(await self._facts.models(), self._facts.current(), page)

    async def levels(self) -> Screen:
        """Return the thinking levels."""
        await self._facts.ready()
        return thinking.thinking_menu(await self._facts.levels(), self._facts.level())

    def items(self, page: int = 0, turn: int = 0) -> Screen:
        """Return the queue."""
        pi = self._queue.in_pi()
        return queue.queue_list(self._queue.view(), page, turn, pi.steering, pi.follow_up)

    def sessions(self, page: int = 0) -> Screen:
        """Return the list of sessions."""
        return sessions.session_list(self._book.views(page), page, self._book.current_key())

    def settings(self) -> Screen:
        """Return the settings."""
        return settings.settings_list(self._preferences.all())

    async def compact_question(self, row: InboxRow, instructions: str) -> Screen:
        """Return the confirmation of a compaction, and keep its instructions for the answer."""
        kept = dumps({"seq": row.seq, "instructions": instructions}).decode()
        await self._inbox.set_meta(_INSTRUCTIONS, kept)
        return compact.question(instructions, row.seq)

    def new_question(self) -> Screen:
        """Return the confirmation of a new session."""
        key = self._book.current_key()
        return sessions.new_question(self._changes.working(), self._changes.waiting(), key)

    # --- presses -------------------------------------------------------------------------------

    def lane(self, row: InboxRow, data: str) -> str:
        """Return the lane of a press: one that takes minutes keeps no other waiting."""
        return f"compact-{row.seq}" if data.startswith("compact:confirm") else ""

    async def press(self, row: InboxRow, press: Press) -> Answers:
        """Do what a button asks, answer the press and change its message."""
        pressed = read(press.data)
        if pressed is not None and (pressed.family, pressed.verb) == ("compact", "confirm"):
            return await self._confirm_compaction(row, press, pressed)
        outcome = Outcome(EXPIRED)
        if pressed is not None:
            try:
                outcome = await self._families[pressed.family](row, pressed)
            except (Refusal, PiRefused, PiGone) as error:
                self._log.info("a press was not done: {reason}", reason=str(error))
                outcome = Outcome(str(error) if _is_told(error) else FAILED + str(error))
        self._calls.answer_callback(press.callback_id, shorten(outcome.toast, TOAST))
        if outcome.screen is not None:
            self._shower.edit(row.chat_id, row.message_id, outcome.screen)
        return []

    async def _menu(self, row: InboxRow, pressed: Pressed) -> Outcome:
        verb = pressed.verb
        if verb == "back":
            return Outcome("", await self.main())
        if verb == "model":
            return Outcome("", await self.models())
        if verb == "thinking":
            return Outcome("", await self.levels())
        if verb == "queue":
            return Outcome("", self.items())
        if verb == "sessions":
            return Outcome("", self.sessions())
        return Outcome("", self.settings()) if verb == "settings" else Outcome(EXPIRED)

    async def _status(self, row: InboxRow, pressed: Pressed) -> Outcome:
        """Buttons of older menus."""
        if pressed.verb in ("model", "thinking", "queue", "settings"):
            return await self._menu(row, pressed)
        return Outcome("", await self.main())

    async def _model(self, row: InboxRow, pressed: Pressed) -> Outcome:
        verb, page = pressed.verb, pressed.number()
        if verb == "page" and page is not None:
            return Outcome("", await self.models(page))
        if verb == "pages" and page is not None:
            await self._facts.ready()
            return Outcome("", model.model_pages(await self._facts.models(), page))
        if verb not in ("open", "pick"):
            return Outcome(EXPIRED)
        await self._facts.ready()
        page = pressed.number(1) or 0
        found = model.by_key(await self._facts.models(fresh=True), pressed.word())
        if found is None:
            return Outcome(model.GONE, await self.models(page))
        toast = "" if verb == "open" else await self._pick(found)
        if toast == model.NOT_AVAILABLE:
            return Outcome(toast, await self.models(page))
        return Outcome(toast, model.model_detail(found, self._facts.current(), page))

    async def _pick(self, found: model.Model) -> str:
        try:
            busy = await self._changes.use_model(found)
        except PiRefused:
            return model.NOT_AVAILABLE
        return model.switched(found, True) if busy else model.chosen(found)

    async def _thinking(self, row: InboxRow, pressed: Pressed) -> Outcome:
        await self._facts.ready()
        levels, level = await self._facts.levels(), pressed.word()
        if pressed.verb != "set":
            return Outcome(EXPIRED)
        if not thinking.has_choice(levels):
            return Outcome(thinking.NO_CONTROLS, await self.main())
        if level not in levels or level not in thinking.ORDER:
            return Outcome(thinking.INVALID, await self.levels())
        now = await self._changes.use_level(level)
        return Outcome(thinking.chosen(now), await self.levels())

    async def _in_queue(self, row: InboxRow, pressed: Pressed) -> Outcome:
        verb, number = pressed.verb, pressed.number()
        if verb in ("page", "refresh"):
            turn, page = (0, number or 0) if verb == "page" else (number or 0, 0)
            return Outcome("", self.items(page, turn))
        if number is None:
            return Outcome(EXPIRED)
        toast = ""
        if verb == "prio-set" and pressed.word(1) in ("priority", "normal"):
            first = pressed.word(1) == "priority"
            done = await self._queue.move(number, pressed.word(1))
            toast = queue.PRIORITIZED if first else queue.NORMAL
        elif verb == "skip-set" and pressed.word(1) in ("keep", "skip"):
            skip = pressed.word(1) == "skip"
            done = await self._queue.mark(number, skip)
            toast = queue.SKIPPED if skip else queue.KEPT
        elif verb == "pick":
            done = True
        else:
            return Outcome(EXPIRED)
        found = next((item for item in self._queue.view() if item.seq == number), None)
        if found is None or not done:
            return Outcome(toast if done and toast else queue.GONE, self.items())
        return Outcome(toast, queue.queue_detail(found))

    async def _setting(self, row: InboxRow, pressed: Pressed) -> Outcome:
        if pressed.verb == "list":
            return Outcome("", self.settings())
        found = settings.by_key(pressed.word())
        if found is None or pressed.verb not in ("open", "set"):
            return Outcome(settings.UNKNOWN, self.settings())
        toast = ""
        if pressed.verb == "set":
            value = found.value(pressed.word(1))
            if value is None:
                return Outcome(settings.UNKNOWN, self.settings())
            await self._preferences.set(found.name, value.value)
            toast = found.told(value.word)
        return Outcome(toast, settings.setting_detail(found, self._preferences.all()))

    async def _session(self, row: InboxRow, pressed: Pressed) -> Outcome:
        if pressed.verb == "page":
            return Outcome("", self.sessions(pressed.number() or 0))
        if pressed.verb not in ("open", "switch"):
            return Outcome(EXPIRED)
        page = pressed.number(1) or 0
        known = self._book.find(pressed.word())
        if known is None:
            return Outcome(sessions.GONE, self.sessions(page))
        found, path = known
        if pressed.verb == "open":
            return Outcome("", sessions.session_detail(found, page))
        if found.current:
            return Outcome(sessions.CURRENT, sessions.session_detail(found, page))
        await self._facts.ready()
        await self._changes.switch(_request(row), path)
        return Outcome(sessions.SWITCHED, self.sessions(page))

    async def _new_session(self, row: InboxRow, pressed: Pressed) -> Outcome:
        if pressed.verb == "cancel":
            return Outcome("", Screen(Text().plain(sessions.KEPT)))
        if pressed.verb not in ("open", "confirm"):
            return Outcome(EXPIRED)
        await self._facts.ready()
        begun = self._inbox.ledger(_request(row)) is not None
        if pressed.word() != self._book.current_key() and not begun:
            # Its session was left meanwhile, perhaps by this very button.
            return Outcome(EXPIRED)
        if pressed.verb == "confirm":
            await self._changes.renew(_request(row))
        elif self._changes.has_work():
            return Outcome("", self.new_question())
        else:
            await self._changes.new_session(_request(row))
        return Outcome("", Screen(Text().plain(sessions.NEW)))

    # --- compaction ----------------------------------------------------------------------------

    async def _compact(self, row: InboxRow, pressed: Pressed) -> Outcome:
        if pressed.verb == "cancel":
            return Outcome("", Screen(Text().plain(compact.CANCELLED)))
        return Outcome(EXPIRED)

    async def _confirm_compaction(self, row: InboxRow, press: Press, pressed: Pressed) -> Answers:
        """Say that it began, compact, and return what is told at its end."""
        seq, request_id = pressed.number(), _request(row)
        toast = EXPIRED
        if self._instructions(seq, request_id) is not None:
            toast = await self._obstacle(request_id)
        # Asked again, since another press may have come while Pi was waited for.
        instructions = self._instructions(seq, request_id)
        if instructions is None:
            toast = EXPIRED
        self._calls.answer_callback(press.callback_id, shorten(toast, TOAST))
        if toast or instructions is None:
            return []
        self._answered = seq, request_id
        kept = {"seq": seq, "instructions": instructions, "by": request_id}
        await self._inbox.set_meta(_INSTRUCTIONS, dumps(kept).decode())
        self._shower.edit(row.chat_id, row.message_id, Screen(Text().plain(compact.STARTED)))
        words = await self._changes.compact(request_id, instructions)
        return notice(f"reply-{short_id(row.delivery_id)}", words, row.admitted_ms)

    async def _obstacle(self, request_id: str) -> str:
        """Return why Pi cannot compact now; of one that a crash cut off its record is asked."""
        if self._inbox.ledger(request_id) is not None:
            return ""
        try:
            await self._facts.ready()
        except PiRefused as error:
            return FAILED + str(error)
        return compact.BUSY if self._changes.has_work() else ""

    def _instructions(self, seq: int | None, request_id: str) -> str | None:
        """Return the instructions of a question; None when it was answered, or asked anew since."""
        text = self._inbox.get_meta(_INSTRUCTIONS)
        kept: dict[str, Any] = loads(text) if text is not None else {}
        by = self._answered[1] if self._answered[0] == seq else kept.get("by", request_id)
        if seq is None or kept.get("seq") != seq or by != request_id:
            return None
        return str(kept["instructions"])


def _request(row: InboxRow) -> str:
    """Return the request id of what a press asks: done again after a crash it is done once."""
    return f"press-{short_id(row.delivery_id)}"


def _is_told(error: Exception) -> bool:
    """Whether an error's words stand for themselves."""
    return isinstance(error, Refusal) and error.code in ("busy", "unavailable", "execution-failed")
