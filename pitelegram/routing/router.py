"""From journal rows to receipts: in order per destination, window by window, again until settled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, TimeoutError
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

from pitelegram.errors import Fenced, StoreError, StoreFull
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.routing.absence import Absence
from pitelegram.routing.carrier import Carrier, Outcome, retry_delay
from pitelegram.routing.confirming import Confirmations
from pitelegram.routing.desk import DaemonTargets, Desk
from pitelegram.routing.interfaces import (
    IDaemonTarget,
    IExpectation,
    IFollower,
    IInboxProbe,
    INotices,
    IRegistry,
    IRegistryObserver,
    IRouter,
)
from pitelegram.routing.lanes import CHOOSER, DAEMON, WORKER, Destination, Entry, Lane
from pitelegram.routing.nobody import Nobody
from pitelegram.routing.owners import MessageOwners
from pitelegram.routing.places import Places
from pitelegram.routing.resolving import Resolver
from pitelegram.store.interfaces import IJournal
from pitelegram.store.rows import Incoming, JournalRow
from pitelegram.targets import TelegramTarget

_PATIENCE_WITH_DAEMON = 120.0
_MOST_ATTEMPTS = 4
FAILED_TEXT = "⚠️ The worker did not take a message of this Thread: {reason}"


@implementer(IRouter, IRegistryObserver)
@attrs.define(eq=False, slots=False)
class Router(Service):
    """See L{IRouter}.  What it does is driven by the rows of the journal alone.

    @param places: shared with whoever else asks for targets; L{target_changed} keeps it fresh.
    @param owners: shared likewise.
    @param reply: sends a short best-effort text to a target that belongs to nobody.
    @param now_ms: wall clock, as the store's.
    @param desk: asks the operator about rows that belong to nobody.
    """

    journal: IJournal
    places: Places
    owners: MessageOwners
    registry: IRegistry
    daemon: IDaemonTarget
    expectation: IExpectation
    probe: IInboxProbe
    notices: INotices
    reply: Callable[[TelegramTarget, str], Deferred[Any]]
    clock: IReactorTime
    now_ms: Callable[[], int]
    desk: Desk
    _lanes: dict[Destination, Lane] = attrs.field(factory=dict, init=False)
    _known: set[int] = attrs.field(factory=set, init=False)
    _pumping: set[Destination] = attrs.field(factory=set, init=False)
    _timers: dict[Destination, IDelayedCall] = attrs.field(factory=dict, init=False)
    _log = Logger()

    def __attrs_post_init__(self) -> None:
        """Make the parts."""
        self._choosing = self.desk.choosing
        self._choosing.place, self._choosing.forget = self._place_again, self._forget
        self.daemon = DaemonTargets(self.daemon, self.desk)
        self._resolver = Resolver(self.places, self.owners, self.daemon, self._choosing)
        self._nobody = Nobody(self.reply, self.clock)
        self._carrier = Carrier(
            self.journal, self.owners, self.clock, self.now_ms, self._failed, self._settled
        )
        self._confirmations = Confirmations(
            self.journal, self.registry, self.clock, self._carrier.is_unanswered
        )
        self._absence = Absence(
            self.journal,
            self.registry,
            self.expectation,
            self.probe,
            self.notices,
            self.clock,
            self._freed,
            self._finish,
            self._pump,
            self._choosing.is_guest,
        )

    # --- service -----------------------------------------------------------------------------

    def startService(self) -> None:
        """Take up every unsettled row and watch the registrations."""
        super().startService()
        self.registry.subscribe(self)
        self._choosing.load()
        self.take(self.journal.unsettled())
        self.desk.start()
        for follower in self.registry.followers():
            if follower.ready:
                self.registered(follower)

    @deferred
    async def stopService(self) -> None:
        """Start nothing more; fires when no settlement is being written."""
        Service.stopService(self)
        self.desk.stop()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._absence.stop()
        self._confirmations.stop()
        await self._carrier.stop()
        await self.owners.stop()

    def plan(self, row: Incoming, update: dict[str, Any]) -> str | None:
        """See L{IRouter.plan}."""
        if not self.running:
            return None
        destination = self._resolver.resolve_row(row, update)
        if destination.kind != WORKER:
            return None
        self._expect(row, destination)
        follower = self.registry.live(destination.key)
        return destination.key if follower is not None and follower.ready else None

    def take(self, rows: list[JournalRow]) -> None:
        """See L{IRouter.take}."""
        if not self.running:
            return
        now, now_ms = self.clock.seconds(), self.now_ms()
        touched: dict[Destination, Lane] = {}
        for row in rows:
            if row.seq not in self._known:
                self._known.add(row.seq)
                entry = Entry.of(row, now, now_ms)
                lane = self._place(entry)
                self._own(entry, lane.destination)
                touched[lane.destination] = lane
        for lane in touched.values():
            self._pump(lane)

    def kick(self, binding_key: str | None = None) -> None:
        """See L{IRouter.kick}."""
        self.places.forget()
        if not self.running:
            return
        free: list[Entry] = []
        for lane in self._lanes.values():
            free += lane.take_unpinned()
        for entry in sorted(free, key=lambda each: each.seq):
            self._own(entry, self._place(entry).destination)
        for lane in list(self._lanes.values()):
            self._pump(lane)

    def target_changed(
        self,
        binding_key: str,
        target: TelegramTarget | None,
        old: TelegramTarget | None,
        reason: str,
    ) -> None:
        """An observer for L{pitelegram.threads.interfaces.IThreads.subscribe}."""
        self.kick(binding_key)

    # --- registrations -----------------------------------------------------------------------

    def registered(self, follower: IFollower) -> None:
        """Confirm what has settled, then send what waits."""
        if self.running:
            self._confirmations.start(follower.binding_key)
            self._pump_worker(follower.binding_key)

    def state_changed(self, follower: IFollower) -> None:
        """Nothing: a worker's state does not decide about its rows."""

    def lost(self, follower: IFollower) -> None:
        """Nothing on its connection can be answered any more."""
        if not follower.link.connected:
            self._carrier.forget_link(follower.link)
        if self.running:
            self._pump_worker(follower.binding_key)

    def _pump_worker(self, binding_key: str) -> None:
        lane = self._lanes.get(Destination(WORKER, binding_key))
        if lane is not None:
            self._pump(lane)

    # --- lanes -------------------------------------------------------------------------------

    def _place(self, entry: Entry) -> Lane:
        destination = self._resolver.resolve(entry)
        lane = self._lanes.get(destination)
        if lane is None:
            lane = self._lanes[destination] = Lane(destination)
        lane.put(entry)
        if destination.kind == WORKER:
            self._expect(entry.row, destination)
        elif destination.kind == CHOOSER:
            self._choosing.placed(lane)
        return lane

    def _own(self, entry: Entry, destination: Destination) -> None:
        """The message of a press that nobody claims is the worker's, which may change it then."""
        row = entry.row
        if (
            destination.kind == WORKER
            and row.kind == "callback_query"
            and row.message_id is not None
        ):
            message = entry.update()["callback_query"].get("message") or {}
            sender = message.get("from")
            if isinstance(sender, dict) and sender.get("is_bot") is True:
                self.owners.shown(row.chat_id, row.message_id, destination.key)

    def _expect(self, row: Incoming | JournalRow, destination: Destination) -> None:
        if row.kind == "message" and row.message_id is not None:
            self.owners.expected(row.chat_id, row.message_id, destination.key)

    def _pump(self, lane: Lane) -> None:
        if not self.running or lane.destination in self._pumping:
            return
        self._pumping.add(lane.destination)
        try:
            if lane.destination.kind == WORKER:
                self._pump_to_worker(lane)
            elif lane.destination.kind == CHOOSER:
                self._choosing.look_after(lane)
            else:
                self._pump_here(lane)
        finally:
            self._pumping.discard(lane.destination)
        if lane.idle and self._lanes.get(lane.destination) is lane:
            del self._lanes[lane.destination]
            self._absence.back(lane)
            self._choosing.emptied(lane)

    def _pump_to_worker(self, lane: Lane) -> None:
        follower = self.registry.live(lane.destination.key)
        if follower is None:
            self._absence.look_after(lane)
            return
        if not follower.ready or self._absence.is_probing(lane):
            return
        self._absence.back(lane)
        while lane.waiting and self._is_due(lane) and self._carrier.room(follower.link):
            entry = lane.start()
            spawn(self._log, "carrying an update", self._carry(lane, entry, follower))

    def _pump_here(self, lane: Lane) -> None:
        while lane.waiting and not lane.flying and self._is_due(lane):
            entry = lane.start()
            spawn(self._log, "serving an update", self._serve(lane, entry))

    def _is_due(self, lane: Lane) -> bool:
        wait = lane.waiting[0].not_before - self.clock.seconds()
        if wait <= 0:
            return True
        timer = self._timers.pop(lane.destination, None)
        if timer is not None and timer.active():
            timer.cancel()
        self._timers[lane.destination] = self.clock.callLater(wait, self._timer_fired, lane)
        return False

    def _timer_fired(self, lane: Lane) -> None:
        self._timers.pop(lane.destination, None)
        self._pump(lane)

    # --- one row -----------------------------------------------------------------------------

    async def _carry(self, lane: Lane, entry: Entry, follower: IFollower) -> None:
        outcome = Outcome.AGAIN
        try:
            outcome = await self._carrier.carry(lane, entry, follower)
        finally:
            lane.end(entry)
            if outcome is Outcome.AGAIN:
                self._come_back(entry)
            else:
                self._known.discard(entry.seq)
            self._pump(lane)

    async def _serve(self, lane: Lane, entry: Entry) -> None:
        outcome = Outcome.OVER
        try:
            if lane.destination.kind == DAEMON:
                await self._serve_daemon(entry)
            else:
                self._nobody.answer(entry.row)
        except CancelledError:
            raise
        except (StoreError, TimeoutError) as error:
            outcome = self._not_served(entry, error)
        except Exception:
            self._log.failure("the daemon failed at an update of kind {kind}", kind=entry.row.kind)
        lane.end(entry)
        if outcome is Outcome.OVER:
            self._finish(entry)
        elif outcome is Outcome.AGAIN:
            self._come_back(entry)
        else:
            self._known.discard(entry.seq)
        self._pump(lane)

    def _not_served(self, entry: Entry, error: Exception) -> Outcome:
        """The store or Telegram did not let it be done: again, as after a kill of the daemon.

        A press that was claimed is not executed a second time.
        """
        if isinstance(error, Fenced):
            return Outcome.GIVEN_UP
        kind, why = entry.row.kind, type(error).__name__
        self._log.warn("an update of kind {kind} was not served: {why}", kind=kind, why=why)
        if isinstance(error, TimeoutError) and entry.row.callback_id is not None:
            return Outcome.OVER
        entry.not_before = self.clock.seconds() + retry_delay(entry.attempts)
        entry.attempts += 1
        full = isinstance(error, StoreFull)
        return Outcome.AGAIN if full or entry.attempts < _MOST_ATTEMPTS else Outcome.OVER

    async def _serve_daemon(self, entry: Entry) -> None:
        if self.desk.is_former(entry.row.chat_id):
            self._log.warn("an update of kind {kind} of a former owner", kind=entry.row.kind)
            return
        callback_id = entry.row.callback_id
        if callback_id is not None and not await self.journal.claim_callback(callback_id):
            return
        handling = self.daemon.handle(entry.row.kind, entry.update())
        await handling.addTimeout(_PATIENCE_WITH_DAEMON, self.clock)

    def _come_back(self, entry: Entry) -> None:
        if not self.running:
            # As it is stored, it is the next leader's.
            return
        lane = self._place(entry)
        self._pump(lane)

    def _freed(self, entry: Entry) -> None:
        case = self._choosing.cases.unchoose(entry.seq)
        self._come_back(entry)
        if case is not None:
            spawn(self._log, "taking back a choice", self._choosing.freed(case, entry))

    def _place_again(self, lane: Lane, entries: list[Entry]) -> None:
        """Look again where entries go that were taken out of a lane."""
        touched = {lane.destination: lane}
        for entry in entries:
            placed = self._place(entry)
            touched[placed.destination] = placed
        for each in touched.values():
            self._pump(each)

    def _forget(self, entries: list[Entry]) -> None:
        """These have settled in the store."""
        self._known.difference_update(entry.seq for entry in entries)

    def _finish(self, entry: Entry) -> None:
        self._known.discard(entry.seq)
        self._carrier.settle(entry)

    def _settled(self, binding_keys: set[str]) -> None:
        if self.running:
            self._confirmations.settled(binding_keys)
            self._choosing.progressed(binding_keys)

    def _failed(self, entry: Entry, reason: str) -> None:
        if entry.recipient is not None:
            posting = self.notices.post(
                entry.recipient, FAILED_TEXT.format(reason=reason), f"failed-{entry.seq}"
            )
            spawn(self._log, "telling of a failed update", posting)
            self._choosing.progressed([entry.recipient])
