"""Threads of bindings: slots, names, and where each binding's messages go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, DeferredLock
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from pitelegram.botapi.interfaces import IBotApi
from pitelegram.errors import Refusal, TelegramError
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.store.interfaces import IBindings, ILeadership
from pitelegram.store.rows import Binding
from pitelegram.targets import TelegramTarget
from pitelegram.threads.budget import TitleBudget
from pitelegram.threads.classic import Classic, pair, place
from pitelegram.threads.dwelling import Dwellings
from pitelegram.threads.interfaces import IThreads
from pitelegram.threads.maker import Maker
from pitelegram.threads.mode import DISABLED, ENABLED, ThreadMode
from pitelegram.threads.observing import Observer, Observers
from pitelegram.threads.slots import first_free, pick_name
from pitelegram.threads.titles import CONTROL_KEY
from pitelegram.threads.titling import Titling


@implementer(IThreads)
class Threads(Service):
    """Gives each binding its slot, name and Thread.

    @param owner_chat: the paired owner's private chat, None before pairing.
    @param running: keys of the bindings whose workers run, or are about to (classic mode).
    @param receiving: whether updates arrive just now.
    @param display_mode: one of L{pitelegram.threads.titles.MODES}.
    @param changed: called when a title, name or directory was stored.
    """

    log = Logger()

    def __init__(
        self,
        api: IBotApi,
        bindings: IBindings,
        leadership: ILeadership,
        clock: IReactorTime,
        random: Random,
        owner_chat: Callable[[], int | None],
        *,
        running: Callable[[], Iterable[str]] = tuple,
        receiving: Callable[[], bool] = lambda: True,
        display_mode: Callable[[], str] = lambda: "letters",
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._api = api
        self._bindings = bindings
        self._clock = clock
        self._owner_chat = owner_chat
        self._dwellings = Dwellings(bindings, running, changed)
        self._observers = Observers()
        self._mode = ThreadMode(leadership, self._mode_changed)
        self._classic = Classic(bindings, leadership, self._observers, running)
        self._titling = Titling(api, bindings, clock, self.mode, display_mode, changed)
        self._maker = Maker(
            api=api,
            bindings=bindings,
            clock=clock,
            random=random,
            observers=self._observers,
            possible=self._chat_for_threads,
            title_of=self._titling.title_of_new,
            receiving=receiving,
            doubtful=self._ask_me,
        )
        self._allocation = DeferredLock()
        self._switching = DeferredLock()
        self._wanted: dict[str, str] = {}
        self._fresh: set[str] = set()
        self._jobs: dict[str, Deferred[None]] = {}

    def startService(self) -> None:
        """Go on with Threads whose making was interrupted."""
        Service.startService(self)
        for intent in self._bindings.provisions():
            binding = self._bindings.get(intent["binding_key"])
            if binding is None or binding.target is not None:
                ending = self._bindings.end_provision(intent["binding_key"], None)
                spawn(self.log, "dropping an old intent", ending)
            else:
                # One that had a title had a Thread: its loss is still to be told.
                reason = "recreated" if binding.title else "created"
                self._wanted.setdefault(binding.binding_key, reason)
        self.kick()

    @deferred
    async def stopService(self) -> None:
        """Cancel what is being made; its intents are taken up at the next start."""
        Service.stopService(self)
        for job in list(self._jobs.values()):
            job.cancel()
        for job in list(self._jobs.values()):
            await job

    def kick(self) -> None:
        """An owner was paired, a worker came or went: look again what is missing."""
        if self.running:
            spawn(self.log, "looking after Threads", self._look_after())

    def mode(self) -> str:
        """Return C{enabled}, C{disabled} or C{unknown}."""
        return self._mode.now()

    def learn(self, me: dict[str, Any]) -> None:
        """Take a C{getMe} answer; it is kept, and a change of mode is acted upon."""
        self._mode.learn(me)

    @property
    def observers(self) -> Observers:
        """Who is told of changes, for others that change targets."""
        return self._observers

    def subscribe(self, observer: Observer) -> None:
        """Tell an observer of each committed change.

        C{reason}: C{created}, C{recreated} (after a loss), C{lost}, C{served}, C{unserved},
        C{reassigned}, C{restored}, C{mode}, C{owner}, C{forgotten}.
        """
        self._observers.add(observer)

    def destination(self, binding_key: str) -> TelegramTarget | None:
        """Return where messages of a binding go: its target; the chat for C{daemon} in classic mode.

        What a forgotten binding left goes where C{daemon}'s messages go.
        """
        binding = self._bindings.get(binding_key)
        if binding is None and binding_key != CONTROL_KEY:
            return self.destination(CONTROL_KEY)
        if binding_key == CONTROL_KEY and self.mode() == DISABLED:
            chat_id = self._owner_chat()
            return None if chat_id is None else TelegramTarget(chat_id)
        return None if binding is None else binding.target

    @deferred
    async def ensure(self, binding_key: str, kind: str, directory: str | None) -> Binding:
        """Give a binding row, slot, name and, later, its Thread; see L{IThreads.ensure}."""
        binding = self._bindings.get(binding_key)
        if binding is None or (binding.slot is None and kind != "daemon"):
            binding = await self._allocation.run(self._allocate, binding_key, kind, directory)
        assert binding is not None
        await self.living(binding_key)
        self._wanted.setdefault(binding_key, "created")
        if self.running:
            await self._look_after(binding_key)
        return self._bindings.get(binding_key) or binding

    @deferred
    async def _allocate(self, key: str, kind: str, directory: str | None) -> Binding:
        others = [each for each in self._bindings.list() if each.binding_key != key]
        slot = name = None
        if kind != "daemon":
            slot = first_free({each.slot for each in others if each.slot})
            now_ms = int(self._clock.seconds() * 1000)
            name = pick_name(
                slot, now_ms, {each.thread_name for each in others if each.thread_name}
            )
        binding = await self._bindings.ensure(key, kind, directory)
        if slot is None or name is None or binding.slot is not None:
            return binding
        await self._bindings.assign_slot(key, slot, name)
        found = self._bindings.get(key)
        assert found is not None
        return found

    @deferred
    async def created(self, message: dict[str, Any]) -> None:
        """Take a C{forum_topic_created} of the bot's own; anybody else's is ignored."""
        sender = message.get("from")
        if isinstance(sender, dict) and sender.get("is_bot") is True:
            await self._maker.created(message)

    def renamed(self, message: dict[str, Any]) -> Deferred[None]:
        """Take a C{forum_topic_edited} of the owner; see L{IThreads.renamed}."""
        return self._titling.renamed(message)

    def closed(self, message: dict[str, Any]) -> Deferred[str | None]:
        """Take a C{forum_topic_closed} of the owner; see L{IThreads.closed}."""
        return self._titling.shut_by_owner(message, True)

    def reopened(self, message: dict[str, Any]) -> Deferred[str | None]:
        """Take a C{forum_topic_reopened} of the owner; see L{IThreads.reopened}."""
        return self._titling.shut_by_owner(message, False)

    @deferred
    async def found_closed(self, binding_key: str, target: TelegramTarget) -> None:
        """Telegram says that a Thread is closed; see L{IThreads.found_closed}."""
        await self._titling.shut(binding_key, target)

    @deferred
    async def serve(self, binding_key: str) -> None:
        """Classic mode: give the chat to a binding.

        @raise Refusal: C{unavailable} in threaded mode, before pairing, or for no binding.
        """
        chat_id = self._owner_chat()
        if self.mode() != DISABLED:
            raise Refusal("unavailable", "each worker has its own Thread; write there")
        if chat_id is None:
            raise Refusal("unavailable", "no owner is paired yet; run pi-telegram setup")
        await self._classic.serve(binding_key, chat_id)

    @deferred
    async def unserve(self) -> None:
        """Classic mode: nobody has the chat, until L{serve}."""
        chat_id = self._owner_chat()
        if self.mode() == DISABLED and chat_id is not None:
            await self._classic.unserve(chat_id)

    @deferred
    async def reassign(self, binding_key: str, chat_id: int, thread_id: int | None) -> bool:
        """Give a Thread to a binding; whoever had it is told first.  See L{IThreads.reassign}."""
        binding = self._bindings.get(binding_key)
        if binding is None:
            return False
        target = TelegramTarget(chat_id, thread_id)
        if binding.target == target:
            return True
        await self._give_up_making(binding_key)
        before = self._bindings.by_target(chat_id, thread_id)
        place_before = pair(binding.target)
        if not await self._bindings.set_target(binding_key, chat_id, thread_id, place_before):
            return False
        if before is not None:
            self._observers.tell(before.binding_key, None, target, "reassigned")
        self._observers.tell(binding_key, target, binding.target, "reassigned")
        spawn(self.log, "renaming a Thread", self._retitle_soon(binding_key))
        return True

    def dismiss(self, binding_key: str) -> None:
        """Make no Thread for a binding until L{ensure} is called for it again."""
        self._wanted.pop(binding_key, None)

    @deferred
    async def forget(self, binding_key: str) -> None:
        """Remove a binding; see L{IThreads.forget}."""
        await self._give_up_making(binding_key)
        self._wanted.pop(binding_key, None)
        self._fresh.discard(binding_key)
        binding = self._bindings.get(binding_key)
        await self._bindings.forget(binding_key)
        if binding is not None and binding.target is not None:
            self._observers.tell(binding_key, None, binding.target, "forgotten")
        self.kick()

    async def _give_up_making(self, binding_key: str) -> None:
        job = self._jobs.get(binding_key)
        if job is not None:
            job.cancel()
            await self._bindings.end_provision(binding_key, None)

    async def _retitle_soon(self, binding_key: str, busy: bool | None = None) -> None:
        """At once if the budget allows it; else the titler does it."""
        try:
            if self.budget.wait_for() == 0:
                await self.retitle(binding_key, busy)
        except TelegramError as error:
            self.log.info("{error}", error=str(error))

    @property
    def budget(self) -> TitleBudget:
        """How often titles may be edited."""
        return self._titling.budget

    def exists(self, binding_key: str, target: TelegramTarget) -> Deferred[bool | None]:
        """Whether Telegram has a Thread; see L{IThreads.exists}."""
        return self._titling.exists(binding_key, target)

    def retitle(self, binding_key: str, busy: bool | None = None) -> Deferred[bool]:
        """Rename a binding's Thread, if its title is to be another one; see L{IThreads.retitle}."""
        return self._titling.retitle(binding_key, busy)

    def rename(
        self, binding_key: str, target: TelegramTarget | None, name: str, busy: bool | None = None
    ) -> Deferred[tuple[str, str | None]]:
        """Give a Thread the operator's name; see L{IThreads.rename}."""
        return self._titling.rename(binding_key, target, name, busy)

    def title(self, binding_key: str, busy: bool | None = None) -> str:
        """Return what a binding's Thread is to be called."""
        return self._titling.title(binding_key, busy)

    @deferred
    async def moved(self, binding_key: str, directory: str, busy: bool | None = None) -> None:
        """A worker works in another directory now; see L{IThreads.moved}."""
        if await self._dwellings.moved(binding_key, directory):
            spawn(self.log, "renaming a Thread", self._retitle_soon(binding_key, busy))

    def living(self, binding_key: str) -> Deferred[None]:
        """A binding has a live worker; see L{IThreads.living}."""
        return self._dwellings.living(binding_key)

    @deferred
    async def lost(self, binding_key: str, target: TelegramTarget) -> bool:
        """A Thread is proven gone: clear it and make one new; False if it was another by then."""
        binding = self._bindings.get(binding_key)
        if binding is None or binding.target != target:
            return False
        title = self._titling.title_of_new(binding)
        await self._bindings.begin_provision(binding_key, target.chat_id, title)
        if not await self._bindings.clear_target(binding_key, place(target)):
            await self._bindings.end_provision(binding_key, None)
            return False
        self._wanted[binding_key] = "recreated"
        self._fresh.add(binding_key)
        self._observers.tell(binding_key, None, target, "lost")
        self._start(binding_key)
        return True

    def _chat_for_threads(self) -> int | None:
        return self._owner_chat() if self.mode() == ENABLED else None

    def _mode_changed(self, before: str) -> None:
        self.log.info("threaded mode was {before}, is {now}", before=before, now=self.mode())
        self.kick()

    @deferred
    async def _ask_me(self) -> None:
        try:
            self.learn(await self._api.call("getMe", {}))
        except TelegramError as error:
            self.log.info("{error}", error=str(error))

    @deferred
    async def _look_after(self, only: str | None = None) -> None:
        await self._switching.run(self._adapt, only)
        for key in [only] if only is not None else list(self._wanted):
            self._start(key)

    @deferred
    async def _adapt(self, starting: str | None) -> None:
        """Bring targets into line with the owner and the mode."""
        chat_id = self._owner_chat()
        if chat_id is None:
            return
        for binding in self._bindings.list():
            target = binding.target
            if target is not None and target.chat_id != chat_id:
                if await self._bindings.clear_target(binding.binding_key, place(target)):
                    self._observers.tell(binding.binding_key, None, target, "owner")
        if self.mode() == DISABLED:
            await self._classic.park()
            await self._classic.serve_the_only_one(chat_id, starting)
        elif self.mode() == ENABLED:
            for key in await self._classic.unpark(chat_id, self._jobs):
                self._wanted.setdefault(key, "created")

    def _start(self, binding_key: str) -> None:
        binding = self._bindings.get(binding_key)
        if not self.running or binding_key in self._jobs or self._chat_for_threads() is None:
            return
        if binding is None or binding.target is not None:
            return
        fresh = binding_key in self._fresh
        self._fresh.discard(binding_key)
        reason = self._wanted.get(binding_key, "created")
        job = Deferred.fromCoroutine(self._maker.make(binding_key, reason, fresh))
        self._jobs[binding_key] = job
        job.addBoth(self._finished, binding_key).addErrback(self._failed)

    def _finished(self, outcome: Any, binding_key: str) -> Any:
        self._jobs.pop(binding_key, None)
        binding = self._bindings.get(binding_key)
        if binding is not None and binding.target is not None:
            self._wanted[binding_key] = "created"
        return outcome

    def _failed(self, failure: Failure) -> None:
        if failure.check(CancelledError) is None:
            self.log.failure("a Thread could not be made", failure)
