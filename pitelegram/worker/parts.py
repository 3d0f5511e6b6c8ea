"""One worker, composed: every part, wired to the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from twisted.internet.defer import Deferred, execute
from twisted.internet.interfaces import IReactorTime

from pitelegram.bridge.interfaces import IInboundHandlers
from pitelegram.bridge.outgoing import IOutboundHandlers
from pitelegram.ids import managed_binding
from pitelegram.pi.interfaces import IPiHost
from pitelegram.pi.sessions import mark
from pitelegram.store.outfiles import OutFiles
from pitelegram.store.worker_interfaces import IInbox, IOutgoing
from pitelegram.worker.activity import Activity
from pitelegram.worker.bestcalls import BestEffort
from pitelegram.worker.brake import Brake
from pitelegram.worker.buttons import Buttons
from pitelegram.worker.changes import Changes
from pitelegram.worker.commands import Commands
from pitelegram.worker.control import Control
from pitelegram.worker.dialogs import Dialogs
from pitelegram.worker.editing import Editing
from pitelegram.worker.files import Files
from pitelegram.worker.follower import Follower
from pitelegram.worker.frames import Frames
from pitelegram.worker.gathering import Gatherer
from pitelegram.worker.halting import Halting
from pitelegram.worker.identity import WorkerIdentity, mint_id, no_handlers, no_outbound
from pitelegram.worker.intake import Intake
from pitelegram.worker.listener import Listener
from pitelegram.worker.making import Maker
from pitelegram.worker.menus import Menus
from pitelegram.worker.naming import Naming
from pitelegram.worker.notifying import Notifier
from pitelegram.worker.orders import Orders
from pitelegram.worker.pictures import Pictures
from pitelegram.worker.pifacts import PiFacts
from pitelegram.worker.port import HostPort
from pitelegram.worker.posting import Poster
from pitelegram.worker.preferences import Preferences
from pitelegram.worker.previewing import make_previews
from pitelegram.worker.queue import Queue
from pitelegram.worker.reactions import Reactions
from pitelegram.worker.registration import Registration
from pitelegram.worker.rendering import make_composer, voice_mode
from pitelegram.worker.report import Report
from pitelegram.worker.sessionbook import SessionBook
from pitelegram.worker.sessions import Sessions
from pitelegram.worker.settling import Settler
from pitelegram.worker.showing import Shower
from pitelegram.worker.stopping import Ladder
from pitelegram.worker.submitter import Submitter
from pitelegram.worker.traces import DialogTraces
from pitelegram.worker.watch import Watch


class WorkerParts:
    """Makes and wires the parts; starts nothing.

    @param host: a Pi that was not started.
    @param sessions: has chosen the session already.
    @param ended: called with the reason when Pi is gone.
    @param stop: begins the end C{(drain, seconds)}.
    @param in_thread: C{(function, *arguments) -> Deferred}, for reading large files.
    @param handlers: makes what runs the operator's programs, given what returns the setting.
    """

    def __init__(
        self,
        clock: IReactorTime,
        random: Random,
        inbox: IInbox,
        outgoing: IOutgoing,
        host: IPiHost,
        sessions: Sessions,
        identity: WorkerIdentity,
        ended: Callable[[str], None],
        stop: Callable[[bool, float], None],
        mint: Callable[[], str] = mint_id,
        in_thread: Callable[..., Deferred[Any]] = execute,
        handlers: Callable[[Callable[[], object]], IInboundHandlers] = no_handlers,
        outbound: Callable[[Callable[[], object]], IOutboundHandlers] = no_outbound,
    ) -> None:
        self._clock = clock
        self.outgoing = outgoing
        self.host = host
        self.sessions = sessions
        self._told: object = None
        self._after_run: Callable[[], None] = lambda: None
        self._wire_outward(clock, random, inbox, identity, in_thread, outbound)
        self.queue = Queue(
            clock,
            random,
            inbox,
            host,
            self.settler,
            self._mark,
            mint,
            self.changed,
            gathering=self._first_unfinished,
            pictures=Pictures(in_thread),
            ready=lambda row: self.gatherer.ready(row),
            unfinished=lambda: self.gatherer.unfinished(),
            unfinished_view=lambda: self.gatherer.view(),
            pushes=lambda: bool(self.preferences.get("proactivePush")),
            footers=lambda: bool(self.preferences.get("footer")),
        )
        self._wire_activity(clock, inbox)
        self.handlers = handlers(lambda: self.preferences.get("inboundHandlers"))
        self._wire_inward(clock, random, inbox)
        self._wire_previews(clock, random, inbox)
        self._wire_pi(clock, inbox, identity, ended)
        self._wire_requests(inbox, stop)
        host.subscribe(self.listener)
        host.subscribe(self.previews)

    def _wire_outward(
        self,
        clock: IReactorTime,
        random: Random,
        inbox: IInbox,
        identity: WorkerIdentity,
        in_thread: Callable[..., Deferred[Any]],
        outbound: Callable[[Callable[[], object]], IOutboundHandlers],
    ) -> None:
        """What goes to the leader."""
        self.registration = Registration(
            clock,
            inbox,
            identity.birth,
            managed_binding(identity.spec_id),
            identity.name,
            str(identity.directory),
            self.sessions.current,
        )
        link = self.registration.current_link
        self.calls = BestEffort(link)
        self.preferences = Preferences(inbox, link)
        self.files = OutFiles(identity.files)
        self.submitter = Submitter(
            clock,
            random,
            inbox,
            link,
            self.files,
            identity.uploads,
            in_thread,
            lambda: self.activity.before_final(),
        )
        self.outbound = outbound(lambda: self.preferences.get("outboundHandlers"))
        self.composer = make_composer(
            clock,
            random,
            self.outgoing,
            self.preferences,
            self.outbound,
            self.files,
            in_thread,
            self.calls,
            lambda: self.registration.target,
            self.submitter.kick,
        )
        self.settler = Settler(clock, random, inbox, self._answer_stored)

    def _wire_activity(self, clock: IReactorTime, inbox: IInbox) -> None:
        """What is shown beside answers; it hears of Pi's events before those who settle runs."""
        registration = self.registration
        self.frames = Frames(clock, inbox, registration.current_link, lambda: registration.target)
        self.activity = Activity(
            self.host,
            self.frames,
            lambda: str(self.preferences.get("activity")),
            self.queue.hands.shown,
        )
        self.host.subscribe(self.activity)

    def _wire_inward(self, clock: IReactorTime, random: Random, inbox: IInbox) -> None:
        """What makes prompts of messages."""
        files = Files(clock, random, self.registration.current_link)
        maker = Maker(
            clock,
            inbox,
            files,
            self.handlers,
            self._thread_name,
            lambda: str(self.preferences.get("timeInjection")),
            lambda: voice_mode(self.preferences, self.outbound),
        )
        self.gatherer = Gatherer(
            clock,
            inbox,
            maker,
            files,
            self.settler,
            self.queue.in_hand,
            lambda new: self.queue.kick(new=new),
        )
        self.editing = Editing(inbox, self.gatherer, maker, self.settler)

    def _wire_pi(
        self,
        clock: IReactorTime,
        inbox: IInbox,
        identity: WorkerIdentity,
        ended: Callable[[str], None],
    ) -> None:
        """What surrounds Pi."""
        host, queue = self.host, self.queue
        link = self.registration.current_link
        notifier = Notifier(clock, self.settler.say)
        poster = Poster(link, identity.uploads)
        traces = DialogTraces(clock, inbox, link, lambda: notifier.cancelled("gone"))
        self.naming = Naming(self.registration, poster, traces, self.calls)
        self.dialogs = Dialogs(
            clock,
            host,
            identity.birth.birth,
            poster,
            traces,
            notifier,
            self.calls,
            lambda: self.registration.target,
            self.changed,
        )
        self.brake = Brake(
            clock, inbox, queue, host, self.up, self.dialogs.cancel, self.gatherer.drop
        )
        self.halting = Halting(clock, self.brake, queue, self.settler)
        self.ladder = Ladder(clock, queue, self.brake, host, self.up, self.idle, self.changed)
        self.report = Report(
            host, queue, self.dialogs, self.sessions, identity.spawn_id, lambda: self.ladder.phase
        )
        self.listener = Listener(
            queue, self.dialogs, self.typing, self.changed, lambda: self._after_run(), ended
        )
        self.watch = Watch(
            clock, queue, host, lambda: self.listener.events, lambda: self.orders.kick()
        )

    def _wire_previews(self, clock: IReactorTime, random: Random, inbox: IInbox) -> None:
        """What is shown while Pi works."""
        self.typing, self.previews = make_previews(
            clock,
            random,
            inbox,
            self.registration,
            self.preferences.get,
            lambda: bool(self.queue.hands.book.open),
        )

    def _wire_requests(self, inbox: IInbox, stop: Callable[[bool, float], None]) -> None:
        """What comes from the leader."""
        queue, brake, settler = self.queue, self.brake, self.settler
        self.reactions = Reactions(inbox, queue, self.gatherer.flush)
        self.port = HostPort(
            inbox,
            queue,
            brake,
            self.host,
            self.sessions,
            self.dialogs,
            self.up,
            self.report.at_work,
            self.report.full,
        )
        self._wire_menus(inbox)
        self.orders = Orders(
            inbox,
            queue,
            self.halting,
            self.calls,
            settler,
            self._thread_name,
            self.dialogs,
            self.naming,
            self.reactions,
            self.editing,
            self.commands,
            self.menus,
            Buttons(self.outgoing, queue, self.calls, self._thread_name),
        )
        self.intake = Intake(
            inbox,
            queue,
            self.orders,
            self.dialogs,
            self.gatherer,
            self.editing,
            self.calls,
        )
        self.follower = Follower(
            inbox,
            self.registration,
            self.report,
            self.intake,
            Control(self.port),
            self.submitter,
            self.dialogs,
            self.orders,
            self.preferences,
            self.previews,
            stop,
        )

    def _wire_menus(self, inbox: IInbox) -> None:
        """What the operator sees and changes by menus and commands."""
        clock, queue = self._clock, self.queue
        facts = PiFacts(clock, self.host, self.up)
        book = SessionBook(
            self.sessions.home,
            self.sessions.directory,
            lambda: self.sessions.current().get("sessionFile"),
            clock.seconds,
        )
        self.changes = Changes(
            clock,
            self.host,
            self.port,
            queue,
            self.brake,
            self.report.at_work,
            self.typing.show,
            self._reopen,
        )
        shower = Shower(clock, self.registration.current_link, lambda: self.registration.target)
        self.menus = Menus(
            inbox,
            facts,
            queue,
            self.preferences,
            book,
            self.changes,
            shower,
            self.calls,
            self.report.view,
            self.naming.offered,
        )
        self.commands = Commands(
            inbox, facts, queue, self.changes, self.menus, shower, self.naming.offered
        )

    def _first_unfinished(self) -> int | None:
        """Return the first row that normal prompts behind it have to wait for."""
        found = (self.gatherer.earliest(), self.orders.earliest())
        return min((seq for seq in found if seq is not None), default=None)

    def _reopen(self) -> None:
        """Let the queue hand prompts, unless this worker is ending."""
        if self.up() and self.ladder.phase is None:
            self.queue.open()

    def _answer_stored(self) -> None:
        self.composer.kick()
        self.submitter.kick()

    def up(self) -> bool:
        """Whether Pi can be talked to."""
        return self.report.ready

    def idle(self) -> bool:
        """Whether nothing is being handed, run, compacted, queued in Pi or stored."""
        pi = self.host.state or {}
        busy = pi.get("isStreaming") or pi.get("isCompacting") or pi.get("pendingMessageCount")
        return (
            self.queue.quiet()
            and not self.settler.busy
            and not self.composer.busy
            and (not busy or not self.up())
        )

    def after_run(self, work: Callable[[], None]) -> None:
        """Call C{work} after each settled run."""
        self._after_run = work

    def changed(self) -> None:
        """Send a heartbeat now if it would tell something new."""
        link = self.registration.link
        if link is None:
            return
        state = self.report.state()
        if state != self._told:
            self._told = state
            link.heartbeat_now()

    def _thread_name(self) -> str | None:
        return self.registration.shown_name()

    def _mark(self) -> tuple[str | None, int, str | None]:
        file = (self.host.state or {}).get("sessionFile")
        if not isinstance(file, str):
            return None, 0, None
        place = mark(Path(file))
        return file, place.size, place.entry
