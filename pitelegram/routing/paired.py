"""The paired owner, as the settings name him, and what admission reports about him."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from pitelegram.kernel.deferring import deferred
from pitelegram.settings.file import SettingsFile
from pitelegram.settings.model import Settings
from pitelegram.settings.watching import Watcher


@attrs.define(eq=False, kw_only=True)
class Owner:
    """Provides L{pitelegram.routing.admission.Ownership} from C{telegram.json}.

    @param on_paired: called when there is a new owner, and when the same one has paired again.
    @param on_replaced: called with the id of who was the owner and is not any more.
    @param on_blocked: the owner blocked the bot, or let it back in.
    @param on_service: a service message of the owner or the bot itself.
    """

    file: SettingsFile
    watcher: Watcher
    clock: IReactorTime
    profile: str
    on_paired: Callable[[], None] = lambda: None
    on_replaced: Callable[[int], None] = lambda user_id: None
    on_blocked: Callable[[bool], None] = lambda blocked: None
    on_service: Callable[[dict[str, Any]], Any] = lambda message: None

    _last: int | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        """Notice every change of the owner, whoever writes the file."""
        self._last = self.watcher.settings.allowed_user_id
        self.watcher.subscribe(self._changed)

    def _changed(self, settings: Settings) -> None:
        before, self._last = self._last, settings.allowed_user_id
        if before == self._last:
            return
        if self._last is not None:
            self.on_paired()
        if before is not None:
            self.on_replaced(before)

    def owner(self) -> int | None:
        """The paired owner's user id, which is his private chat's id too; None while unpaired."""
        return self.watcher.settings.allowed_user_id

    def first_contact(self) -> bool:
        """Whether the first person who writes becomes the owner."""
        return self.watcher.settings.pairing_first_contact

    def reload(self) -> None:
        """Read the settings again if the file changed."""
        self.watcher.look()

    @deferred
    async def paired(self, user_id: int, chat_id: int) -> None:
        """Store a new owner."""
        again = self.owner() == user_id

        def name_owner(document: dict[str, Any]) -> None:
            profiles = document.setdefault("profiles", {})
            profiles.setdefault(self.profile, {})["allowedUserId"] = user_id

        await self.file.update(self.clock, name_owner)
        self.watcher.look()
        if again:
            self.on_paired()

    @deferred
    async def remember_bot(self, me: dict[str, Any]) -> None:
        """Store the bot's id and name, so that the next start does not need Telegram."""
        if (self.watcher.settings.bot_id, self.watcher.settings.bot_username) == (
            me["id"],
            me.get("username"),
        ):
            return

        def name_bot(document: dict[str, Any]) -> None:
            profile = document.setdefault("profiles", {}).setdefault(self.profile, {})
            profile["botId"] = me["id"]
            profile["botUsername"] = me.get("username")

        await self.file.update(self.clock, name_bot)
        self.watcher.look()

    def blocked(self, blocked: bool) -> None:
        """See L{pitelegram.routing.admission.Ownership}."""
        self.on_blocked(blocked)

    def service(self, message: dict[str, Any]) -> Deferred[None] | None:
        """See L{pitelegram.routing.admission.Ownership}."""
        return self.on_service(message)  # type: ignore[no-any-return]
