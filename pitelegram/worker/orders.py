"""Commands, edits and presses: everything admitted that overtakes the queue.

Each is done once as far as the operator can tell: a crash between effect and settlement repeats it
at the next start, and every effect here is harmless to repeat.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from pitelegram.bridge import labels
from pitelegram.bridge.answer import notice
from pitelegram.bridge.buttons import is_button
from pitelegram.bridge.incoming import (
    Asked,
    Command,
    Edit,
    Origin,
    Press,
    Prompt,
    Reaction,
    read_update,
)
from pitelegram.bridge.menus.data import belongs
from pitelegram.bridge.prompt import prompt_text
from pitelegram.bridge.questions import PREFIX
from pitelegram.bridge.reactions import wish
from pitelegram.errors import StoreError, StoreFull
from pitelegram.kernel.deferring import spawn
from pitelegram.kernel.jsonio import loads
from pitelegram.store.rows import InboxRow
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.aside import Answers, Aside
from pitelegram.worker.bestcalls import BestEffort
from pitelegram.worker.buttons import Buttons
from pitelegram.worker.commands import Commands
from pitelegram.worker.dialogs import Dialogs
from pitelegram.worker.editing import Editing
from pitelegram.worker.halting import Halting
from pitelegram.worker.lanes import CONTROL
from pitelegram.worker.menus import Menus
from pitelegram.worker.naming import Naming
from pitelegram.worker.queue import Queue
from pitelegram.worker.reactions import Reactions
from pitelegram.worker.settling import Settler, short_id

AT_ONCE = ("abort", "continue", "next", "status", "stop")
"""Commands that wait for nothing and for no other command."""
OVERTAKES = ("abort", "status", "stop")
"""Those of them that go before edits, reactions and presses, of which thousands may be waiting."""


class Orders:
    """Does what admitted rows ask, in their order.

    @param thread_name: returns the name of the worker's Thread, where it has one.
    @param commands: those that show something or ask Pi.
    @param menus: what buttons of menus do.
    @param buttons: what those below answers do.
    @ivar _aside: rows about names, which are under way or wait for a leader (C{_waiting}).
    """

    _log = Logger()

    def __init__(
        self,
        inbox: IInbox,
        queue: Queue,
        halting: Halting,
        calls: BestEffort,
        settler: Settler,
        thread_name: Callable[[], str | None],
        dialogs: Dialogs,
        naming: Naming,
        reactions: Reactions,
        editing: Editing,
        commands: Commands,
        menus: Menus,
        buttons: Buttons,
    ) -> None:
        self._inbox = inbox
        self._queue = queue
        self._halting = halting
        self._calls = calls
        self._settler = settler
        self._thread_name = thread_name
        self._dialogs = dialogs
        self._naming = naming
        self._aside: set[int] = set()
        self._waiting: set[int] = set()
        self._reactions = reactions
        self._editing = editing
        self._commands = commands
        self._menus = menus
        self._buttons = buttons
        self._slow = Aside(self._commit, commands.failed, self._done)
        self._working: Deferred[Any] | None = None
        self._in_a_hurry = False

    def hurry(self, asked: Asked) -> None:
        """An order was admitted, perhaps one that overtakes others."""
        if isinstance(asked, Command) and asked.name in OVERTAKES:
            self._in_a_hurry = True
        self.kick()

    def kick(self) -> None:
        """Do every admitted row; safe to call at any time."""
        if self._working is None:
            working = spawn(self._log, "doing what was asked", self._work())
            if not working.called:
                self._working = working

    def earliest(self) -> int | None:
        """Return the first order that prompts behind it have to wait for, None when there is none."""
        return self._slow.earliest()

    def _done(self) -> None:
        """An order beside the others is over; what waited for it may go."""
        self.kick()
        self._queue.kick()

    def placed(self) -> None:
        """There is a link, or another Thread."""
        self._naming.placed()
        self._aside -= self._waiting
        self._waiting.clear()
        self.kick()

    async def _work(self) -> None:
        try:
            while rows := self._waiting_rows():
                for row in rows:
                    if self._in_a_hurry:
                        break
                    await self._do(row)
        finally:
            self._working = None

    def _waiting_rows(self) -> list[InboxRow]:
        """Return what was admitted to be done and nobody does yet; others become prompts."""
        rows = [row for row in self._inbox.rows("admitted") if row.lane == CONTROL]
        rows = [r for r in rows if r.seq not in self._aside and not self._slow.has(r.seq)]
        hurry, self._in_a_hurry = self._in_a_hurry, False
        return _hurried(rows) if hurry else rows

    async def _do(self, row: InboxRow) -> None:
        try:
            asked, origin = read_update(row.kind, loads(row.body or b"{}"))
            if self._naming.wants(asked, origin):
                self._aside.add(row.seq)
                spawn(self._log, "naming a Thread", self._name(row, asked, origin))
                return
            if self._is_slow(row, asked):
                return
            if isinstance(asked, Command) and asked.name == "status":
                await self._commit(row, await self._commands.status(row))
                return
            text = await self._answer(row, asked, origin)
        except ValueError:
            # It was read before it was admitted; only a damaged row comes here.
            self._log.error("an admitted row cannot be read; it is settled without effect")
            text = None
        await self._settle(row, text)

    def _is_slow(self, row: InboxRow, asked: Asked) -> bool:
        """Whether it is begun beside the others, since it asks Pi or shows a menu."""
        if isinstance(asked, Command) and asked.name not in AT_ONCE:
            first = self._commands.comes_first(asked)
            self._slow.begin(row, lambda: self._commands.do(row, asked), first=first)
        elif isinstance(asked, Press) and belongs(asked.data):
            self._slow.begin(
                row, lambda: self._menus.press(row, asked), self._menus.lane(row, asked.data)
            )
        else:
            return False
        return True

    async def _name(self, row: InboxRow, asked: Asked, origin: Origin) -> None:
        """Beside the others: what Telegram takes its time for must not hold up an abort."""
        if not self._naming.ready():
            self._waiting.add(row.seq)
            return
        if isinstance(asked, Prompt):
            await self._editing.answered(row)
        text = await self._naming.do(asked, origin, row.delivery_id)
        await self._settle(row, text)
        self._aside.discard(row.seq)

    async def _settle(self, row: InboxRow, text: str | None) -> None:
        answers = (
            notice(f"reply-{short_id(row.delivery_id)}", text, row.admitted_ms) if text else []
        )
        await self._commit(row, answers)

    async def _commit(self, row: InboxRow, answers: Answers) -> None:
        now = self._inbox.row(row.delivery_id)
        still = now is not None and now.state == "admitted"  # else it became a prompt
        await self._settler.commit([row.seq] if still else [], answers)
        self._queue.kick()

    async def _answer(self, row: InboxRow, asked: Asked, origin: Origin) -> str | None:
        """Do it and return what the operator is told, if anything."""
        if isinstance(asked, Prompt):
            # A message comes here only as a reply to a dialog: others are gathered to prompts.
            await self._editing.answered(row)
            return self._dialogs.reply(origin, asked.text if asked.plain else None)
        if isinstance(asked, Command):
            return await self._command(row, asked)
        if isinstance(asked, Edit):
            await self._editing.edit(row, asked)
        if isinstance(asked, Press):
            await self._press(row, asked, origin)
        if isinstance(asked, Reaction) and None not in (row.chat_id, row.message_id):
            place = row.chat_id or 0, row.message_id or 0
            await self._reactions.apply(*place, wish(asked.old, asked.new))
        return None

    async def _command(self, row: InboxRow, command: Command) -> str:
        if command.name == "abort":
            return await self._halting.abort(row)
        if command.name == "stop":
            return await self._halting.stop(row)
        if command.name == "next":
            return await self._halting.next_turn(row)
        prompt = prompt_text("continue", self._thread_name())
        await self._queue.go_on(row, prompt, labels.CONTINUE)
        return labels.CONTINUING

    async def _press(self, row: InboxRow, press: Press, origin: Origin) -> None:
        if press.data.startswith(PREFIX):
            self._dialogs.pressed(press, origin)
            return
        if is_button(press.data):
            await self._buttons.press(row, press)
            return
        key = press.data[len(labels.AGAIN_PREFIX) :]
        if not press.data.startswith(labels.AGAIN_PREFIX) or not key:
            self._calls.answer_callback(press.callback_id, labels.STALE_BUTTON)
            return
        found = [old for old in self._inbox.rows("uncertain") if short_id(old.delivery_id) == key]
        if found:
            with self._queue.paused():  # it is complete after the second commit
                await self._again(found[0], key)
        self._calls.answer_callback(
            press.callback_id, labels.AGAIN_SENT if found else labels.AGAIN_GONE
        )
        self._calls.remove_buttons(row.chat_id, row.message_id)

    async def _with_pictures(self, row: InboxRow | None, old: InboxRow) -> None:
        """Give a prompt that is sent again what the old one had beside its text."""
        if row is None or row.state != "held" or old.content is None:
            return
        try:
            await self._inbox.hold(row.seq, row.prompt or "", old.content)
        except StoreFull:
            raise
        except StoreError:
            self._log.info("a prompt that was sent again was handed without its pictures")

    async def _again(self, old: InboxRow, key: str) -> None:
        await self._inbox.admit(
            f"again-{key}",
            "again",
            old.kind,
            b"{}",
            old.prompt or "",
            chat_id=old.chat_id,
            thread_id=old.thread_id,
            message_id=old.message_id,
            lane="normal",
        )
        await self._with_pictures(self._inbox.row(f"again-{key}"), old)
        await self._inbox.settle([old.seq])
        self._queue.kick(new=True)


def _hurried(rows: list[InboxRow]) -> list[InboxRow]:
    """Return orders with those first that overtake; C{/next} and C{/continue} keep theirs behind."""
    first: list[InboxRow] = []
    for row in rows:
        name = _command_name(row)
        if name in OVERTAKES:
            first.append(row)
        elif name in AT_ONCE:
            break
    ahead = {row.seq for row in first}
    return first + [row for row in rows if row.seq not in ahead]


def _command_name(row: InboxRow) -> str:
    try:
        asked = (
            read_update(row.kind, loads(row.body or b"{}"))[0] if row.kind == "message" else None
        )
    except ValueError:
        return ""
    return asked.name if isinstance(asked, Command) else ""
