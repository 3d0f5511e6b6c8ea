"""Takes the transport, leads, supervises, listens on the control socket, and says why it ends."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from random import SystemRandom
from typing import Any

import attrs
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, TimeoutError
from twisted.logger import Logger, globalLogPublisher
from twisted.python.failure import Failure

from pitelegram import __version__
from pitelegram.botapi.client import BotApi
from pitelegram.botapi.network import Network
from pitelegram.control.http import ControlServer
from pitelegram.daemon.face import Face
from pitelegram.daemon.snapshots import Snapshots
from pitelegram.errors import (
    NotConfigured,
    PiTelegramError,
    TelegramError,
    Unauthorized,
)
from pitelegram.ground import Ground
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.kernel.exits import EXIT_LOST, exit_code
from pitelegram.kernel.files import set_umask
from pitelegram.kernel.logs import JsonLinesObserver, RecentEvents, at_level, forward_stdlib
from pitelegram.kernel.notify import notify
from pitelegram.kernel.paths import Paths
from pitelegram.kernel.redact import SECRETS
from pitelegram.leader import LeaderService
from pitelegram.ownership.continuity import host_id
from pitelegram.ownership.ownership import Ownership, check
from pitelegram.routing.paired import Owner
from pitelegram.settings.file import SettingsFile
from pitelegram.settings.options import RunOptions
from pitelegram.settings.watching import Watcher
from pitelegram.store.commands import Commands
from pitelegram.store.database import Database

FIRST_WORD = 1.0
"""Seconds that a start with a known bot gives Telegram to refuse the token."""

ASK_AGAIN = 2.0
"""Seconds between two questions who the bot is, while Telegram does not answer."""

LOOK_AGAIN = 60.0
"""Seconds between two looks at the bot's switches."""

MakeSupervisor = Callable[[LeaderService, "Daemon"], Any]


@attrs.define(eq=False, slots=False)
class Daemon(Service):
    """The daemon of one profile as a service.  Building it opens nothing.

    @ivar exit_code: what the process ends with.
    @ivar make_supervisor: see L{pitelegram.assembly}.
    """

    paths: Paths
    options: RunOptions
    environ: Mapping[str, str]
    make_supervisor: MakeSupervisor
    reactor: Any
    exit_code: int = attrs.field(default=0, init=False)
    leader: LeaderService | None = attrs.field(default=None, init=False)
    ownership: Ownership | None = attrs.field(default=None, init=False)
    _log = Logger()

    def __attrs_post_init__(self) -> None:
        self.name = "pi-telegram"
        self.file = SettingsFile(self.paths, self.environ)
        self.started_at = 0.0
        self.commands: Commands | None = None
        self.control: ControlServer | None = None
        self.snapshots: Snapshots | None = None
        self.lines: JsonLinesObserver | None = None
        self.events = RecentEvents()
        self._parts: list[Service] = []
        self._stopping = False
        self._starting: Deferred[None] | None = None
        self._observers: list[Any] = []
        self._forwarder: logging.Handler | None = None
        self._meeting: Deferred[Any] | None = None

    # --- life ---------------------------------------------------------------------------------

    def startService(self) -> None:
        """Begin to start; what goes wrong later ends the process with its exit code."""
        super().startService()
        self.reactor.callWhenRunning(self._mind_signals)
        self.operator_umask = set_umask()
        self.reactor.addSystemEventTrigger("after", "shutdown", self._leave_with_code)
        self._starting = self._start()
        self._starting.addErrback(self._failed)

    @deferred
    async def stopService(self) -> None:
        """Stop everything in reverse; workers go on."""
        super().stopService()
        self._stopping = True
        notify("STOPPING=1", self.environ)
        starting = self._starting
        if starting is not None:
            starting.cancel()
            await starting
        if self._meeting is not None:
            self._meeting.cancel()
        for part in reversed(self._parts):
            try:
                await _stopped(part)
            except Exception:
                self._log.failure("stopping {part} failed", part=type(part).__name__)
        for observer in self._observers:
            globalLogPublisher.removeObserver(observer)
        if self._forwarder is not None:
            logging.getLogger().removeHandler(self._forwarder)
        if self.lines is not None:
            self.lines.close()

    @deferred
    async def _start(self) -> None:
        self.paths.narrow()
        self.paths.prepare()
        self._observe_log()
        settings = self.file.load()
        token = settings.require_token().reveal()
        SECRETS.add(token)
        check(self.paths, self.file.twins(token.partition(":")[0]))
        self.started_at = time.time()
        ownership = self._part(
            Ownership(
                self.paths,
                self.reactor,
                bus_socket=self.paths.bus_socket,
                control_socket=self.control_socket,
            )
        )
        self.ownership = ownership
        epoch = await ownership.acquire("daemon")
        ownership.when_lost().addCallback(lambda lost: self.fatal(EXIT_LOST, str(lost)))
        database = self._part(Database(self.paths.database, "leader", self.reactor, self.reactor))
        database.startService()
        await database.acquire(epoch)
        watcher = self._part(Watcher(self.file, settings, self.reactor))
        watcher.startService()
        await self._lead(token, epoch, ownership, database, watcher)

    async def _lead(
        self,
        token: str,
        epoch: str,
        ownership: Ownership,
        database: Database,
        watcher: Watcher,
    ) -> None:
        api = BotApi(
            token,
            self.options.api_root,
            self.reactor,
            endpoints=Network(self.reactor, self.options.proxy, self.options.network_family),
            on_unauthorized=self._unauthorized,
        )
        # Stopped after the leader and before the store and the transport lock are given up.
        self._part(_Client(api))
        owner = Owner(
            file=self.file, watcher=watcher, clock=self.reactor, profile=self.paths.profile
        )
        ground = Ground(
            reactor=self.reactor,
            random=SystemRandom(),
            paths=self.paths,
            database=database,
            api=api,
            owner=owner,
            bot_id=int(token.partition(":")[0]),
            epoch=epoch,
            secret=ownership.secret,
            still_fresh=ownership.still_fresh,
            fatal=self.fatal,
            build=f"pi-telegram/{__version__}",
        )
        face = Face(self)
        leader = LeaderService(ground, lambda made: self.make_supervisor(made, self), face)
        self.leader = self._part(leader)
        await leader.startService()
        ownership.on_late_wake(leader.poll.discard_current)
        host = await host_id(leader.leadership)
        commands = self.commands = Commands(database, host)
        leader.pressure.commands = commands.pressure
        self.control = self._part(
            ControlServer(
                self.control_socket,
                face,
                commands,
                self.reactor,
                self.reactor,
                self.options.socket_group,
            )
        )
        self.control.startService()
        await self._meet_bot(leader)
        leader.begin_polling()
        self._ready(leader, face)

    async def _meet_bot(self, leader: LeaderService) -> None:
        """Ask who the bot is; with a stored name only long enough to hear a refusal."""
        known = leader.bot_username is not None
        met = False
        while not met:
            asking = leader.learn_bot()
            if known:
                asking.addTimeout(FIRST_WORD, self.reactor)
            try:
                await asking
                met = True
            except Unauthorized:
                raise NotConfigured(
                    "Telegram refuses the bot token; get a new one from @BotFather and run"
                    " pi-telegram setup"
                ) from None
            except (TelegramError, TimeoutError) as error:
                self._log.warn("the bot cannot be looked up now: {why}", why=_why(error))
                if known:
                    break
                await sleep(self.reactor, ASK_AGAIN)
        self._meeting = Deferred.fromCoroutine(self._meet_again(leader, met))
        self._meeting.addErrback(lambda failure: failure.trap(CancelledError))

    async def _meet_again(self, leader: LeaderService, met: bool) -> None:
        """Go on asking: no update tells that Threads were switched on or off."""
        while self.running:
            await sleep(self.reactor, LOOK_AGAIN if met else ASK_AGAIN)
            try:
                await leader.learn_bot()
                met = True
            except TelegramError:
                met = False
            except CancelledError:
                raise
            except Exception:
                self._log.failure("the bot could not be looked up")

    def _ready(self, leader: LeaderService, face: Face) -> None:
        self._log.info(
            "pi-telegram ready profile={profile} bot=@{bot} pid={pid}",
            profile=self.paths.profile,
            bot=leader.bot_username,
            pid=os.getpid(),
        )
        notify("READY=1", self.environ)
        self.snapshots = self._part(Snapshots(self.paths.state, face.status, self.reactor))
        self.snapshots.startService()

    # --- ends ---------------------------------------------------------------------------------

    def _mind_signals(self) -> None:
        """Make SIGTERM and Ctrl-C an ordinary end with exit code 0, however often they come.

        twistd would let the signal end it; Twisted itself complains about the second one.
        """

        def stop(*_: Any) -> None:
            if not self._stopping:
                self._stopping = True
                self.reactor.callFromThread(self.reactor.stop)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)

    def fatal(self, code: int, reason: str) -> None:
        """End the process with C{code}; the log has the reason."""
        if self._stopping:
            return
        self._stopping = True
        self.exit_code = code
        self._log.critical("the daemon ends (exit {code}): {reason}", code=code, reason=reason)
        self.reactor.callWhenRunning(self._leave)

    def _leave(self) -> None:
        self.reactor.callLater(0, self.reactor.stop)

    def _leave_with_code(self) -> None:
        """Make the exit code ours whatever runs the reactor (rule D32).

        twistd would end with 0 after a failure, and by the signal itself after SIGTERM.
        """
        self.reactor._exitSignal = None
        if self.exit_code:
            atexit.register(_exit_now, self.exit_code)

    def _unauthorized(self) -> None:
        if self._starting is None or self._starting.called:
            self.fatal(EXIT_LOST, "Telegram refuses the bot token; run pi-telegram setup")

    def _failed(self, failure: Failure) -> None:
        if failure.check(CancelledError) and self._stopping:
            return
        if failure.check(PiTelegramError, OSError) is None:
            self._log.failure("the daemon could not start", failure)
        self.fatal(exit_code(failure.value), _why(failure.value))

    # --- facts --------------------------------------------------------------------------------

    @property
    def control_socket(self) -> Any:
        """Where the control API listens."""
        return self.options.control_socket or self.paths.control_socket

    def _part(self, part: Any) -> Any:
        self._parts.append(part)
        return part

    def _observe_log(self) -> None:
        lines = self.lines = JsonLinesObserver(self.paths.logs, self.paths.logs_previous)
        level = self.options.log_level
        for observer in (at_level(lines, level), at_level(self.events, level)):
            globalLogPublisher.addObserver(observer)
            self._observers.append(observer)
        self._forwarder = forward_stdlib()


class _Client(Service):
    """The Bot API client among the daemon's parts."""

    def __init__(self, api: BotApi) -> None:
        self._api = api

    def stopService(self) -> Deferred[None]:
        """Cut what still runs."""
        return self._api.close()


@deferred
async def _stopped(part: Service) -> None:
    outcome = part.stopService()
    if isinstance(outcome, Deferred):
        await outcome


def _why(error: BaseException) -> str:
    if isinstance(error, PiTelegramError):
        return str(error)
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return type(error).__name__


def _exit_now(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
