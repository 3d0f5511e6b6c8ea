"""Messages that nobody was meant to get: they wait until the operator has chosen.

Never is one routed by guess, not even to the only worker there is.  What is asked, answered and
tidied up is in L{pitelegram.routing.asking}, C{presses} and C{clearing}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.routing import cases
from pitelegram.routing.candidates import START, Candidates, command_in, word_of
from pitelegram.routing.cases import Case, Cases, case_of
from pitelegram.routing.deadlines import Deadlines
from pitelegram.routing.interfaces import IFollower, IRegistry, IRegistryObserver
from pitelegram.routing.lanes import CHOOSER, WORKER, Destination, Entry, Lane
from pitelegram.store.choosers import RESTORE, Choosers
from pitelegram.store.interfaces import IBindings, IJournal
from pitelegram.store.rows import JournalRow
from pitelegram.threads.interfaces import IThreads

LIFE = 3600
"""Seconds after its own date in which a target may be chosen for a command in All."""

_NO_DATE = 2**40
"""No second of any calendar that we will see."""

CHECK_AGAIN = 60.0
"""Seconds after which a new message lets look whether the chooser's message is still there."""

_KINDS = ("message", "edited_message", "message_reaction")


@implementer(IRegistryObserver)
@attrs.define(eq=False, kw_only=True)
class Choosing:
    """Keeps the cases; the router asks it where unowned rows wait.

    @ivar changed: called when a chooser may have to be shown, or shown differently.
    @ivar clear: called with a case whose updates are over, and whether one of them has failed.
    @ivar farewell: called with a case that ended and the reason.
    @ivar place: has the router look again where entries go that were taken from a lane.
    @ivar forget: tells the router that entries are over.
    """

    store: Choosers
    journal: IJournal
    bindings: IBindings
    registry: IRegistry
    threads: IThreads
    candidates: Candidates
    clock: IReactorTime
    now_ms: Callable[[], int]
    cases: Cases = attrs.field(factory=Cases, init=False)
    changed: Callable[[], None] = attrs.field(default=lambda: None, init=False)
    clear: Callable[[Case, bool], None] = attrs.field(default=lambda case, failed: None, init=False)
    farewell: Callable[[Case, str], None] = attrs.field(default=lambda case, why: None, init=False)
    place: Callable[[Lane, list[Entry]], None] = attrs.field(
        default=lambda lane, entries: None, init=False
    )
    forget: Callable[[list[Entry]], None] = attrs.field(default=lambda entries: None, init=False)
    deadlines: Deadlines = attrs.field(init=False)
    _running: bool = attrs.field(default=False, init=False)
    _log = Logger()

    @deadlines.default
    def _make_deadlines(self) -> Deadlines:
        return Deadlines(self.cases, self.clock, self.now_ms, self._look_at)

    # --- life ---------------------------------------------------------------------------------

    def load(self) -> None:
        """Take up the stored cases; the router's rows come afterwards, and nothing ends before."""
        for chooser in self.store.all():
            case = self.cases.add(case_of(chooser, self.clock.seconds()))
            self.cases.asked(case, chooser)
            self.cases.choose(case, self.store.rows(chooser.chooser_id))

    def resume(self) -> None:
        """All unsettled rows are placed: go on with what was interrupted."""
        self._running = True
        for case in self.cases:
            if case.asking and not case.waiting():
                self._emptied(case)
            elif case.step.now == cases.DISPATCHING:
                spawn(self._log, "going on with a choice", self._resume(case))
            elif case.step.now == cases.CLEANING:
                self.clear(case, self._has_failed(case))
        self.changed()
        self.deadlines.arm()

    def stop(self) -> None:
        """Change nothing more."""
        self._running = False
        self.deadlines.stop()

    async def _resume(self, case: Case) -> None:
        chooser = case.chooser
        assert chooser is not None and chooser.recipient is not None
        binding = self.bindings.get(chooser.recipient)
        free = self.bindings.by_target(chooser.chat_id, chooser.thread_id) is None
        unmoved = binding is not None and binding.thread_id == chooser.old_thread_id
        if chooser.choice == RESTORE and free and unmoved:
            await self.threads.reassign(chooser.recipient, chooser.chat_id, chooser.thread_id)
        self.check(case)

    # --- where rows wait ----------------------------------------------------------------------

    def kept(self, entry: Entry) -> Destination | None:
        """Return where an unpinned row stays, or goes, whatever is found out about its place."""
        case = self.cases.chosen(entry.seq)
        if case is not None and case.chooser is not None and case.chooser.recipient is not None:
            return Destination(WORKER, case.chooser.recipient)
        if self.candidates.excluded() or entry.row.kind not in _KINDS:
            return None
        target = entry.row.target
        case = self.cases.get(target.key) or self.cases.get(f"{target.key}#{entry.seq}")
        if case is not None and (case.held or case.seq == entry.seq and case.is_command):
            return case.destination
        return None

    def destination(self, row: JournalRow, update: dict[str, Any]) -> Destination | None:
        """Return where a row waits that belongs to nobody; None when nothing is asked about it."""
        if self.candidates.excluded():
            return None
        target = row.target
        if row.kind == "message":
            if target.thread_id is not None:
                case = self._case(target.key, row, "")
            else:
                command = command_in(update["message"])
                if command is None:
                    return None
                case = self._case(f"{target.key}#{row.seq}", row, command)
            if row.message_id is not None:
                self.cases.source(case, row.chat_id, row.message_id)
            return case.destination
        found = None
        if row.kind in ("edited_message", "message_reaction") and row.message_id is not None:
            found = self.cases.by_source(row.chat_id, row.message_id)
        if found is None and row.kind == "edited_message" and target.thread_id is not None:
            found = self.cases.get(target.key)
        return None if found is None else found.destination

    def _case(self, key: str, row: JournalRow, command: str) -> Case:
        found = self.cases.get(key)
        if found is not None:
            return found
        destination = Destination(CHOOSER, key, row.target)
        return self.cases.add(
            Case(
                destination=destination,
                target=row.target,
                seq=row.seq,
                command=command,
                since=self.clock.seconds(),
            )
        )

    def placed(self, lane: Lane) -> None:
        """A row was put into this lane; it is looked after soon."""
        case = self.cases.get(lane.destination.key)
        if case is not None:
            case.lane = lane

    def look_after(self, lane: Lane) -> None:
        """Rows wait in this lane now."""
        case = self.cases.get(lane.destination.key)
        if case is None:
            # It ended while they were on their way here.
            self.place(lane, lane.take_unpinned())
            case = self.cases.get(lane.destination.key)
        if case is None:
            return
        case.lane = lane
        fresh = [entry for entry in lane.waiting if not entry.held]
        for entry in fresh:
            entry.held, entry.pinned = True, False
            spawn(self._log, "holding an update", self.journal.hold(entry.seq))
        if case.step.now == cases.UNASKED and case.is_command and case.expires_ms is None:
            case.expires_ms = _deadline(lane)
        if not case.held and (fresh or not case.broken):
            if case.is_over(self.now_ms()):
                spawn(self._log, "ending an old command", self.end(case, "expired"))
            elif case.step.now == cases.CLEANING and case.waiting():
                spawn(self._log, "asking again", self.reopen(case))
        now = self.clock.seconds()
        if fresh and case.step.now == cases.SENT and now - case.checked > CHECK_AGAIN:
            case.shown, case.checked = None, now
        if fresh:
            self.deadlines.arm()
            self.changed()

    def emptied(self, lane: Lane) -> None:
        """No row waits in this lane any more; the router has dropped it."""
        case = self.cases.get(lane.destination.key)
        if case is not None and case.lane is lane and case.asking and not case.held:
            self._emptied(case)

    def dissolve(self) -> None:
        """There are no Threads any more: nobody is asked, and every row goes where it goes then."""
        for case in self.cases:
            if case.asking and not case.held:
                self._let_go(case)

    def _emptied(self, case: Case) -> None:
        if self._running:
            spawn(self._log, "ending a chooser", self.end(case, "moved"))

    # --- what becomes of a choice -------------------------------------------------------------

    def is_guest(self, seq: int) -> bool:
        """Whether a row goes to a worker only because that was chosen."""
        return self.cases.chosen(seq) is not None

    @deferred
    async def freed(self, case: Case, entry: Entry) -> None:
        """A row is proven not to be with the chosen worker; it was placed anew: ask again."""
        assert case.chooser is not None
        await self.store.returned(case.chooser.chooser_id, entry.seq)
        self.check(case)

    def progressed(self, binding_keys: Iterable[str]) -> None:
        """Rows of these bindings have settled, or failed."""
        keys = set(binding_keys)
        for case in self.cases:
            if case.step.now == cases.DISPATCHING and case.chooser is not None:
                if case.chooser.recipient in keys:
                    self.check(case)

    def check(self, case: Case) -> None:
        """Look whether the chosen rows of a case are over."""
        if case.step.now != cases.DISPATCHING or case.held or not self._running:
            return
        assert case.chooser is not None
        waiting, failed = self.store.remaining(case.chooser.chooser_id)
        if waiting == 0:
            ending = self.reopen(case) if case.waiting() else self._handed(case, failed > 0)
            spawn(self._log, "ending a choice", ending)

    @deferred
    async def _handed(self, case: Case, failed: bool) -> None:
        assert case.chooser is not None
        async with self.holding(case):
            await self.store.handed(case.chooser.chooser_id)
            case.step.feed(cases.HANDED)
            self.cases.clear_choice(case)
        if case.waiting():
            await self.reopen(case)
        else:
            self.clear(case, failed)

    def _has_failed(self, case: Case) -> bool:
        assert case.chooser is not None
        return self.store.remaining(case.chooser.chooser_id)[1] > 0

    @deferred
    async def reopen(self, case: Case) -> None:
        """Ask again, with the same message and the same deadline."""
        chooser = case.chooser
        if case.held or chooser is None or case.step.now not in (cases.DISPATCHING, cases.CLEANING):
            return
        async with self.holding(case):
            await self.store.reopen(chooser.chooser_id, case.step.now)
            self.reopened(case)

    def reopened(self, case: Case) -> None:
        """It has been committed that a case is asked again."""
        assert case.chooser is not None
        case.step.feed(cases.RETURNED)
        self.cases.clear_choice(case)
        chooser = attrs.evolve(case.chooser, choice=None, recipient=None, old_thread_id=None)
        self.cases.asked(case, chooser)
        case.restoring = case.stuck = False
        case.shown, case.urgent = None, True
        self.deadlines.arm()
        self.changed()

    # --- ends ---------------------------------------------------------------------------------

    @deferred
    async def end(self, case: Case, why: str) -> None:
        """Ask no more; what still waits settles, and nothing is sent to anybody."""
        if case.held:
            return
        entries = case.waiting() if case.asking else []
        chooser_id = None if case.chooser is None else case.chooser.chooser_id
        async with self.holding(case):
            await self.store.end(chooser_id, [entry.seq for entry in entries])
            case.step.feed(cases.ENDED)
            self.cases.drop(case)
            self._take_out(case, entries)
        self.forget(entries)
        self.farewell(case, why)
        self.changed()

    @deferred
    async def supersede(self, case: Case) -> None:
        """The chooser of a C{/start} is in the chat: older ones of the very same text end."""
        if word_of(case.command) != START:
            return
        for other in self.cases:
            same = other.target == case.target and other.command == case.command
            if same and other.asking and other.seq < case.seq:
                await self.end(other, "superseded")

    def holding(self, case: Case) -> _Holding:
        """Keep the case's rows where they are while a step of it is committed."""
        return _Holding(case, self._let_go)

    def _let_go(self, case: Case) -> None:
        if case.broken:
            self.deadlines.arm()
        if self._running and case.lane is not None:
            entries = list(case.lane.waiting)
            case.lane.waiting.clear()
            self.place(case.lane, entries)

    def _take_out(self, case: Case, entries: list[Entry]) -> None:
        if case.lane is not None:
            for entry in entries:
                case.lane.waiting.remove(entry)

    def _look_at(self, case: Case) -> None:
        """Its time is up, or its last step could not be committed."""
        if case.is_over(self.now_ms()):
            spawn(self._log, "ending an old command", self.end(case, "expired"))
        elif case.step.now == cases.DISPATCHING:
            self.check(case)
        elif case.step.now == cases.CLEANING and case.waiting():
            spawn(self._log, "asking again", self.reopen(case))

    # --- registrations ------------------------------------------------------------------------

    def registered(self, follower: IFollower) -> None:
        """One worker more to choose."""
        self.changed()

    def state_changed(self, follower: IFollower) -> None:
        """Nothing: what a worker does makes no difference."""

    def lost(self, follower: IFollower) -> None:
        """One worker less to choose."""
        self.changed()


class _Holding:
    """Holds a case for a C{with} block."""

    def __init__(self, case: Case, let_go: Callable[[Case], None]) -> None:
        self._case = case
        self._let_go = let_go

    async def __aenter__(self) -> None:
        self._case.held = True

    async def __aexit__(self, kind: object, *_: object) -> None:
        self._case.held, self._case.broken = False, kind is not None
        self._let_go(self._case)


def _deadline(lane: Lane) -> int | None:
    """Return when a command may no longer be chosen for; None where its date is of no use."""
    for entry in lane.waiting:
        if entry.row.kind == "message":
            date = entry.update()["message"].get("date")
            usable = type(date) is int and 0 < date < _NO_DATE
            return (date + LIFE) * 1000 if usable else None
    return None
