"""Messages that the operator changes after they were sent."""

from __future__ import annotations

from typing import Any

import attrs

from pitelegram.bridge import intakewords as words
from pitelegram.bridge.content import Content
from pitelegram.bridge.incoming import Command, Edit, Nothing
from pitelegram.kernel.jsonio import dumps, loads
from pitelegram.store.rows import InboxRow
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.gathering import Gatherer
from pitelegram.worker.lanes import CONTROL
from pitelegram.worker.making import Maker
from pitelegram.worker.settling import Settler, short_id

EARLY_KEPT = 20
EARLY_SECONDS = 3600.0
"""An edit that came before its message waits for it that long."""
FORGOTTEN_SECONDS = 600.0
"""A message that is older, and not known here, is over."""

TOLD_KEPT = 50
"""Notes that are remembered; the leader knows the others by their ids."""

ANSWERS_KEPT = 50
"""Answers to questions that are remembered as such; older ones are taken for commands."""

_ANSWERS_KEY = "answers-given"
_EARLY_KEY = "early-edits"
_TOLD_KEY = "edits-told"
_WAITING = ("admitted", "joined", "held")


class Editing:
    """Corrects what was not handed yet; of the rest it says once that it is too late."""

    def __init__(self, inbox: IInbox, gatherer: Gatherer, maker: Maker, settler: Settler) -> None:
        self._inbox = inbox
        self._gatherer = gatherer
        self._maker = maker
        self._settler = settler

    async def edit(self, row: InboxRow, edit: Edit) -> None:
        """Do what an admitted edit asks.

        @param row: the edit's own.
        """
        if row.chat_id is None or row.message_id is None or isinstance(edit.content, Nothing):
            return
        original = self._inbox.by_message(row.chat_id, row.message_id)
        if original is None:
            await self._unknown(row)
        elif original.source != "telegram":
            return
        elif original.lane == CONTROL:
            answered = original.delivery_id in self._answers()
            text = words.EDIT_OF_ANSWER if answered else words.EDIT_OF_COMMAND
            await self._note(original, "done", text)
        elif self._maker.read(original) == self._maker.read(row) and original.body is not None:
            return  # Telegram tells of edits that nobody sees, too.
        elif original.state not in _WAITING:
            await self._note(original, "late", words.EDIT_TOO_LATE)
        elif isinstance(edit.content, Command):
            await self._note(original, "command", words.EDIT_TO_COMMAND)
        elif _empty(self._maker.read(row)):
            await self._note(original, "empty", words.EDIT_EMPTY)
        elif row.body is not None and not await self._gatherer.change(original, row.body):
            await self._note(original, "late", words.EDIT_TOO_LATE)

    async def answered(self, row: InboxRow) -> None:
        """A message was the answer to a question: once it is settled, its row does not say so."""
        answers = self._answers()
        if row.delivery_id not in answers:
            newest = [*answers, row.delivery_id][-ANSWERS_KEPT:]
            await self._inbox.set_meta(_ANSWERS_KEY, " ".join(newest))

    def _answers(self) -> list[str]:
        return (self._inbox.get_meta(_ANSWERS_KEY) or "").split()

    def waits_for(self, chat_id: int | None, message_id: int | None) -> bool:
        """Whether an edit of that message came already."""
        return f"{chat_id}:{message_id}" in self._early()

    async def edited_before(self, row: InboxRow | None) -> InboxRow | None:
        """Return a new row, with the edit in it that came before it."""
        if row is None or not (early := self._early()):
            return row
        found = early.pop(f"{row.chat_id}:{row.message_id}", None)
        if found is None:
            return row
        body = dumps(found["update"])
        await self._inbox.change_body(row.seq, body)
        await self._inbox.set_meta(_EARLY_KEY, dumps(early).decode())
        return attrs.evolve(row, body=body)

    async def recover(self) -> None:
        """Work in the edits whose messages a former process stored without doing so."""
        if self._early():
            for row in self._inbox.rows("admitted"):
                if row.lane != CONTROL:
                    await self.edited_before(row)

    async def _unknown(self, row: InboxRow) -> None:
        """Keep an edit for its message to come; of one that is over it is too late."""
        update = loads(row.body or b"{}")
        message = update.get("edited_message")
        date = message.get("date") if isinstance(message, dict) else None
        if type(date) is int and row.admitted_ms / 1000 - date > FORGOTTEN_SECONDS:
            await self._note(row, "late", words.EDIT_TOO_LATE)
            return
        early = self._early()
        early[f"{row.chat_id}:{row.message_id}"] = {"update": update, "at": row.admitted_ms}
        newest = sorted(early.items(), key=lambda each: each[1]["at"])[-EARLY_KEPT:]
        await self._inbox.set_meta(_EARLY_KEY, dumps(dict(newest)).decode())

    def _early(self) -> dict[str, Any]:
        """Return the edits that wait for their messages."""
        text = self._inbox.get_meta(_EARLY_KEY)
        if text is None:
            return {}
        since = self._settler.now_ms() - EARLY_SECONDS * 1000
        stored = loads(text)
        return {place: each for place, each in stored.items() if each["at"] >= since}

    async def _note(self, original: InboxRow, kind: str, text: str) -> None:
        """Say it once per message: id and time are the message's."""
        name = f"edit-{kind}-{short_id(original.delivery_id)}"
        told = (self._inbox.get_meta(_TOLD_KEY) or "").split()
        if name not in told:
            await self._inbox.set_meta(_TOLD_KEY, " ".join([*told, name][-TOLD_KEPT:]))
            self._settler.say(name, text, original.admitted_ms)


def _empty(content: Content) -> bool:
    return not (content.text.strip() or content.files) and content.notes[:1] == (
        "[message] without anything that can be read",
    )
