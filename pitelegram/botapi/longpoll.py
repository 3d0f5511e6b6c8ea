"""The long poll (rules D19, D21, D34): one poll at a time, and nothing confirmed before it is stored.

The machine is drawn in C{docs/machines/long-poll.md}.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

from pitelegram.botapi import phase
from pitelegram.botapi.health import Health
from pitelegram.botapi.interfaces import IBotApi, IPollingView, IUpdateSink
from pitelegram.botapi.methods import POLL_MARGIN
from pitelegram.errors import (
    CertainlyUnsent,
    Conflict,
    Fenced,
    Refused,
    StoreError,
    TelegramError,
    Unauthorized,
)
from pitelegram.ids import UPDATE_KINDS
from pitelegram.kernel.backoff import Backoff
from pitelegram.kernel.deferring import deferred, sleep

POLL_TIMEOUT = 25
POLL_LIMIT = 100
LATE_MARGIN = 8.0
"""An answer that comes this long after the deadline came to a process that had been stopped."""

CONFLICT_COUNT = 10
CONFLICT_SECONDS = 60.0
UNAUTHORIZED_COUNT = 3

SHORTEST_POLL = 1.0
"""Seconds between two polls when the first ended at once without updates."""


def _nothing() -> None:
    """Tell nobody."""


@implementer(IPollingView)
class LongPoll(Service):
    """Polls while it runs.

    @param api: the Bot API.
    @param sink: knows the cursor and stores batches.
    @param clock: timers and, by C{seconds()}, the wall clock.
    @param random: jitter.
    @param monotonic: seconds of a clock that nobody sets.
    @param timeout: seconds that a poll waits for updates.
    @param on_conflict: called once when another poller is certain; polling has ended.
    @param on_unauthorized: called once when the token is refused; polling has ended.
    @param on_fenced: called once when a newer leader owns the store; polling has ended.
    @param recheck: fires with whether this process still owns the transport; asked before an answer
        is used that came impossibly late.
    """

    log = Logger()

    def __init__(
        self,
        api: IBotApi,
        sink: IUpdateSink,
        clock: IReactorTime,
        random: Random,
        monotonic: Callable[[], float],
        *,
        timeout: int = POLL_TIMEOUT,
        on_conflict: Callable[[], None] = _nothing,
        on_unauthorized: Callable[[], None] = _nothing,
        on_fenced: Callable[[], None] = _nothing,
        recheck: Callable[[], Deferred[bool]] = lambda: succeed(True),
    ) -> None:
        self._api = api
        self._sink = sink
        self._clock = clock
        self._monotonic = monotonic
        self._timeout = timeout
        self._on_conflict = on_conflict
        self._on_unauthorized = on_unauthorized
        self._on_fenced = on_fenced
        self._recheck = recheck
        self._backoff = Backoff(1.0, 30.0, random)
        self._phase = phase.poll_phase()
        self._health = Health(clock, monotonic, timeout + POLL_MARGIN)
        self._waiting: Deferred[Any] | None = None
        self._discardable = False
        self._discard = False
        self._loop: Deferred[None] | None = None
        self._conflicts = 0
        self._conflict_since = 0.0
        self._unauthorized = 0

    def startService(self) -> None:
        """Begin to poll."""
        Service.startService(self)
        self._conflicts = self._unauthorized = 0
        self._backoff.reset()
        self._health.begin()
        self._phase.feed(phase.BEGIN)
        self._loop = Deferred.fromCoroutine(self._poll_on())
        self._loop.addErrback(self._broken)

    @deferred
    async def stopService(self) -> None:
        """Cancel the open poll; a batch that is being stored is waited for."""
        Service.stopService(self)
        loop, self._loop = self._loop, None
        self._interrupt()
        if loop is not None:
            await loop
        self._phase.feed(phase.STOP)

    def discard_current(self) -> None:
        """Throw away the answer of the open poll, whatever it will be, and poll again.

        For an owner that was stopped or slept, and then found that it still owns the transport.
        A batch that is already on its way into the store is the store's matter: it compares the
        leader epoch.
        """
        self._discard = True
        if self._discardable:
            self._interrupt()

    def snapshot(self) -> dict[str, Any]:
        """See L{IPollingView}; also C{not_receiving_since_ms}, None while all is well."""
        return self._health.snapshot(self._phase.now)

    def _interrupt(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()

    def _broken(self, failure: Any) -> None:
        self.log.failure("the long poll ended by a fault in this program", failure)
        self._phase.feed(phase.STOP)

    async def _poll_on(self) -> None:
        while self.running:
            self._discard = False
            issued = self._monotonic()
            try:
                updates = await self._interruptible(self._poll(), discardable=True)
            except CancelledError:
                continue
            except TelegramError as error:
                if not await self._failed(error):
                    return
                continue
            except Exception:
                self.log.failure("a poll failed by a fault in this program")
                self._health.failed()
                self._phase.feed(phase.FAILED)
                await self._pause(self._backoff.next())
                continue
            if not await self._answered(updates, self._monotonic() - issued):
                return

    def _poll(self) -> Deferred[Any]:
        params: dict[str, Any] = {
            "limit": POLL_LIMIT,
            "timeout": self._timeout,
            "allowed_updates": list(UPDATE_KINDS),
        }
        offset = self._sink.next_offset()
        if offset is not None and offset > 0:
            params["offset"] = offset
        return self._api.call("getUpdates", params, timeout=self._timeout + POLL_MARGIN)

    async def _interruptible(self, waiting: Deferred[Any], discardable: bool) -> Any:
        self._waiting, self._discardable = waiting, discardable
        try:
            return await waiting
        finally:
            self._waiting, self._discardable = None, False

    async def _pause(self, seconds: float, discardable: bool = False) -> None:
        """Wait; a stop ends it early, and so does L{discard_current} where there is a batch."""
        try:
            await self._interruptible(sleep(self._clock, seconds), discardable)
        except CancelledError:
            return

    async def _answered(self, answer: Any, elapsed: float) -> bool:
        """Use an answer; returns whether to poll on."""
        if elapsed > self._timeout + POLL_MARGIN + LATE_MARGIN:
            self.log.warn("a poll took {elapsed} s: this process was stopped", elapsed=elapsed)
            if not await self._still_owner():
                return self._end(self._on_fenced)
        if self._discard or not self.running:
            return bool(self.running)
        updates = _usable(answer)
        if updates is None:
            return await self._failed(CertainlyUnsent("getUpdates", 0, "the batch is malformed"))
        self._conflicts = self._unauthorized = 0
        self._health.succeeded()
        if not updates:
            self._phase.feed(phase.EMPTY)
            self._backoff.reset()
            if elapsed < SHORTEST_POLL:
                await self._pause(SHORTEST_POLL - elapsed)
            return bool(self.running)
        self._phase.feed(phase.BATCH)
        return await self._store(updates)

    async def _still_owner(self) -> bool:
        """Ask the owner's record; when it cannot be read, the answer is not used."""
        try:
            return await self._recheck()
        except CancelledError:
            raise
        except Exception:
            self.log.failure("the owner's record could not be read; this answer is thrown away")
            self._discard = True
            return True

    async def _store(self, updates: list[dict[str, Any]]) -> bool:
        """Store a batch, however often that takes; returns whether to poll on."""
        next_offset = max(update["update_id"] for update in updates) + 1
        self._backoff.reset()
        while True:
            try:
                await self._sink.accept(updates, next_offset)
            except Fenced:
                return self._end(self._on_fenced)
            except CancelledError:
                raise
            except StoreError as error:
                self.log.error(
                    "updates could not be stored: {why}; Telegram keeps them meanwhile",
                    why=str(error),
                )
            except Exception:
                self.log.failure("updates could not be stored; Telegram keeps them meanwhile")
            else:
                self._phase.feed(phase.STORED)
                self._backoff.reset()
                return True
            self._health.failed()
            self._phase.feed(phase.UNSTORABLE)
            await self._pause(self._backoff.next(), discardable=True)
            if self._discard or not self.running:
                self._phase.feed(phase.DROPPED)
                return bool(self.running)

    async def _failed(self, error: TelegramError) -> bool:
        """Wait before the next poll; returns whether there is to be one."""
        self._health.failed()
        self.log.info("{error}", error=str(error))
        self._count(error)
        conflict = isinstance(error, Conflict)
        self._phase.feed(phase.CONFLICTED if conflict else phase.FAILED)
        if self._unauthorized >= UNAUTHORIZED_COUNT:
            return self._end(self._on_unauthorized)
        if conflict and self._is_another_poller():
            return self._end(self._on_conflict)
        delay = self._backoff.next()
        if isinstance(error, CertainlyUnsent) and error.retry_after is not None:
            delay = max(delay, error.retry_after)
        await self._pause(delay)
        return bool(self.running)

    def _count(self, error: TelegramError) -> None:
        """Count refusals in a row; a missing answer neither adds to them nor ends them."""
        if not isinstance(error, Refused):
            return
        self._unauthorized = self._unauthorized + 1 if isinstance(error, Unauthorized) else 0
        if not isinstance(error, Conflict) or error.webhook:
            self._conflicts = 0
            return
        if self._conflicts == 0:
            self._conflict_since = self._monotonic()
        self._conflicts += 1

    def _is_another_poller(self) -> bool:
        """Whether conflicts came ten in a row and over a minute.  A webhook's never count."""
        lasting = self._monotonic() - self._conflict_since
        return self._conflicts >= CONFLICT_COUNT and lasting >= CONFLICT_SECONDS

    def _end(self, tell: Callable[[], None]) -> bool:
        self._phase.feed(phase.STOP)
        tell()
        return False


def _usable(answer: Any) -> list[dict[str, Any]] | None:
    """Return the updates that have an id; None when the answer is no batch at all."""
    if not isinstance(answer, list):
        return None
    updates = [
        update for update in answer if isinstance(update, dict) and _is_id(update.get("update_id"))
    ]
    return updates if updates or not answer else None


def _is_id(value: Any) -> bool:
    """Whether this is an id whose successor can be stored and asked for."""
    return type(value) is int and 0 <= value < 2**63 - 1
