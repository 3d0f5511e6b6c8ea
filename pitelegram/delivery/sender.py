"""Sends what stands in the outbox: per binding in order, one at a time."""

from __future__ import annotations

import enum
from collections.abc import Callable
from random import Random

import attrs
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from pitelegram.botapi.interfaces import ISendGate
from pitelegram.delivery.spool import Spool
from pitelegram.delivery.transmitter import Step, Transmitter
from pitelegram.errors import Fenced
from pitelegram.kernel.backoff import Backoff
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.store.interfaces import IOutbox

FIRST_WAIT = 1.0
LONGEST_WAIT = 60.0
LONGEST_NAP = 3600.0
"""Seconds after which a waiting lane looks again, whatever time its part names."""

STOP_GRACE = 5.0
"""Seconds that a stop waits for answers of running calls; a part cut off is uncertain."""

UNAUTHORIZED_LIMIT = 3


class Standing(enum.Enum):
    """Whether anything may be sent."""

    OPEN = "yes"
    BLOCKED = "the owner blocked the bot; waits for his C{my_chat_member}"
    HALTED = "the token was refused, or another leader took over; for good"


PROBLEMS = {
    Standing.BLOCKED: "the owner has blocked the bot; answers wait until he lets it back in",
    Standing.HALTED: "answers are not sent any more by this process",
}


@attrs.define(eq=False)
class _Lane:
    """One binding's loop.

    @ivar busy: between the commit of C{sending} and that of the outcome.
    """

    binding_key: str
    backoff: Backoff
    running: Deferred[None] | None = None
    nap: Deferred[None] | None = None
    busy: bool = False

    def wake(self) -> None:
        """End a nap now."""
        nap, self.nap = self.nap, None
        if nap is not None:
            nap.cancel()


class Sender(Service):
    """One loop per binding that has something to send.

    A lane ends when nothing is left, when its binding has no target, and when nothing may be sent;
    L{kick} starts it again.

    @param on_unauthorized: called at each refusal of the token; the third in a row halts.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        random: Random,
        outbox: IOutbox,
        gate: ISendGate,
        transmitter: Transmitter,
        spool: Spool,
        *,
        resend: Callable[[], bool],
        on_unauthorized: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._random = random
        self._outbox = outbox
        self._gate = gate
        self._transmitter = transmitter
        self._spool = spool
        self._resend = resend
        self._on_unauthorized = on_unauthorized
        self._standing = Standing.OPEN
        self._unauthorized = 0
        self._lanes: dict[str, _Lane] = {}
        self._resumes: dict[str, IDelayedCall] = {}

    @property
    def standing(self) -> Standing:
        """Whether anything may be sent."""
        return self._standing

    @deferred
    async def startService(self) -> None:
        """Park what a killed leader was sending, tidy the spool, and begin.

        @raise pitelegram.errors.StoreError: the outbox cannot be written.
        """
        await self._outbox.interrupted()
        items = self._outbox.items()
        self._spool.sweep(item["key"] for item in items)
        if self._resend():
            for item in items:
                if item["reason"] == "interrupted":
                    await self._outbox.again(item["key"])
        Service.startService(self)
        self.kick()

    @deferred
    async def stopService(self) -> None:
        """Begin nothing more; wait a moment for the answers of running calls."""
        Service.stopService(self)
        for call in self._resumes.values():
            call.cancel()
        self._resumes.clear()
        lanes = list(self._lanes.values())
        ends = [lane.running for lane in lanes if lane.running is not None]
        grace = self._clock.callLater(STOP_GRACE, _cancel, lanes)
        _cancel([lane for lane in lanes if not lane.busy])
        await DeferredList(ends)
        if grace.active():
            grace.cancel()

    def kick(self, binding_key: str | None = None) -> None:
        """Something changed for a binding (or for all): look again."""
        if not self.running or self._standing is not Standing.OPEN:
            return
        for key in self._outbox.live_bindings() if binding_key is None else [binding_key]:
            lane = self._lanes.get(key)
            if lane is None:
                self._begin(key)
            else:
                lane.wake()

    @deferred
    async def again(self, key: str) -> bool:
        """Send parked or dead parts of a delivery once more; False if it has none."""
        changed = await self._outbox.again(key)
        if changed:
            self.kick()
        return changed

    @property
    def problem(self) -> str | None:
        """Why nothing is sent at all, as a sentence for the status; None when it is."""
        return PROBLEMS.get(self._standing)

    def blocked(self, blocked: bool) -> None:
        """The owner blocked or unblocked the bot."""
        if self._standing is Standing.HALTED:
            return
        self._standing = Standing.BLOCKED if blocked else Standing.OPEN
        self.kick()

    def _begin(self, binding_key: str) -> None:
        backoff = Backoff(FIRST_WAIT, LONGEST_WAIT, self._random)
        lane = self._lanes[binding_key] = _Lane(binding_key, backoff)
        lane.running = self._work(lane)
        lane.running.addErrback(self._broken, lane)

    @deferred
    async def _work(self, lane: _Lane) -> None:
        try:
            while self._may_send():
                part = self._outbox.next_part(lane.binding_key)
                target = self._transmitter.target(lane.binding_key)
                if part is None or target is None:
                    return
                delay = self._delay(part.next_attempt_ms)
                if delay > 0:
                    await self._nap(lane, delay)
                    continue
                if await self._transmitter.reshaped(part):
                    continue
                await self._gate.wait(target.chat_id)
                if not self._may_send() or self._transmitter.target(lane.binding_key) != target:
                    continue
                lane.busy = True
                step = await self._transmitter.transmit(part, lane.backoff)
                lane.busy = False
                self._follow(step)
        finally:
            self._lanes.pop(lane.binding_key, None)

    def _may_send(self) -> bool:
        return bool(self.running) and self._standing is Standing.OPEN

    def _delay(self, due_ms: int | None) -> float:
        if due_ms is None:
            return 0.0
        return min(due_ms / 1000 - self._clock.seconds(), LONGEST_NAP)

    async def _nap(self, lane: _Lane, seconds: float) -> None:
        lane.nap = nap = sleep(self._clock, seconds)
        try:
            await nap
        except CancelledError:
            if lane.nap is nap:
                raise
        finally:
            lane.nap = None

    def _follow(self, step: Step) -> None:
        if step is Step.NEXT:
            self._unauthorized = 0
        elif step is Step.BLOCKED:
            self._standing = Standing.BLOCKED
        else:
            self._unauthorized += 1
            if self._unauthorized >= UNAUTHORIZED_LIMIT:
                self._standing = Standing.HALTED
            self._on_unauthorized()

    def _broken(self, failure: Failure, lane: _Lane) -> None:
        """A lane ended by a failure that is no outcome: begin again later, unless for good."""
        if failure.check(CancelledError):
            return
        if failure.check(Fenced):
            self._standing = Standing.HALTED
            self._log.error("another leader took over; nothing more is sent")
            return
        self._log.failure("sending was interrupted", failure)
        if self.running and lane.binding_key not in self._resumes:
            delay = lane.backoff.next()
            again = self._clock.callLater(delay, self._resume, lane.binding_key)
            self._resumes[lane.binding_key] = again

    def _resume(self, binding_key: str) -> None:
        del self._resumes[binding_key]
        self.kick(binding_key)


def _cancel(lanes: list[_Lane]) -> None:
    for lane in lanes:
        if lane.running is not None:
            lane.running.cancel()
