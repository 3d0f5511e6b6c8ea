"""The leader of a bot profile: composes store, Bot API, bus, Threads, routing and delivery.

What starts first is what later parts lean on; everything stops in reverse.  The leader is made after
the transport was acquired, because its parts carry the epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from pitelegram.botapi.limits import SendGate, call_in_turn
from pitelegram.botapi.longpoll import LongPoll
from pitelegram.bus.leader import BusServer
from pitelegram.delivery.orphans import Orphans
from pitelegram.delivery.service import DeliveryService
from pitelegram.errors import PiTelegramError, Refusal, TelegramError
from pitelegram.ground import Ground
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.kernel.services import AsyncMultiService
from pitelegram.ownership.continuity import Continuity
from pitelegram.ownership.installation import Installation
from pitelegram.panel.interfaces import IStatusSource
from pitelegram.panel.panel import Panel
from pitelegram.panel.switches import CleanupSwitches
from pitelegram.routing.admission import Admission
from pitelegram.routing.busleader import BusLeader
from pitelegram.routing.credentials import Credentials
from pitelegram.routing.downloads import Downloads
from pitelegram.routing.inactivity import Inactivity
from pitelegram.routing.owners import MessageOwners
from pitelegram.routing.pairing import Pairing
from pitelegram.routing.places import Places
from pitelegram.routing.registry import Registry
from pitelegram.routing.router import Router
from pitelegram.routing.witness import Witness
from pitelegram.routing.workers import Workers
from pitelegram.store.attachments import Attachments
from pitelegram.store.bindings import Bindings
from pitelegram.store.cleanups import Cleanups
from pitelegram.store.journal import Journal
from pitelegram.store.leadership import Leadership
from pitelegram.store.outbox import Outbox
from pitelegram.store.pickers import Pickers
from pitelegram.store.pressure import Pressure
from pitelegram.store.retention import Retention
from pitelegram.store.specs import Specs
from pitelegram.targets import TelegramTarget
from pitelegram.threads.attaching import Attaching
from pitelegram.threads.cleanup import Cleanup
from pitelegram.threads.janitor import Janitor
from pitelegram.threads.loss import ThreadLoss
from pitelegram.threads.provision import Threads
from pitelegram.threads.titler import Titler
from pitelegram.threads.titles import CONTROL_KEY

RECOVERED = (
    "⚠️ The daemon's store was damaged and has been moved to the recovery directory; a new one was"
    " made. Workers have to be started again, and messages that had not been passed on are lost."
)


class LeaderService(AsyncMultiService):
    """Everything that speaks for one bot.

    @param ground: see L{Ground}.
    @param make_supervisor: makes the supervisor from this leader (a Service that provides
        C{ISupervisor}, C{IBindingPolicy} and C{IExpectation}).
    @param status: where the panel's Status screen gets its facts.
    @ivar bot_username: as Telegram, or before it answers the settings, have it.
    """

    log = Logger()

    def __init__(
        self,
        ground: Ground,
        make_supervisor: Callable[[LeaderService], Any],
        status: IStatusSource,
    ) -> None:
        super().__init__()
        self.ground = ground
        settings = ground.owner.watcher.settings
        known = settings.bot_id == ground.bot_id
        self.bot_username = settings.bot_username if known else None
        reactor, database = ground.reactor, ground.database
        self.leadership = Leadership(database)
        self.journal = Journal(database)
        self.specs = Specs(database)
        self.bindings = Bindings(database)
        self.outbox = Outbox(database)
        self.cleanups = Cleanups(database)
        self.continuity = Continuity(
            Installation(data=ground.paths.data, random_bytes=ground.random_bytes),
            ground.paths.profile,
            self.leadership,
            ground.random_bytes,
            ground.monotonic,
        )
        self.retention = Retention(
            reactor,
            database,
            self.journal,
            self.outbox,
            self.bindings,
            self.leadership,
            ground.monotonic,
        )
        self.pressure = Pressure(database, self.retention, ground.paths.data, ground.monotonic)
        self.workers = Workers()
        self.gate = SendGate(reactor, ground.monotonic)
        self.places = Places(self.bindings)
        self.owners = MessageOwners(self.bindings, reactor)
        self._make_threads()
        self._make_delivery()
        self._make_bus()
        self._make_cleanup()
        self.supervisor = self.workers.supervisor = make_supervisor(self)
        self.panel = Panel(
            api=ground.api,
            gate=self.gate,
            supervisor=self.supervisor,
            bindings=self.bindings,
            delivery=self.delivery.intake,
            notices=self.delivery.notices,
            source=status,
            directories=self.supervisor.directories,
            pickers=Pickers(database),
            attaching=Attaching(self.threads, self.bindings, Attachments(database)),
            cleanup=self.cleanup,
        )
        self._make_routing()
        self.threads.subscribe(self._target_changed)
        for service in (
            self.threads,
            self.delivery,
            self.bus,
            self.router,
            self.supervisor,
            self.orphans,
            self.janitor,
            Titler(reactor, self.threads, self._busy),
            Downloads(reactor, ground.paths.downloads, reactor.seconds),
            self.retention,
        ):
            self.addService(service)

    # --- parts --------------------------------------------------------------------------------

    def _make_threads(self) -> None:
        ground = self.ground
        settings = ground.owner.watcher
        self.threads = Threads(
            ground.api,
            self.bindings,
            self.leadership,
            ground.reactor,
            ground.random,
            ground.owner.owner,
            running=lambda: [f.binding_key for f in self.registry.followers()],
            receiving=lambda: bool(self.poll.snapshot()["receiving"]),
            display_mode=lambda: settings.settings.thread_display_mode,
        )
        self.loss = ThreadLoss(ground.api, self.bindings, self.threads)

    def _make_delivery(self) -> None:
        ground = self.ground
        settings = ground.owner.watcher
        pool = ground.reactor.getThreadPool()

        def run_blocking(work: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
            return deferToThreadPool(ground.reactor, pool, work, *arguments)

        self.delivery = DeliveryService(
            ground.reactor,
            ground.random,
            self.outbox,
            self.bindings,
            self.leadership,
            ground.api,
            self.gate,
            self.loss,
            ground.paths.spool,
            run_blocking=run_blocking,
            resend=lambda: settings.settings.outbox_ambiguous == "resend",
            allowed=lambda chat_id: chat_id == ground.owner.owner(),
            destination=self.threads.destination,
        )
        self.orphans = Orphans(
            ground.reactor,
            ground.paths,
            self.bindings,
            self.workers,
            self.delivery.intake,
            self.delivery.notices,
            self._binding_name,
        )

    def _make_bus(self) -> None:
        ground = self.ground
        self.registry = Registry(
            ground.epoch,
            self.bindings,
            self.places,
            self.threads,
            self.workers,
            ground.reactor,
            ground.random_bytes,
            Witness(self.specs).check,
            lambda binding_key: self.cleanups.is_claimed(binding_key),
        )
        self.bus_leader = BusLeader(
            epoch=ground.epoch,
            profile=ground.paths.profile,
            registry=self.registry,
            places=self.places,
            owners=self.owners,
            bindings=self.bindings,
            api=ground.api,
            gate=self.gate,
            delivery=self.delivery.intake,
            uploads_of=ground.paths.uploads_of,
            downloads=ground.paths.downloads,
            random_bytes=ground.random_bytes,
            loss=self.loss,
        )
        self.bus = BusServer(
            ground.paths.bus_socket,
            Credentials(self.specs, ground.epoch, ground.secret),
            self.bus_leader,
            ground.reactor,
            ground.reactor,
            ground.random_bytes,
            ground.build,
        )

    def _make_cleanup(self) -> None:
        ground = self.ground
        self.inactivity = Inactivity(
            ground.paths, self.bindings, self.workers, self.registry, ground.birth_lives
        )
        switches = CleanupSwitches(ground.owner.file, ground.owner.watcher, ground.reactor)
        self.cleanup = Cleanup(
            api=ground.api,
            store=self.cleanups,
            bindings=self.bindings,
            observers=self.threads.observers,
            protects=self.inactivity.protects,
            dismiss=self.threads.dismiss,
            missing=self.threads.kick,
            fresh_id=lambda: ground.random_bytes(8).hex(),
            now_ms=ground.database.now_ms,
            read_switches=switches.read,
            write_switch=switches.flip,
        )
        self.janitor = Janitor(
            ground.reactor,
            self.bindings,
            self.cleanup,
            self.inactivity.lives,
            switches.trusted,
            self.delivery.notices,
            ground.database.now_ms,
        )

    def _make_routing(self) -> None:
        ground = self.ground
        self.router = Router(
            self.journal,
            self.bindings,
            self.places,
            self.owners,
            self.registry,
            self.panel,
            self.workers,
            self.orphans,
            self.delivery.notices,
            self._reply,
            ground.reactor,
            ground.database.now_ms,
        )
        ground.owner.on_paired = self._paired
        ground.owner.on_blocked = self.delivery.intake.blocked
        ground.owner.on_service = self._service_message
        self.admission = Admission(
            ground.bot_id,
            self.journal,
            self.router,
            ground.owner,
            Pairing(ground.paths.pairing, ground.reactor, ground.reactor.seconds),
        )
        self.poll = LongPoll(
            ground.api,
            self.admission,
            ground.reactor,
            ground.random,
            ground.monotonic,
            on_conflict=lambda: ground.fatal(5, "another program polls this bot's updates"),
            on_unauthorized=lambda: ground.fatal(5, "Telegram refuses the bot token"),
            on_fenced=lambda: ground.fatal(5, "a newer leader owns the store"),
            recheck=lambda: succeed(ground.still_fresh()),
        )

    # --- life ---------------------------------------------------------------------------------

    @deferred
    async def startService(self) -> None:
        """Start everything but the long poll; see L{begin_polling}."""
        await self.cleanups.interrupted()
        await AsyncMultiService.startService(self)
        spawn(self.log, "the Control Thread", self.threads.ensure(CONTROL_KEY, "daemon", None))
        if self.ground.database.recovered is not None:
            spawn(self.log, "a notice", self.delivery.notices.post(CONTROL_KEY, RECOVERED))

    def begin_polling(self) -> None:
        """Poll from now on."""
        spawn(self.log, "the long poll", self.addService(self.poll))

    @deferred
    async def learn_bot(self) -> dict[str, Any]:
        """Ask Telegram who the bot is and remember it; fires with C{getMe}'s result.

        What cannot be written down is asked again at the next start.

        @raise TelegramError: Telegram did not say.
        """
        me = await self.ground.api.call("getMe", {})
        self.threads.learn(me)
        self.bot_username = me.get("username") or self.bot_username
        try:
            await self.ground.owner.remember_bot(me)
        except (PiTelegramError, OSError) as error:
            self.log.warn("the bot's name was not stored: {why}", why=type(error).__name__)
        return me  # type: ignore[no-any-return]

    # --- what the parts tell each other -------------------------------------------------------

    def _target_changed(
        self,
        binding_key: str,
        target: TelegramTarget | None,
        old: TelegramTarget | None,
        reason: str,
    ) -> None:
        self.places.forget()
        self.registry.target_changed(binding_key, target, old, reason)
        self.delivery.intake.kick(binding_key)
        self.router.kick()
        if reason == "recreated":
            text = "ℹ️ The Thread before this one was deleted; this one takes its place."
            spawn(self.log, "a notice", self.delivery.notices.post(binding_key, text))

    @deferred
    async def give_up(self, binding_key: str) -> None:
        """Take over what a stopped worker left and remove its files, its binding and its slot.

        @raise Refusal: C{still-settling}: its file is needed as proof for a pinned update.
        """
        if any(row.recipient == binding_key for row in self.journal.unsettled()):
            raise Refusal("still-settling", "a message to that worker is being looked after")
        await self.orphans.clear(binding_key)
        await self.threads.forget(binding_key)

    def _paired(self) -> None:
        self.threads.kick()
        self.delivery.intake.kick()
        text = "✅ This chat is paired with pi-telegram. /daemon opens the control panel."
        spawn(self.log, "the pairing notice", self.delivery.notices.post(CONTROL_KEY, text))

    def _service_message(self, message: dict[str, Any]) -> Deferred[None] | None:
        if "forum_topic_created" in message:
            return self.threads.created(message)
        if "forum_topic_edited" in message:
            return self.threads.renamed(message)
        return None

    def _busy(self) -> dict[str, bool]:
        return {
            each.binding_key: each.state.get("activity") in ("active", "compacting")
            for each in self.registry.followers()
        }

    def _binding_name(self, binding_key: str) -> str:
        kind, _, spec_id = binding_key.partition("-")
        return self.workers.name(spec_id) if kind == "spec" else binding_key

    @deferred
    async def _reply(self, target: TelegramTarget, text: str) -> None:
        params: dict[str, Any] = {"chat_id": target.chat_id, "text": text}
        if target.thread_id is not None:
            params["message_thread_id"] = target.thread_id
        try:
            await call_in_turn(self.ground.api, self.gate, "sendMessage", params)
        except TelegramError as error:
            self.log.info("a short answer was not sent: {code}", code=error.code)
