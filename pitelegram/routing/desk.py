"""All that asks the operator for whom a message is, put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from pitelegram.botapi.interfaces import IBotApi, ISendGate
from pitelegram.routing.asking import Asking
from pitelegram.routing.candidates import Candidates
from pitelegram.routing.choosing import Choosing
from pitelegram.routing.clearing import Clearing
from pitelegram.routing.interfaces import IDaemonTarget, INotices, IRegistry
from pitelegram.routing.presses import Presses
from pitelegram.store.choosers import Choosers
from pitelegram.store.interfaces import IBindings, IJournal
from pitelegram.threads.interfaces import IThreads

LONG_WAIT = 600.0
"""Seconds after which the status says that messages wait for a choice."""


@attrs.define(eq=False, kw_only=True)
class Desk:
    """Makes the parts and connects them.

    @param now_ms: wall clock, as the store's.
    @param fresh_id: makes ids that nobody can guess, of at most 16 characters.
    @param owner: whose private chat is asked in.
    """

    store: Choosers
    journal: IJournal
    bindings: IBindings
    registry: IRegistry
    threads: IThreads
    api: IBotApi
    gate: ISendGate
    notices: INotices
    clock: IReactorTime
    now_ms: Callable[[], int]
    fresh_id: Callable[[], str]
    owner: Callable[[], int | None]
    candidates: Candidates = attrs.field(init=False)
    choosing: Choosing = attrs.field(init=False)
    asking: Asking = attrs.field(init=False)
    clearing: Clearing = attrs.field(init=False)
    presses: Presses = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Make the parts."""
        self.candidates = Candidates(self.bindings, self.registry, self.threads)
        self.choosing = Choosing(
            store=self.store,
            journal=self.journal,
            bindings=self.bindings,
            registry=self.registry,
            threads=self.threads,
            candidates=self.candidates,
            clock=self.clock,
            now_ms=self.now_ms,
        )
        self.asking = Asking(
            choosing=self.choosing,
            api=self.api,
            gate=self.gate,
            notices=self.notices,
            clock=self.clock,
            fresh_id=self.fresh_id,
            owner=self.owner,
        )
        self.clearing = Clearing(choosing=self.choosing, api=self.api, clock=self.clock)
        self.presses = Presses(
            choosing=self.choosing, clearing=self.clearing, api=self.api, gate=self.gate
        )
        self.choosing.changed = self.asking.changed
        self.choosing.farewell = self.asking.farewell
        self.choosing.clear = self.clearing.begin
        self.clearing.stuck = self.asking.wake

    def start(self) -> None:
        """All unsettled rows are placed: ask, and go on with what was interrupted."""
        self.registry.subscribe(self.choosing)
        self.asking.start()
        self.choosing.resume()

    def problems(self) -> list[str]:
        """Return a sentence when messages have waited long for a choice."""
        old = self.clock.seconds() - LONG_WAIT
        count = sum(len(case.waiting()) for case in self.choosing.cases if case.since < old)
        if not count:
            return []
        return [f"messages in the chat wait until you choose a worker for them: {count}"]

    def is_former(self, chat_id: int) -> bool:
        """Whether a chat is not the owner's any more, who is somebody else by now."""
        return self.owner() not in (None, chat_id)

    def stop(self) -> None:
        """Ask and delete nothing more."""
        self.choosing.stop()
        self.clearing.stop()
        self.asking.stop()


@implementer(IDaemonTarget)
@attrs.define(eq=False)
class DaemonTargets:
    """The panel, in front of which choosers take their buttons and leave it all else.

    A greeting that nobody owns is the panel's only while there is no worker to choose.
    """

    _panel: IDaemonTarget
    _desk: Desk

    def wants(self, kind: str, update: dict[str, Any], binding: Any | None) -> bool:
        """See L{IDaemonTarget.wants}."""
        if kind == "callback_query" and self._desk.presses.wants(update[kind]):
            return True
        if kind == "message" and binding is None and self._desk.candidates.prefers(update[kind]):
            return False
        return self._panel.wants(kind, update, binding)

    def handle(self, kind: str, update: dict[str, Any]) -> Deferred[None]:
        """See L{IDaemonTarget.handle}."""
        if kind == "callback_query" and self._desk.presses.wants(update[kind]):
            return Deferred.fromCoroutine(self._desk.presses.handle(update[kind]))
        return self._panel.handle(kind, update)
