"""Carrying one row to a worker: pin, forward, compare the receipt, write down what follows.

The table of outcomes is in C{docs/machines/journal-row.md}.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import attrs
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.bus.interfaces import IFollowerLink
from pitelegram.errors import BusBadRequest, BusError, Fenced, LinkLost, StoreError
from pitelegram.ids import delivery_id
from pitelegram.kernel.deferring import deferred
from pitelegram.routing.batch import Batch
from pitelegram.routing.interfaces import IFollower
from pitelegram.routing.lanes import Entry, Lane
from pitelegram.routing.owners import MessageOwners
from pitelegram.store.interfaces import IJournal

WINDOW = 32
"""Unanswered forwards per follower."""

WRONG_RECEIPTS = 8
_LONGEST_DELAY = 60.0


class Outcome(Enum):
    """What became of a row."""

    OVER = "over"
    """Settled or failed: it is off our hands."""

    AGAIN = "again"
    """It comes back; pin and time of the next attempt are in the entry."""

    GIVEN_UP = "given up"
    """Another process leads, or we stop: leave the row as it is stored."""


def retry_delay(attempts: int) -> float:
    """Return the seconds before the next attempt: 1, doubling to 60."""
    return min(_LONGEST_DELAY, 2.0 ** min(attempts, 6))


@attrs.define(eq=False)
class Carrier:
    """Forwards rows and settles them.

    @ivar failed: called with an entry and a reason when a row is C{failed}, to show it.
    @ivar settled: called with a binding key when rows of it have settled.
    """

    journal: IJournal
    owners: MessageOwners
    clock: IReactorTime
    now_ms: Callable[[], int]
    failed: Callable[[Entry, str], None]
    settled: Callable[[set[str]], None]
    _unanswered: dict[IFollowerLink, dict[str, int]] = attrs.field(factory=dict, init=False)
    _settling: Batch[Entry] = attrs.field(init=False)
    _log = Logger()

    @_settling.default
    def _new_batch(self) -> Batch[Entry]:
        return Batch(self.clock, self._settle)

    # --- the window --------------------------------------------------------------------------

    def room(self, link: IFollowerLink) -> bool:
        """Whether one more forward may be unanswered on a connection."""
        return sum(self._unanswered.get(link, {}).values()) < WINDOW

    def is_unanswered(self, delivery: str) -> bool:
        """Whether a forward of this id is unanswered on any connection."""
        return any(delivery in waiting for waiting in self._unanswered.values())

    def forget_link(self, link: IFollowerLink) -> None:
        """A connection is closed: nothing on it can be answered any more."""
        self._unanswered.pop(link, None)

    # --- one row -----------------------------------------------------------------------------

    async def carry(self, lane: Lane, entry: Entry, follower: IFollower) -> Outcome:
        """Pin a row to a follower's binding and forward it once."""
        binding_key = follower.binding_key
        delivery = entry.delivery_id
        if delivery is None or entry.recipient != binding_key:
            delivery = delivery_id(entry.row.kind, binding_key, entry.row.update_id)
        link = follower.link
        waiting = self._unanswered.setdefault(link, {})
        waiting[delivery] = waiting.get(delivery, 0) + 1
        answered = True
        try:
            if lane.pinning or not entry.pinned:
                await self._pin(lane, entry, binding_key, delivery)
            entry.pinned = False
            if not _still(follower):
                raise LinkLost("the follower registered anew meanwhile")
            answered = False
            answer = await link.forward(
                delivery, entry.row.update_id, entry.row.kind, entry.row.body
            )
            answered = True
        except CancelledError:
            raise
        except LinkLost:
            if not answered and link.connected and not self.room(link):
                # Nothing comes back any more although the connection stands.
                link.abort()
            return await self._again(entry, "link-lost", release=False)
        except BusBadRequest:
            # The worker cannot read it, or its answer makes no sense: repeating will not help.
            answered = True
            return await self._wrong(entry)
        except BusError as error:
            answered = True
            return await self._again(entry, error.code.lower(), release=False)
        except StoreError as error:
            return self._unstored(entry, error)
        finally:
            if answered or not link.connected:
                self._answered(link, delivery)
        return await self._conclude(entry, answer)

    async def _pin(self, lane: Lane, entry: Entry, binding_key: str, delivery: str) -> None:
        """Commit the pin.  The commits, which come in order, keep the rows of a lane in theirs."""
        lane.pinning += 1
        try:
            await self.journal.pin(entry.seq, binding_key, delivery)
        finally:
            lane.pinning -= 1
        entry.recipient, entry.delivery_id = binding_key, delivery
        entry.held, entry.waiting_since = False, None

    def _answered(self, link: IFollowerLink, delivery: str) -> None:
        waiting = self._unanswered.get(link)
        if waiting is None or delivery not in waiting:
            return
        waiting[delivery] -= 1
        if not waiting[delivery]:
            del waiting[delivery]

    def _remember(self, entry: Entry) -> None:
        row = entry.row
        if row.kind == "message" and row.message_id is not None and entry.recipient is not None:
            self.owners.given(row.chat_id, row.message_id, entry.recipient)

    async def _conclude(self, entry: Entry, answer: dict[str, Any]) -> Outcome:
        exact = {"deliveryId": entry.delivery_id, "updateId": entry.row.update_id}
        receipt = {name: answer["receipt"].get(name) for name in exact}
        if receipt != exact or type(receipt["updateId"]) is not int:
            return await self._wrong(entry)
        if answer["settlement"] == "accepted":
            self.settle(entry)
            return Outcome.OVER
        reason = str(answer.get("reason") or "the worker gave no reason")[:300]
        if answer["settlement"] == "terminal-rejected":
            return await self.fail(entry, reason)
        return await self._again(entry, "retryable", release=True)

    async def _wrong(self, entry: Entry) -> Outcome:
        try:
            count = await self.journal.wrong_receipt(entry.seq)
        except StoreError as error:
            return self._unstored(entry, error)
        if count >= WRONG_RECEIPTS:
            return await self.fail(entry, "the worker cannot answer for it")
        return await self._again(entry, "wrong-receipt", release=False)

    async def _again(self, entry: Entry, reason: str, release: bool) -> Outcome:
        delay = retry_delay(entry.attempts)
        entry.attempts += 1
        entry.not_before = self.clock.seconds() + delay
        try:
            await self.journal.retry(
                entry.seq, self.now_ms() + round(delay * 1000), reason, release
            )
        except StoreError as error:
            return self._unstored(entry, error)
        if release:
            entry.recipient = entry.delivery_id = None
        return Outcome.AGAIN

    async def fail(self, entry: Entry, reason: str) -> Outcome:
        """Give a row up, visibly."""
        try:
            await self.journal.fail(entry.seq, reason)
        except StoreError as error:
            return self._unstored(entry, error)
        self.failed(entry, reason)
        return Outcome.OVER

    def _unstored(self, entry: Entry, error: StoreError) -> Outcome:
        """The store refused: what it holds stays true, so the pin stays, and it is tried again."""
        if isinstance(error, Fenced):
            return Outcome.GIVEN_UP
        self._log.error("the journal cannot be written: {reason}", reason=str(error))
        entry.not_before = self.clock.seconds() + retry_delay(entry.attempts)
        entry.attempts += 1
        return Outcome.AGAIN

    # --- settling ----------------------------------------------------------------------------

    def settle(self, entry: Entry) -> None:
        """Have a row settled, together with others that come meanwhile."""
        self._remember(entry)
        self._settling.add(entry)

    @deferred
    async def _settle(self, entries: list[Entry]) -> None:
        await self.journal.settle([entry.seq for entry in entries])
        self.settled({entry.recipient for entry in entries if entry.recipient is not None})

    def stop(self) -> Deferred[None]:
        """Fire when no settlement is being written any more."""
        return self._settling.stop()


def _still(follower: IFollower) -> bool:
    registration = follower.link.registration or {}
    return registration.get("bindingKey") == follower.binding_key
