"""The operator's settings as the leader told them: a worker never reads the file with the token."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from twisted.logger import Logger

from pitelegram.bus.handshake import SETTINGS
from pitelegram.bus.interfaces import ILeaderLink
from pitelegram.errors import BusError, Refusal
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.kernel.jsonio import dumps, loads
from pitelegram.store.worker_interfaces import IInbox

DEFAULTS: dict[str, Any] = {
    "rendering": "rich",
    "fileAfter": 20_000,
    "draftPreviews": False,
    "proactivePush": True,
    "activity": "verbose",
    "footer": False,
    "timeInjection": "interval",
    "automaticCleanup": True,
    "voice": {"replyMode": "hidden", "sendTranscript": False},
    "workspaceOnly": False,
    "inboundHandlers": [],
    "outboundHandlers": [],
    "downloadLimit": 20_000_000,
}
"""What counts until a leader has told anything."""

_KEY = "settings"

Observer = Callable[[dict[str, Any]], None]


class Preferences:
    """The settings in force; the last ones told survive a restart without a leader.

    @param link: returns the registered link, None while there is none.
    """

    _log = Logger()

    def __init__(self, inbox: IInbox, link: Callable[[], ILeaderLink | None]) -> None:
        self._inbox = inbox
        self._link = link
        self._observers: list[Observer] = []
        self._told = self._stored()

    def _stored(self) -> dict[str, Any]:
        text = self._inbox.get_meta(_KEY)
        try:
            value: Any = loads(text) if text is not None else {}
        except ValueError:
            value = {}
        return value if isinstance(value, dict) else {}

    def all(self) -> dict[str, Any]:
        """Return a copy of all settings, defaults included."""
        return copy.deepcopy({**DEFAULTS, **self._told})

    def get(self, name: str) -> Any:
        """Return one setting; a dot leads into an object.

        A value of another type than the default's counts as not told.
        """
        default: Any = DEFAULTS
        found: Any = self._told
        for part in name.split("."):
            default = default[part]
            found = found.get(part) if isinstance(found, dict) else None
        if name == "downloadLimit":
            return found if name in self._told and type(found) in (int, type(None)) else default
        return copy.deepcopy(found) if type(found) is type(default) else copy.deepcopy(default)

    def subscribe(self, observer: Observer) -> None:
        """Call C{observer(settings)} after each change."""
        self._observers.append(observer)

    def take(self, settings: dict[str, Any]) -> None:
        """The leader told these."""
        if settings == self._told:
            return
        self._told = copy.deepcopy(settings)
        text = dumps(settings).decode()
        spawn(self._log, "storing the settings", self._inbox.set_meta(_KEY, text))
        for observer in list(self._observers):
            try:
                observer(self.all())
            except Exception:
                self._log.failure("an observer of the settings failed")

    @deferred
    async def set(self, name: str, value: Any) -> None:
        """Have the leader write one setting, and take what is in force then.

        @raise Refusal: it was not done; its text is for the operator.
        """
        link = self._link()
        if link is None or SETTINGS not in link.capabilities:
            raise Refusal("unavailable", "settings cannot be changed while no daemon is connected")
        try:
            settings = await link.set_setting(name, value)
        except BusError as error:
            self._log.info("a setting was not changed: {reason}", reason=str(error))
            raise Refusal("unavailable", "the daemon did not answer; look again") from None
        self.take(settings)
