"""A whole worker in memory: fake Pi, fake leader, a store whose writes are inline."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from zope.interface.verify import verifyObject

from pitelegram.bridge.outgoing import IOutboundHandlers
from pitelegram.bus.interfaces import IBusFollower
from pitelegram.errors import LaunchFailed
from pitelegram.ids import ProcessBirth, delivery_id, managed_binding
from pitelegram.kernel.paths import Paths
from pitelegram.pi.interfaces import IPiHost
from pitelegram.store.inbox import Inbox
from pitelegram.store.outgoing import Outgoing
from pitelegram.testing.leaderlink import FakeLeaderLink
from pitelegram.testing.pihost import FakePiHost
from pitelegram.testing.stores import worker_database
from pitelegram.worker.composing import NoOutboundHandlers
from pitelegram.worker.identity import WorkerIdentity
from pitelegram.worker.parts import WorkerParts
from pitelegram.worker.service import WorkerService
from pitelegram.worker.sessions import SessionChoice, Sessions

SPEC = "0123456789abcdef"
BINDING = managed_binding(SPEC)
CHAT, THREAD = 100, 7
START = 1_000_000.0


class FakeBusClient(Service):
    """Registers its follower when L{connect} is called."""

    def __init__(self, parts: WorkerParts) -> None:
        self.parts = parts
        self.link: FakeLeaderLink | None = None
        self.connections = 0

    def connect(self) -> FakeLeaderLink:
        """Be registered on a fresh link."""
        follower = self.parts.follower
        verifyObject(IBusFollower, follower)
        self.connections += 1
        answer = {
            **follower.register_request(),
            "registrationGeneration": f"g{self.connections}",
            "workerId": "w1",
            "bindingKey": BINDING,
            "epoch": "e1",
            "target": {"chatId": CHAT, "threadId": THREAD},
            "threadName": "Atlas",
        }
        self.link = FakeLeaderLink(answer)
        follower.registered(self.link, answer)
        return self.link

    def lose(self) -> None:
        """The link breaks."""
        if self.link is not None:
            self.link.lost = True
            self.parts.follower.lost()


class WorkerRig:
    """One binding that lives through several worker processes.

    @param clock: the only time there is, which L{run} moves; a reactor lets real time pass.
    @param agent_dir: Pi's, where it is a real one.
    @ivar service: the current process, None before L{start}.
    """

    def __init__(self, base: Path, clock: Any = None, agent_dir: Path | None = None) -> None:
        self.base = base
        self.clock = Clock() if clock is None else clock
        if clock is None:
            self.clock.rightNow = START
        self.paths = Paths(agent_dir or base / "agent")
        self.paths.prepare()
        self.project = base / "project"
        self.project.mkdir(parents=True, exist_ok=True)
        self.database = worker_database(self.clock)
        self.inbox = Inbox(self.database)
        self.outgoing = Outgoing(self.database)
        # Else the first prompt of every hour tells the time.
        self.inbox.set_meta("time-told", f"{self.clock.seconds():.0f}")
        self.outbound: IOutboundHandlers | None = None
        self.service: WorkerService | None = None
        self.updates = count(1)
        self._ids = count(1)

    # --- processes ---------------------------------------------------------------------------

    def start(
        self,
        host: Any = None,
        choice: SessionChoice | LaunchFailed | None = None,
        connect: bool = True,
        session_file: str | None = None,
    ) -> None:
        """Start a worker process; the one before must be gone."""
        file = session_file or str(self.base / "session.jsonl")
        self.host = host or FakePiHost(self.clock, file)
        verifyObject(IPiHost, self.host)
        identity = WorkerIdentity(
            spec_id=SPEC,
            spawn_id="spawn",
            name="atlas",
            directory=self.project,
            birth=ProcessBirth(77, "77:start:1"),
            uploads=self.paths.uploads_of,
            files=self.paths.worker_files(BINDING),
        )
        sessions = Sessions(self.paths, self.inbox, self.project, (), lambda: self.parts.changed())
        self.service = WorkerService(
            self.clock,
            self.inbox,
            lambda ended, stop: WorkerParts(
                self.clock,
                Random(1),
                self.inbox,
                self.outgoing,
                self.host,
                sessions,
                identity,
                ended,
                stop,
                lambda: f"id{next(self._ids)}",
                outbound=lambda _: self.outbound or NoOutboundHandlers(),
            ),
            FakeBusClient,
            choice or SessionChoice(file=None),
        )
        self.exits: list[int] = []
        self.service.finished.when().addCallback(self.exits.append)
        self.started = self.service.startService()
        if connect:
            self.connect()
        self.run()

    @property
    def parts(self) -> WorkerParts:
        """The current process's parts."""
        assert self.service is not None
        return self.service.parts

    @property
    def link(self) -> FakeLeaderLink:
        """The current link."""
        link = self.service._bus.link  # type: ignore[union-attr]
        assert link is not None
        return link

    def connect(self) -> None:
        """Let the worker register."""
        self.service._bus.connect()  # type: ignore[union-attr]

    async def end(self) -> None:
        """End the process in order; for a worker in real time."""
        if self.service is not None and self.service.running:
            await self.service.stopService()
        self.parts.sessions.release()

    def crash(self) -> None:
        """The process is killed: its timers and its Pi go, its store stays."""
        for call in list(self.clock.getDelayedCalls()):
            call.cancel()
        self.parts.sessions.release()
        self.service = None

    def run(self, seconds: float = 0.1) -> None:
        """Let time pass in small steps, where it does not pass by itself."""
        if not isinstance(self.clock, Clock):
            return
        for _ in range(max(1, int(seconds / 0.05))):
            self.clock.advance(0.05)

    # --- messages ----------------------------------------------------------------------------

    def forward(self, kind: str, body: dict[str, Any], update_id: int | None = None) -> str:
        """Forward an update; returns its delivery id."""
        number = next(self.updates) if update_id is None else update_id
        name = delivery_id(kind, BINDING, number)
        update = {"update_id": number, kind: body}
        self.receipt: Deferred[tuple[str, str]] = self.parts.follower.admit(
            name, number, kind, update
        )
        self.run()
        return name

    def message(self, text: str | None, message_id: int = 1, **fields: Any) -> str:
        """Forward a message of the operator."""
        body = {
            "message_id": message_id,
            "chat": {"id": CHAT},
            "message_thread_id": THREAD,
            **({} if text is None else {"text": text}),
            **fields,
        }
        return self.forward("message", body)

    def press(self, data: str, message_id: int = 50) -> str:
        """Forward the press of a button."""
        message = {"message_id": message_id, "chat": {"id": CHAT}, "message_thread_id": THREAD}
        return self.forward("callback_query", {"id": "cb", "data": data, "message": message})

    def edit(self, text: str, message_id: int = 1) -> str:
        """Forward an edit of a message."""
        body = {"message_id": message_id, "chat": {"id": CHAT}, "text": text}
        return self.forward("edited_message", body)

    def prompts(self) -> list[str]:
        """What the current Pi was given, without the tag."""
        return [text.partition("] ")[2] or text for _, text, _ in self.host.prompts]

    def states(self) -> dict[str, int]:
        """How many rows are in each state."""
        names = ("admitted", "held", "handed", "settled", "skipped", "uncertain")
        found = {name: len(self.inbox.rows(name)) for name in names}
        return {name: number for name, number in found.items() if number}
