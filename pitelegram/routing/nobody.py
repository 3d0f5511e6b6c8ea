"""Messages in Threads that belong to no worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.kernel.deferring import spawn
from pitelegram.routing.lanes import Entry
from pitelegram.store.interfaces import IBindings
from pitelegram.targets import TelegramTarget

QUIET = 600.0
"""Seconds between two answers in the same place."""

PROVISION_PATIENCE = 60.0
"""Seconds that a message waits while a Thread is being made: it may be the one it stands in."""

THREAD_TEXT = "This Thread belongs to no worker. /daemon shows the workers."
ALL_TEXT = "Messages here reach no worker: write in a worker's Thread. /daemon shows the workers."
_MOST = 1000


@attrs.define(eq=False)
class Nobody:
    """Answers that nobody is there, at most every ten minutes per place."""

    _bindings: IBindings
    _reply: Callable[[TelegramTarget, str], Deferred[Any]]
    _clock: IReactorTime
    _answered: dict[TelegramTarget, float] = attrs.field(factory=dict, init=False)
    _first_seen: dict[int, float] = attrs.field(factory=dict, init=False)
    _log = Logger()

    def settles(self, entry: Entry) -> bool:
        """Whether the row is done with; False: look again in a second."""
        if entry.row.kind != "message":
            return True
        if self._may_be_coming(entry):
            return False
        self._first_seen.pop(entry.seq, None)
        target, now = entry.row.target, self._clock.seconds()
        if now - self._answered.get(target, -QUIET) >= QUIET:
            if len(self._answered) >= _MOST:
                self._answered.clear()
            self._answered[target] = now
            text = ALL_TEXT if target.thread_id is None else THREAD_TEXT
            spawn(
                self._log, "answering in nobody's Thread", maybeDeferred(self._reply, target, text)
            )
        return True

    def _may_be_coming(self, entry: Entry) -> bool:
        if entry.row.thread_id is None or not self._bindings.provisions():
            return False
        now = self._clock.seconds()
        return now - self._first_seen.setdefault(entry.seq, now) < PROVISION_PATIENCE
