"""Answers and settlements, written together and until they are on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from twisted.internet.defer import Deferred, DeferredLock, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from pitelegram.bridge import labels
from pitelegram.bridge.answer import button_call, deliveries, notice
from pitelegram.bridge.composing import raw_answer
from pitelegram.errors import StoreError
from pitelegram.kernel.backoff import Backoff
from pitelegram.kernel.deferring import deferred, sleep, spawn
from pitelegram.kernel.repeats import Repeats
from pitelegram.store.rows import InboxRow
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.runs import Handed, answer_key


def short_id(delivery_id: str) -> str:
    """Return 32 hex digits that stand for a delivery id in callback data and notice ids."""
    return hashlib.sha256(delivery_id.encode()).hexdigest()[:32]


def uncertain_notice(row: InboxRow, now_ms: int, why: str) -> list[dict[str, Any]]:
    """Return the notice about a prompt of unknown fate, with its C{🔁 Send again}."""
    key = short_id(row.delivery_id)
    text = labels.uncertain(row.prompt or "", why)
    call = button_call(text, labels.SEND_AGAIN, labels.AGAIN_PREFIX + key)
    return deliveries(f"uncertain-{key}", "notice", [call], now_ms)


class Settler:
    """Commits what a run came to.

    A store that refuses (a full disk) is tried again until it does not: an answer exists nowhere
    else.

    @param stored: called after each commit that left an answer to submit.
    @ivar busy: how many settlements are on their way.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        random: Random,
        inbox: IInbox,
        stored: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._random = random
        self._inbox = inbox
        self._stored = stored
        self._in_order = DeferredLock()  # what Pi says, in the order in which it said it
        self._repeats = Repeats(clock.seconds)
        self.busy = 0

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return int(self._clock.seconds() * 1000)

    def settle(
        self, run_id: str, done: Sequence[Handed], text: str, footer: str | None = None
    ) -> Deferred[None]:
        """Settle the rows of a run with its answer; fires after the commit."""
        ordered = sorted(done, key=lambda handed: handed.row.seq)
        key = answer_key([(each.rpc_id, each.run_id) for each in ordered]) if ordered else run_id
        return self.finish([each.row for each in ordered], f"final-{key}", text, footer)

    def finish(
        self, rows: Sequence[InboxRow], delivery_id: str, text: str, footer: str | None = None
    ) -> Deferred[None]:
        """Settle rows with Pi's words as their answer, to be rendered afterwards."""
        anchor = next((row.message_id for row in rows if row.source == "telegram"), None)
        origin = "telegram" if anchor is not None else "local"
        spoken = any((row.content or {}).get("voice") for row in rows)
        raw = raw_answer(delivery_id, text, self.now_ms(), anchor, footer, origin, spoken=spoken)
        seqs = [row.seq for row in rows]
        return self._in_order.run(self._insist, lambda: self._inbox.settle(seqs, [raw]))

    def commit(self, seqs: Sequence[int], answers: Sequence[dict[str, Any]]) -> Deferred[None]:
        """Settle rows together with these deliveries."""
        return self._insist(lambda: self._inbox.settle(seqs, answers))

    def comment(self, run_id: str, number: int, text: str) -> Deferred[None]:
        """Have something said before the answer, silently; a known run and number is said once."""
        raw = raw_answer(f"comment-{run_id}-{number}", text, self.now_ms(), silent=True)
        return self._in_order.run(
            self._insist,
            lambda: self._inbox.add_answer(raw["delivery_id"], raw["kind"], raw["delivery"]),
        )

    def unhand(self, seq: int) -> Deferred[None]:
        """Hold a row again that Pi did not take."""
        return self._insist(lambda: self._inbox.unhand(seq))

    def lost(self, done: Sequence[Handed], why: str = labels.PI_LOST_IT) -> Deferred[None]:
        """Nobody can tell what became of these: one notice with its button for each."""
        return self.uncertain([handed.row for handed in done], why)

    def uncertain(self, rows: Sequence[InboxRow], why: str) -> Deferred[None]:
        """Make rows C{uncertain}, with one notice and its button for each."""
        now = self.now_ms()
        answers = [answer for row in rows for answer in uncertain_notice(row, now, why)]
        return self._insist(lambda: self._inbox.uncertain([row.seq for row in rows], answers))

    def say(self, notice_id: str, text: str, created_ms: int | None = None) -> Deferred[None]:
        """Store a notice by itself; a known id is stored once.  Failures are only logged.

        What was said last, and lately, is not said again.
        """
        if self._repeats.again("thread", text):
            return succeed(None)
        (answer, *_) = notice(notice_id, text, created_ms or self.now_ms())
        adding = self._inbox.add_answer(answer["delivery_id"], "notice", answer["delivery"])
        adding.addErrback(self._unsaid)
        adding.addCallback(lambda _: self._stored())
        return spawn(self._log, "storing a notice", adding)

    def _unsaid(self, failure: Failure) -> Failure:
        """What could not be stored was not said."""
        self._repeats.spoken("thread")
        return failure

    @deferred
    async def _insist(self, write: Callable[[], Deferred[None]]) -> None:
        backoff = Backoff(0.5, 30.0, self._random)
        self.busy += 1
        try:
            while True:
                try:
                    await write()
                    break
                except StoreError as error:
                    self._log.error("an answer could not be stored: {reason}", reason=str(error))
                    await sleep(self._clock, backoff.next())
        finally:
            self.busy -= 1
        self._repeats.spoken("thread")
        self._stored()
