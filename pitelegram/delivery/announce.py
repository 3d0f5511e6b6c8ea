"""Says in its Thread that an answer is parked or refused, with a button to send it again."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.botapi.interfaces import IBotApi, ISendGate
from pitelegram.botapi.missing import misplaced
from pitelegram.delivery.interfaces import IThreadLoss
from pitelegram.delivery.takeback import TakeBack, Taken
from pitelegram.delivery.transmitter import MISPLACED_LIMIT, addressed
from pitelegram.delivery.verdicts import Verdict, judge
from pitelegram.errors import CertainlyUnsent, TelegramError, Uncertain
from pitelegram.kernel.backoff import Backoff
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.kernel.jsonio import dumps, loads
from pitelegram.store.interfaces import IBindings, ILeadership, IOutbox
from pitelegram.targets import TelegramTarget

BUTTON = "📤 Deliver again"
AGAIN_PREFIX = "ob:again:"
"""Callback data of the button, before the outbox key."""

TOLD = "outbox.told"
"""The fact that names what was announced already."""

LONGEST_DOUBT = 3600.0
"""Most seconds between two tries of an announcement whose answers nobody can read.

Each may have arrived, so they become rare soon (4 s, 16 s, 64 s …); none may have, so they never end.
"""

_FINISHED = ("uncertain", "dead_letter", "hold")


def announcement(state: str, reason: str) -> str:
    """Return the text for a delivery that is C{uncertain}, a C{dead_letter} or on C{hold}."""
    if state == "hold":
        return f"⛔ An answer is held back for safety ({reason}); it is not sent."
    if state == "uncertain":
        return f"⚠️ Nobody can tell whether a part of an answer arrived here ({reason})."
    return f"⚠️ An answer could not be delivered here ({reason})."


class Announcer(Service):
    """Announces each parked or refused delivery once, as soon as Telegram can be reached.

    Best effort and outside the outbox: what it says is derived from the outbox, at the start and at
    each L{kick}.  Told once per failure; a delivery that fails again after the operator's retry is
    announced again.

    @param target: where a binding's messages go now, None while they have to wait.
    @param text: makes the message from state and reason.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        random: Random,
        outbox: IOutbox,
        bindings: IBindings,
        facts: ILeadership,
        api: IBotApi,
        gate: ISendGate,
        losses: IThreadLoss,
        takeback: TakeBack,
        *,
        target: Callable[[str], TelegramTarget | None],
        text: Callable[[str, str], str] = announcement,
    ) -> None:
        self._clock = clock
        self._outbox = outbox
        self._bindings = bindings
        self._facts = facts
        self._api = api
        self._gate = gate
        self._losses = losses
        self._takeback = takeback
        self._target = target
        self._text = text
        self._backoff = Backoff(1.0, 60.0, random)
        self._told: dict[str, str] = {}
        self._unreadable: dict[str, int] = {}
        self._strays: dict[str, int] = {}
        self._due: dict[str, float] = {}
        self._working: Deferred[None] | None = None
        self._nap: Deferred[None] | None = None

    def startService(self) -> None:
        """Remember what was told, and tell the rest."""
        self._told = dict(loads(self._facts.get_meta(TOLD) or "{}"))
        super().startService()
        self.kick()

    @deferred
    async def stopService(self) -> None:
        """Stop at once; what was not told is told after the next start."""
        Service.stopService(self)
        working = self._working
        if working is not None:
            working.cancel()
            await working

    def announce(self, binding_key: str, key: str, state: str, reason: str) -> None:
        """A part was parked or refused; its delivery may be finished by that."""
        self.kick()

    def kick(self) -> None:
        """Look for what is untold, now."""
        if not self.running:
            return
        if self._nap is not None:
            nap, self._nap = self._nap, None
            nap.cancel()
        elif self._working is None:
            working = self._work().addErrback(self._ended)
            self._working = None if working.called else working

    def _ended(self, failure: Any) -> None:
        if not failure.check(CancelledError):
            self._log.failure("announcing was interrupted", failure)

    @deferred
    async def _work(self) -> None:
        try:
            while self.running:
                untold = self._untold()
                if not untold:
                    return
                now = self._clock.seconds()
                due = [each for each in untold if self._due.get(each[0]["key"], now) <= now]
                results = [await self._tell(*each) for each in due]
                if due and all(results):
                    self._backoff.reset()
                else:
                    await self._pause(self._backoff.next())
        finally:
            self._working = None

    async def _pause(self, seconds: float) -> None:
        self._nap = nap = sleep(self._clock, seconds)
        try:
            await nap
        except CancelledError:
            if self._nap is nap:
                raise
        finally:
            self._nap = None

    def _untold(self) -> list[tuple[dict[str, Any], TelegramTarget]]:
        found = []
        for item in self._outbox.items():
            target = self._target(item["binding_key"])
            told = self._told.get(item["key"]) == _token(item)
            if item["state"] in _FINISHED and not told and target is not None:
                found.append((item, target))
        return found

    async def _tell(self, item: dict[str, Any], target: TelegramTarget) -> bool:
        """Announce one; False when it has to be tried again."""
        await self._gate.wait(target.chat_id)
        params: dict[str, Any] = {"text": self._text(item["state"], item["reason"] or "unknown")}
        if item["state"] != "hold":
            button = {"text": BUTTON, "callback_data": AGAIN_PREFIX + item["key"]}
            params["reply_markup"] = {"inline_keyboard": [[button]]}
        try:
            message = await self._api.call("sendMessage", addressed(params, target))
        except TelegramError as error:
            if await self._again_later(item, target, error):
                return False
        else:
            identity = message.get("message_id") if isinstance(message, dict) else None
            if type(identity) is int:
                astray = misplaced([message], target.thread_id)
                if astray and await self._went_astray(item, target, message):
                    return False
                await self._bindings.remember_messages(
                    target.chat_id, [identity], "daemon", outgoing=True
                )
        await self._remember(item)
        return True

    async def _went_astray(
        self, item: dict[str, Any], target: TelegramTarget, message: dict[str, Any]
    ) -> bool:
        """Whether it landed outside its Thread and is to be sent again."""
        key = item["key"]
        strays = self._strays[key] = self._strays.get(key, 0) + 1
        taken = Taken.NOT
        if strays <= MISPLACED_LIMIT:
            taken = await self._takeback.take(target, [message["message_id"]])
        await self._losses.examine(item["binding_key"])
        return taken is not Taken.NOT

    async def _again_later(
        self, item: dict[str, Any], target: TelegramTarget, error: TelegramError
    ) -> bool:
        key = item["key"]
        if isinstance(error, CertainlyUnsent) and error.retry_after is not None:
            self._gate.flood(target.chat_id, error.retry_after)
        if isinstance(error, Uncertain):
            doubts = self._unreadable[key] = self._unreadable.get(key, 0) + 1
            self._due[key] = self._clock.seconds() + min(4.0 ** min(doubts, 9), LONGEST_DOUBT)
            return True
        verdict = judge(error, "sendMessage", resend=True).verdict
        if verdict is Verdict.THREAD:
            await self._losses.examine(item["binding_key"])
        return verdict not in (Verdict.DEAD, Verdict.PLAIN)

    async def _remember(self, item: dict[str, Any]) -> None:
        self._unreadable.pop(item["key"], None)
        self._strays.pop(item["key"], None)
        self._due.pop(item["key"], None)
        self._told[item["key"]] = _token(item)
        known = {each["key"] for each in self._outbox.items()}
        self._told = {key: token for key, token in self._told.items() if key in known}
        await self._facts.set_meta(TOLD, dumps(self._told).decode())


def _token(item: dict[str, Any]) -> str:
    """Tell one failure of a delivery from its next one."""
    return f"{item['state']}:{item['attempts']}"
