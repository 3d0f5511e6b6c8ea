"""Presses of the buttons below answers: each becomes one prompt, whatever is killed meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from pitelegram.bridge.buttons import (
    ALREADY,
    EXPIRED,
    PRESSED,
    QUEUED,
    Keyboard,
    key_of,
    keys_of,
    with_styles,
)
from pitelegram.bridge.incoming import Press
from pitelegram.bridge.prompt import prompt_text
from pitelegram.store.rows import ButtonRow, InboxRow
from pitelegram.store.worker_interfaces import IOutgoing
from pitelegram.worker.bestcalls import BestEffort
from pitelegram.worker.queue import Queue


class Buttons:
    """Makes presses prompts of the priority lane.

    The row of the press is the prompt: the commit that holds it marks the button.  Killed before, the
    press is done again at the next start; killed behind, only its answer and the looks of the button
    are missing.

    @param thread_name: returns the name of the worker's Thread, where it has one.
    """

    def __init__(
        self,
        outgoing: IOutgoing,
        queue: Queue,
        calls: BestEffort,
        thread_name: Callable[[], str | None],
    ) -> None:
        self._outgoing = outgoing
        self._queue = queue
        self._calls = calls
        self._thread_name = thread_name

    async def press(self, row: InboxRow, press: Press) -> None:
        """Do what an admitted press asks, and answer it."""
        key = key_of(press.data)
        button = None if key is None else self._outgoing.button(key)
        if button is None:
            self._calls.answer_callback(press.callback_id, EXPIRED)
        elif button.pressed or not await self._hold(row, button):
            self._calls.answer_callback(press.callback_id, ALREADY)
        else:
            self._queue.kick(new=True)
            self._calls.answer_callback(press.callback_id, QUEUED)
            self._show(row, button.keyboard)

    async def _hold(self, row: InboxRow, button: ButtonRow) -> bool:
        prompt = prompt_text(button.prompt, self._thread_name())
        return await self._outgoing.press(button.key, row.seq, prompt, {"summary": button.label})

    def _show(self, row: InboxRow, keyboard: Keyboard) -> None:
        """Give every button of the message that was pressed its looks, and no other one.

        A keyboard is sent whole: without the earlier ones they would lose theirs.
        """
        if row.chat_id is None or row.message_id is None:
            return
        found = [self._outgoing.button(key) for key in keys_of(keyboard)]
        styles = {each.key: each.style or PRESSED for each in found if each and each.pressed}
        markup = {"inline_keyboard": with_styles(keyboard, styles)}
        place = {"chat_id": row.chat_id, "message_id": row.message_id}
        self._calls.call("editMessageReplyMarkup", {**place, "reply_markup": markup})
