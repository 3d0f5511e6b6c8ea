"""Rows whose worker is not there: held, told of once, and freed when it is proven not to have them."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from pitelegram.errors import StoreError
from pitelegram.kernel.deferring import spawn
from pitelegram.routing.interfaces import IExpectation, IInboxProbe, INotices, IRegistry
from pitelegram.routing.lanes import Entry, Lane
from pitelegram.store.interfaces import IJournal

PATIENCE = 15.0
"""Seconds before the user is told that a message waits."""

HELD_TEXT = (
    "⏸ The worker of this Thread is not running. Your message is kept and goes to it as soon as it"
    " runs again."
)


@attrs.define(eq=False)
class Absence:
    """Looks after lanes without a live worker.

    @param freed: called with an entry that is pinned to nobody any more.
    @param admitted: called with an entry that the worker's inbox has.
    @param is_guest: whether a row goes to that worker only because the operator has chosen so.
    @param resume: called with a lane whose worker came back while its rows were looked up.
    """

    _journal: IJournal
    _registry: IRegistry
    _expectation: IExpectation
    _probe: IInboxProbe
    _notices: INotices
    _clock: IReactorTime
    _freed: Callable[[Entry], None]
    _admitted: Callable[[Entry], None]
    _resume: Callable[[Lane], None]
    _is_guest: Callable[[int], bool]
    _timers: dict[str, IDelayedCall] = attrs.field(factory=dict, init=False)
    _probing: set[str] = attrs.field(factory=set, init=False)
    _log = Logger()

    def is_probing(self, lane: Lane) -> bool:
        """Whether rows of this lane are being looked up right now; it waits for that."""
        return lane.destination.key in self._probing

    def look_after(self, lane: Lane) -> None:
        """Nobody is there for this lane now."""
        key, now = lane.destination.key, self._clock.seconds()
        for entry in lane.waiting:
            if entry.waiting_since is None:
                entry.waiting_since = now
            if not entry.held:
                entry.held, entry.pinned = True, False
                spawn(self._log, "holding an update", self._journal.hold(entry.seq))
        if lane.waiting and key not in self._timers:
            self._timers[key] = self._clock.callLater(PATIENCE, self._again, lane)
        self._begin_probing(lane)

    def back(self, lane: Lane) -> None:
        """The worker is there: forget how long rows have waited."""
        timer = self._timers.pop(lane.destination.key, None)
        if timer is None:
            # Rows have waited only since a timer runs; most calls end here.
            return
        timer.cancel()
        for entry in lane.waiting:
            entry.waiting_since = None

    def stop(self) -> None:
        """Stop looking."""
        timers, self._timers = self._timers, {}
        for timer in timers.values():
            timer.cancel()

    def _again(self, lane: Lane) -> None:
        del self._timers[lane.destination.key]
        if self._registry.live(lane.destination.key) is None:
            self._tell(lane)
            self.look_after(lane)
        else:
            for entry in lane.waiting:
                entry.waiting_since = None

    def _tell(self, lane: Lane) -> None:
        key, now = lane.destination.key, self._clock.seconds()
        if self._expectation.is_starting(key):
            return
        told_before = any(entry.told for entry in lane.waiting)
        fresh = [
            entry
            for entry in lane.waiting
            if entry.row.kind == "message"
            and not entry.told
            and entry.waiting_since is not None
            and now - entry.waiting_since >= PATIENCE
        ]
        if not fresh:
            return
        if not told_before:
            posting = self._notices.post(key, HELD_TEXT, f"held-{fresh[0].seq}")
            spawn(self._log, "telling that a message waits", posting)
        for entry in fresh:
            entry.told = True
        telling = self._journal.told([entry.seq for entry in fresh])
        spawn(self._log, "remembering what was told", telling)

    # --- proof of non-admission --------------------------------------------------------------

    def _begin_probing(self, lane: Lane) -> None:
        key = lane.destination.key
        if key in self._probing or self._expectation.is_expected(key):
            return
        for entry in [e for e in lane.waiting if e.recipient is None and self._is_guest(e.seq)]:
            # Nobody has it, and nobody is expected: it may be chosen for again.
            lane.waiting.remove(entry)
            entry.held, entry.waiting_since = False, None
            self._freed(entry)
        if any(entry.recipient is not None for entry in lane.waiting):
            self._probing.add(key)
            spawn(self._log, "looking into a worker's inbox", self._probe_all(lane))

    async def _probe_all(self, lane: Lane) -> None:
        key = lane.destination.key
        try:
            for entry in [each for each in lane.waiting if each.recipient is not None]:
                assert entry.delivery_id is not None
                has_it = await self._probe.admitted(key, entry.delivery_id)
                if entry not in lane.waiting:
                    continue
                if has_it:
                    lane.waiting.remove(entry)
                    self._admitted(entry)
                elif has_it is None or self._is_back(key):
                    return
                else:
                    await self._release(lane, entry)
        finally:
            self._probing.discard(key)
            if self._registry.live(key) is not None:
                self._resume(lane)

    def _is_back(self, key: str) -> bool:
        return self._registry.live(key) is not None or self._expectation.is_expected(key)

    async def _release(self, lane: Lane, entry: Entry) -> None:
        lane.waiting.remove(entry)
        try:
            await self._journal.release(entry.seq)
        except StoreError as error:
            self._log.error("a pin could not be released: {reason}", reason=str(error))
            lane.put(entry)
            return
        entry.recipient = entry.delivery_id = None
        entry.held, entry.waiting_since = False, None
        self._freed(entry)
