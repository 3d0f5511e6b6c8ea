"""Classic mode (rule D20): the private chat itself is the only target, for one binding at a time."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from twisted.logger import Logger

from pitelegram.errors import Refusal
from pitelegram.kernel.deferring import spawn
from pitelegram.store.interfaces import IBindings, ILeadership
from pitelegram.store.rows import Binding
from pitelegram.targets import TelegramTarget
from pitelegram.threads.observing import Observers
from pitelegram.threads.titles import CONTROL_KEY

_PARKED = "parked_thread:"
_TITLE = "parked_title:"
"""What the user had called a Thread that was put aside."""


class Classic:
    """Gives the chat to a binding, and puts Threads aside while there are none.

    @param running: keys of the bindings whose workers run, or are about to.
    """

    log = Logger()

    def __init__(
        self,
        bindings: IBindings,
        leadership: ILeadership,
        observers: Observers,
        running: Callable[[], Iterable[str]],
    ) -> None:
        self._bindings = bindings
        self._leadership = leadership
        self._observers = observers
        self._running = running
        self._detached = False

    async def serve(self, binding_key: str, chat_id: int) -> None:
        """Give the chat to a binding.

        @raise Refusal: C{unavailable} when there is no such binding.
        """
        binding = self._bindings.get(binding_key)
        if binding is None or binding_key == CONTROL_KEY:
            raise Refusal("unavailable", "there is no such worker")
        self._detached = False
        target = TelegramTarget(chat_id)
        if binding.target == target:
            return
        before = self._bindings.by_target(chat_id, None)
        if await self._bindings.set_target(binding_key, chat_id, None, pair(binding.target)):
            if before is not None:
                self._observers.tell(before.binding_key, None, target, "unserved")
            self._observers.tell(binding_key, target, binding.target, "served")

    async def unserve(self, chat_id: int) -> None:
        """Take the chat away from whoever has it; nobody gets it by himself afterwards."""
        self._detached = True
        served = self._bindings.by_target(chat_id, None)
        if served is not None and await self._bindings.clear_target(
            served.binding_key, (chat_id, None)
        ):
            self._observers.tell(served.binding_key, None, served.target, "unserved")

    async def serve_the_only_one(self, chat_id: int, starting: str | None) -> None:
        """A single running worker needs no C{/attach}.

        @param starting: the key of a binding that is about to run, if one is; it takes the chat
            from nobody.
        """
        running = {key for key in self._running() if self._bindings.get(key) is not None}
        running.discard(CONTROL_KEY)
        candidates = running or {key for key in (starting,) if key not in (None, CONTROL_KEY)}
        if self._detached or len(candidates) != 1:
            return
        served = self._bindings.by_target(chat_id, None)
        if served is None or (running and served.binding_key not in running):
            await self.serve(candidates.pop(), chat_id)

    async def park(self) -> None:
        """There are no Threads now: remember each worker's, and leave it without a target."""
        for binding in self._bindings.list():
            target = binding.target
            if target is None or target.thread_id is None or binding.kind == "daemon":
                continue
            await self._leadership.set_meta(_TITLE + binding.binding_key, binding.user_title or "")
            await self._leadership.set_meta(_PARKED + binding.binding_key, target.key)
            if await self._bindings.clear_target(binding.binding_key, place(target)):
                self._observers.tell(binding.binding_key, None, target, "mode")

    async def unpark(self, chat_id: int, making: Container[str]) -> list[str]:
        """There are Threads again: give each worker its own back.

        @param making: bindings whose Threads are being made, which are left alone.
        @return: those that had the chat itself, and have nothing now.
        """
        served = []
        for binding in self._bindings.list():
            key, target = binding.binding_key, binding.target
            if target is not None and target.thread_id is None:
                if await self._bindings.clear_target(key, place(target)):
                    self._observers.tell(key, None, target, "mode")
                    served.append(key)
        for binding in self._bindings.list():
            parked = self._leadership.get_meta(_PARKED + binding.binding_key)
            if parked and binding.binding_key not in making:
                await self._restore(binding, chat_id, parked)
        return served

    async def _restore(self, binding: Binding, chat_id: int, parked: str) -> None:
        """Give it back first and forget it then: killed in between, a second one must not be made."""
        key = binding.binding_key
        chat, _, thread = parked.partition(":")
        target = TelegramTarget(int(chat), int(thread))
        free = target.chat_id == chat_id and self._bindings.by_target(*place(target)) is None
        if binding.target is None and free:
            title = self._leadership.get_meta(_TITLE + key)
            giving = self._bindings.set_target(key, *place(target), None)
            if title:
                # Asked for at once, so that nothing renames the Thread in between.
                naming = self._bindings.set_user_title(key, place(target), title, True)
                await spawn(self.log, "keeping the name of a Thread", naming)
            if await giving:
                self._observers.tell(key, target, None, "restored")
        await self._leadership.set_meta(_PARKED + key, "")


def place(target: TelegramTarget) -> tuple[int, int | None]:
    """Return a target as the store's compare-and-swap wants it."""
    return (target.chat_id, target.thread_id)


def pair(target: TelegramTarget | None) -> tuple[int, int | None] | None:
    """The same for what may be None."""
    return None if target is None else place(target)
