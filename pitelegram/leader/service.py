"""What a leader is made of, and its life.

What starts first is what later parts lean on; everything stops in reverse.  The leader is made after
the transport was acquired, because its parts carry the epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from pitelegram.botapi.limits import SendGate, call_in_turn
from pitelegram.errors import PiTelegramError, Refusal, TelegramError
from pitelegram.ground import Ground
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.kernel.services import AsyncMultiService
from pitelegram.leader import making
from pitelegram.leader.mycommands import MyCommands
from pitelegram.leader.stores import Stores
from pitelegram.panel.interfaces import IStatusSource
from pitelegram.routing.activity import at_work
from pitelegram.routing.downloads import Downloads
from pitelegram.routing.owners import MessageOwners
from pitelegram.routing.places import Places
from pitelegram.routing.workers import Workers
from pitelegram.store.pressure import Pressure
from pitelegram.targets import TelegramTarget
from pitelegram.threads.loss import ThreadLoss
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
        self._make_parts(make_supervisor, status)
        self.threads.subscribe(self._target_changed)
        ground.owner.on_paired = self._paired
        ground.owner.on_replaced = self._replaced
        ground.owner.on_blocked = self.delivery.intake.blocked
        ground.owner.on_service = self._service_message
        reactor = ground.reactor
        for service in (
            self.threads,
            self.delivery,
            self.bus,
            self.router,
            self.supervisor,
            self.orphans,
            self.janitor,
            self.leaving,
            Titler(reactor, self.threads, self.threads.budget, self._busy),
            Downloads(reactor, ground.paths.downloads, reactor.seconds),
            self.retention,
            MyCommands(reactor, ground.random, ground.api, self.leadership, ground.bot_id),
        ):
            self.addService(service)

    def _make_parts(
        self, make_supervisor: Callable[[LeaderService], Any], status: IStatusSource
    ) -> None:
        """Make the parts, each after those that it is given."""
        ground = self.ground
        self.stores = stores = Stores.of(ground.database)
        self.leadership, self.journal, self.specs = stores.leadership, stores.journal, stores.specs
        self.bindings, self.outbox, self.cleanups = stores.bindings, stores.outbox, stores.cleanups
        self.continuity = making.make_continuity(self)
        self.retention = making.make_retention(self)
        self.pressure = Pressure(
            ground.database, self.retention, ground.paths.data, ground.monotonic
        )
        self.workers = Workers()
        self.gate = SendGate(ground.reactor, ground.monotonic)
        self.places = Places(self.bindings)
        self.owners = MessageOwners(self.bindings, ground.reactor)
        self.threads = making.make_threads(self)
        self.loss = ThreadLoss(ground.api, self.bindings, self.threads)
        self.delivery = making.make_delivery(self)
        self.orphans = making.make_orphans(self)
        self.registry = making.make_registry(self)
        self.bus = making.make_bus(self)
        self.inactivity = making.make_inactivity(self)
        switches = making.make_switches(self)
        self.cleanup = making.make_cleanup(self, switches)
        self.janitor = making.make_janitor(self, switches)
        self.leaving = making.make_leaving(self, switches)
        self.supervisor = self.workers.supervisor = make_supervisor(self)
        self.panel = making.make_panel(self, status)
        self.desk = making.make_desk(self)
        self.router = making.make_router(self)
        self.admission = making.make_admission(self)
        self.poll = making.make_poll(self)

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
        if target is None:
            self.delivery.intake.kick(binding_key)
        else:
            # What waits for a Thread that was closed need not wait any longer.
            reopened = self.delivery.intake.reopened(binding_key)
            spawn(self.log, "sending what waited", reopened)
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

    def _replaced(self, user_id: int) -> None:
        text = "ℹ️ This bot is not paired with you any more; what is written here reaches nobody."
        spawn(self.log, "telling a former owner", self.reply(TelegramTarget(user_id), text))
        self.desk.asking.wake()

    def _service_message(self, message: dict[str, Any]) -> Deferred[None] | None:
        if "forum_topic_created" in message:
            return self.threads.created(message)
        if "forum_topic_edited" in message:
            return self.threads.renamed(message)
        if "forum_topic_closed" in message:
            return self.threads.closed(message).addCallback(lambda _: None)
        if "forum_topic_reopened" in message:
            return self._reopened(message)
        return None

    @deferred
    async def _reopened(self, message: dict[str, Any]) -> None:
        """What waited for the Thread goes there now."""
        binding_key = await self.threads.reopened(message)
        if binding_key is not None:
            await self.delivery.intake.reopened(binding_key)

    def _busy(self) -> dict[str, bool | None]:
        """Return whether the connected workers are at work, as far as they have said."""
        return {each.binding_key: at_work(each.state) for each in self.registry.followers()}

    def binding_name(self, binding_key: str) -> str:
        """Return what the operator calls a binding."""
        kind, _, spec_id = binding_key.partition("-")
        return self.workers.name(spec_id) if kind == "spec" else binding_key

    @deferred
    async def reply(self, target: TelegramTarget, text: str) -> None:
        """Send a short text, once, to a place that belongs to nobody."""
        params: dict[str, Any] = {"chat_id": target.chat_id, "text": text}
        if target.thread_id is not None:
            params["message_thread_id"] = target.thread_id
        try:
            await call_in_turn(self.ground.api, self.gate, "sendMessage", params)
        except TelegramError as error:
            self.log.info("a short answer was not sent: {code}", code=error.code)
