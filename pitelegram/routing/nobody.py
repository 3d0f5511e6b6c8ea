"""The short answer where messages reach no worker, and nothing is asked about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.kernel.deferring import spawn
from pitelegram.store.rows import JournalRow
from pitelegram.targets import TelegramTarget

QUIET = 600.0
"""Seconds between two answers in the same place."""

THREAD_TEXT = "This Thread belongs to no worker. /daemon shows the workers."
ALL_TEXT = "Messages here reach no worker: write in a worker's Thread. /daemon shows the workers."
_MOST = 1000


@attrs.define(eq=False)
class Nobody:
    """Answers that nobody is there, at most every ten minutes per place."""

    _reply: Callable[[TelegramTarget, str], Deferred[Any]]
    _clock: IReactorTime
    _answered: dict[TelegramTarget, float] = attrs.field(factory=dict, init=False)
    _log = Logger()

    def answer(self, row: JournalRow) -> None:
        """Answer a message, unless that was done lately; anything else needs no answer."""
        if row.kind != "message":
            return
        target, now = row.target, self._clock.seconds()
        if now - self._answered.get(target, -QUIET) >= QUIET:
            if len(self._answered) >= _MOST:
                self._answered.clear()
            self._answered[target] = now
            text = ALL_TEXT if target.thread_id is None else THREAD_TEXT
            spawn(
                self._log, "answering in nobody's Thread", maybeDeferred(self._reply, target, text)
            )
