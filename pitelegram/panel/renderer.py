"""Shows screens: within the chat's rate budget, answering a press apart from changing its message."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Any

import attrs
from twisted.logger import Logger

from pitelegram.botapi.interfaces import IBotApi, ISendGate
from pitelegram.botapi.limits import call_in_turn
from pitelegram.errors import CertainlyUnsent, PiTelegramError, TelegramError
from pitelegram.kernel.deferring import deferred
from pitelegram.panel.reply import Reply
from pitelegram.panel.screens import Screen, clip
from pitelegram.store.interfaces import IBindings

TOAST_LIMIT = 200
"""Characters of a callback answer (Bot API)."""

OWNER = "daemon"
"""Binding key under which the panel's own messages are remembered."""

_MOST_TRIES = 5
"""So often a screen is tried again that a flood limit kept away."""

_MOST_PANELS = 200
"""Panels of which is known what they show."""

_GONE = re.compile(r"message to edit not found|message can't be edited|MESSAGE_ID_INVALID", re.I)


@attrs.define(eq=False)
class Renderer:
    """The one way a screen gets into the chat.

    @param gate: the rate budget of the chat.
    @param bindings: remembers which messages are panels.
    """

    _api: IBotApi
    _gate: ISendGate
    _bindings: IBindings
    _log: Logger = attrs.field(factory=Logger, init=False)
    _families: OrderedDict[tuple[int, int], str] = attrs.field(factory=OrderedDict, init=False)
    _wanted: dict[tuple[int, int], Screen] = attrs.field(factory=dict, init=False)

    async def send(self, place: dict[str, int], screen: Screen) -> None:
        """Send a screen as a new message and remember it as a panel."""
        try:
            sent = await call_in_turn(
                self._api, self._gate, "sendMessage", {**place, **screen.as_params()}
            )
        except TelegramError as error:
            self._log.info("panel not shown: {code}", code=error.code)
            return
        message_id = sent.get("message_id") if isinstance(sent, dict) else None
        if type(message_id) is int:
            await self._remember(place["chat_id"], message_id)

    @deferred
    async def answer(self, query: dict[str, Any], reply: Reply) -> None:
        """Answer the press; Telegram's refusal of a late answer changes nothing else."""
        params: dict[str, Any] = {"callback_query_id": query["id"]}
        if reply.toast:
            params["text"] = clip(reply.toast, TOAST_LIMIT)
            if reply.alert:
                params["show_alert"] = True
        try:
            await self._api.call("answerCallbackQuery", params)
        except TelegramError as error:
            self._log.debug("callback not answered: {code}", code=error.code)

    @deferred
    async def edit(self, query: dict[str, Any], screen: Screen) -> None:
        """Make the pressed message that screen; one that is gone is sent anew.

        While the chat's budget holds an edit of a message up, only its newest screen is kept.
        """
        message = query.get("message")
        if not message:
            return
        key = (message["chat"]["id"], message["message_id"])
        self._families[key] = screen.family
        while len(self._families) > _MOST_PANELS:
            self._families.popitem(last=False)
        under_way = key in self._wanted
        self._wanted[key] = screen
        if under_way:
            return
        try:
            await self._take_over(query)
            shown: Screen | None = None
            tries = 0
            while self._wanted[key] is not shown:
                await self._gate.wait(key[0])
                shown = self._wanted[key]
                if await self._show(message, shown) and tries < _MOST_TRIES:
                    tries, shown = tries + 1, None
        finally:
            del self._wanted[key]

    async def _show(self, message: dict[str, Any], screen: Screen) -> bool:
        """Edit once; whether Telegram said that it is to be done later."""
        where = {"chat_id": message["chat"]["id"], "message_id": message["message_id"]}
        try:
            await self._api.call("editMessageText", {**where, **screen.as_params()})
        except TelegramError as error:
            self._log.info("panel not re-rendered: {code}", code=error.code)
            if isinstance(error, CertainlyUnsent) and error.retry_after is not None:
                self._gate.flood(where["chat_id"], error.retry_after)
                return True
            if _GONE.search(error.description):
                await self.send(place_of(message), screen)
        else:
            await self._adopt(where["chat_id"], where["message_id"])
        return False

    async def end(self, query: dict[str, Any], reply: Reply) -> None:
        """Show how an action ended, unless the operator has gone on to other screens meanwhile.

        What went wrong is then sent as a new panel, so that it is not missed.
        """
        message, screen = query.get("message"), reply.screen
        if not message or screen is None:
            return
        key = (message["chat"]["id"], message["message_id"])
        if self._families.get(key, screen.family) == screen.family:
            await self.edit(query, screen)
        elif reply.alert:
            await self.send(place_of(message), screen)

    def issuer(self, query: dict[str, Any]) -> str | None:
        """For whom this program sent the pressed message: L{OWNER}, a binding, or None: nobody."""
        message = query.get("message")
        if not isinstance(message, dict):
            return None
        found = self._bindings.message_owner(message["chat"]["id"], message["message_id"])
        return found[0] if found is not None and found[1] else None

    async def _take_over(self, query: dict[str, Any]) -> None:
        """A message about a worker becomes a panel: from now on nobody else's buttons are on it."""
        if self.issuer(query) in (None, OWNER):
            return
        message = query["message"]
        await self._remember(message["chat"]["id"], message["message_id"])

    async def _adopt(self, chat_id: int, message_id: int) -> None:
        """A message that was forgotten, or never noted, and took a screen is a panel again.

        Telegram lets a bot change its own messages only, and what it shows now is ours.
        """
        if self._bindings.message_owner(chat_id, message_id) is None:
            await self._remember(chat_id, message_id)

    async def _remember(self, chat_id: int, message_id: int) -> None:
        try:
            await self._bindings.remember_messages(chat_id, [message_id], OWNER, True)
        except PiTelegramError as error:
            self._log.warn("a panel was not remembered: {why}", why=str(error))


def place_of(message: dict[str, Any]) -> dict[str, int]:
    """Return the chat and Thread of a message as parameters of a send."""
    place = {"chat_id": message["chat"]["id"]}
    if message.get("message_thread_id") is not None:
        place["message_thread_id"] = message["message_thread_id"]
    return place
