"""The commands of the Thread that show a menu, ask Pi, or are Pi's own templates.

Those that end something stand in L{pitelegram.worker.halting}: they wait for nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from twisted.internet.defer import Deferred

from pitelegram.bridge import labels
from pitelegram.bridge.answer import deliveries, notice
from pitelegram.bridge.incoming import Command
from pitelegram.bridge.menus import compact, model, sessions, thinking
from pitelegram.bridge.menus.screen import Screen
from pitelegram.errors import PiGone, PiRefused
from pitelegram.store.rows import InboxRow
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.aside import Answers
from pitelegram.worker.changes import Changes
from pitelegram.worker.menus import Menus
from pitelegram.worker.pifacts import PiFacts
from pitelegram.worker.queue import Queue
from pitelegram.worker.settling import short_id
from pitelegram.worker.showing import Shower

FAILED = "Command failed."


class Commands:
    """Does commands; each is harmless to do again after a crash.

    @param with_name: whether the leader can name Threads.
    """

    def __init__(
        self,
        inbox: IInbox,
        facts: PiFacts,
        queue: Queue,
        changes: Changes,
        menus: Menus,
        shower: Shower,
        with_name: Callable[[], bool],
    ) -> None:
        self._inbox = inbox
        self._facts = facts
        self._queue = queue
        self._changes = changes
        self._menus = menus
        self._shower = shower
        self._with_name = with_name
        self._known: dict[str, Callable[[InboxRow, str], Awaitable[Answers]]] = {
            "compact": self._compact,
            "help": self._main,
            "model": self._model,
            "new": self._new,
            "queue": self._show_queue,
            "sessions": self._sessions,
            "settings": self._settings,
            "start": self._main,
            "thinking": self._thinking,
        }

    async def status(self, row: InboxRow) -> Answers:
        """Answer C{/status}: never longer than half a second, and as a message that is not lost."""
        screen = await self._menus.status()
        call: dict[str, Any] = {"method": "sendMessage", "params": screen.as_params()}
        return deliveries(_name(row), "notice", [call], row.admitted_ms)

    async def do(self, row: InboxRow, command: Command) -> Answers:
        """Do a command, and return what is told; a template becomes a prompt."""
        known = self._known.get(command.name)
        if known is not None:
            return await known(row, command.argument)
        return await self._template(row, command)

    def comes_first(self, command: Command) -> bool:
        """Whether prompts behind a command wait for it: it changes Pi, or becomes a prompt."""
        if command.name in ("model", "thinking"):
            return bool(command.argument)
        return command.name == "new" or command.name not in self._known

    def failed(self, row: InboxRow, why: str) -> Answers:
        """Return what is told of a command that was not done."""
        return _told(row, f"{FAILED} {why}".strip())

    # --- menus ---------------------------------------------------------------------------------

    async def _main(self, row: InboxRow, argument: str) -> Answers:
        return await self._show(row, await self._menus.main())

    async def _show_queue(self, row: InboxRow, argument: str) -> Answers:
        return await self._show(row, self._menus.items())

    async def _settings(self, row: InboxRow, argument: str) -> Answers:
        return await self._show(row, self._menus.settings())

    async def _sessions(self, row: InboxRow, argument: str) -> Answers:
        return await self._show(row, self._menus.sessions())

    async def _show(self, row: InboxRow, screen: Screen) -> Answers:
        return await self._shower.send(_name(row), screen, row.admitted_ms)

    # --- Pi ------------------------------------------------------------------------------------

    async def _model(self, row: InboxRow, argument: str) -> Answers:
        if not argument:
            return await self._show(row, await self._menus.models())
        await self._facts.ready()
        found = model.named(await self._facts.models(fresh=True), argument)
        if len(found) != 1:
            return _told(row, model.unknown(argument, found))
        busy = await self._changes.use_model(found[0])
        return _told(row, model.switched(found[0], busy))

    async def _thinking(self, row: InboxRow, argument: str) -> Answers:
        if not argument:
            return await self._show(row, await self._menus.levels())
        await self._facts.ready()
        levels, level = await self._facts.levels(), argument.lower()
        if level not in levels or not thinking.has_choice(levels):
            return _told(row, thinking.unknown(argument, levels))
        return _told(row, thinking.chosen(await self._changes.use_level(level)))

    async def _compact(self, row: InboxRow, argument: str) -> Answers:
        await self._facts.ready()
        if self._changes.has_work():
            return _told(row, compact.BUSY)
        return await self._show(row, await self._menus.compact_question(row, argument))

    async def _new(self, row: InboxRow, argument: str) -> Answers:
        await self._facts.ready()
        if self._changes.has_work():
            return await self._show(row, self._menus.new_question())
        await self._changes.new_session(f"command-{short_id(row.delivery_id)}")
        return _told(row, sessions.NEW)

    # --- templates -----------------------------------------------------------------------------

    async def _template(self, row: InboxRow, command: Command) -> Answers:
        """Give Pi's own command to Pi as a prompt; nothing else with a slash goes there."""
        found = []
        if command.name not in labels.ELSEWHERE:
            try:
                await self._facts.ready()
                found = await self._facts.templates()
            except (PiRefused, PiGone):
                return _told(row, labels.unasked_command(command.name))
        for each in found:
            if command.name == each.name:
                holding: Deferred[None] = self._inbox.hold(
                    row.seq,
                    each.prompt(command.argument),
                    {"summary": f"🧩 /{each.name}"},
                    "normal",
                )
                await holding
                self._queue.kick(new=True)
                return []
        names = [each.name for each in found]
        return _told(row, labels.unknown_command(command.name, self._with_name(), names))


def _name(row: InboxRow) -> str:
    return f"reply-{short_id(row.delivery_id)}"


def _told(row: InboxRow, text: str) -> Answers:
    return notice(_name(row), text, row.admitted_ms)
