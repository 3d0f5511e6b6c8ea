"""Whether the bot has Threads in its private chat (rule D20)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.logger import Logger

from pitelegram.kernel.deferring import spawn
from pitelegram.store.interfaces import ILeadership

ENABLED = "enabled"
DISABLED = "disabled"
UNKNOWN = "unknown"

_META = "thread_mode"


class ThreadMode:
    """What the last C{getMe} said, remembered over restarts.

    Threads that appear are believed at once; that they went only when two answers in a row say so.

    @param changed: called with the old mode after a change.
    """

    log = Logger()

    def __init__(self, leadership: ILeadership, changed: Callable[[str], None]) -> None:
        self._leadership = leadership
        self._changed = changed
        self._now: str | None = None
        self._doubts = 0

    def now(self) -> str:
        """Return C{enabled}, C{disabled} or C{unknown}."""
        if self._now is None:
            kept = self._leadership.get_meta(_META)
            self._now = kept if kept in (ENABLED, DISABLED) else UNKNOWN
        return self._now

    def learn(self, me: dict[str, Any]) -> None:
        """Take a C{getMe} answer."""
        for key, name in (("bot_id", "id"), ("bot_username", "username")):
            value = str(me.get(name) or "")
            if value and self._leadership.get_meta(key) != value:
                spawn(self.log, "storing a fact", self._leadership.set_meta(key, value))
        before = self.now()
        said = ENABLED if me.get("has_topics_enabled") is True else DISABLED
        if said == before:
            self._doubts = 0
            return
        if before == ENABLED and self._doubts == 0:
            self._doubts = 1
            return
        self._doubts = 0
        self._now = said
        spawn(self.log, "storing a fact", self._leadership.set_meta(_META, said))
        self._changed(before)
