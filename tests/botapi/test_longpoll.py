"""The long poll, by the clock."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from pitelegram.botapi import phase
from pitelegram.botapi.interfaces import IPollingView, IUpdateSink
from pitelegram.botapi.longpoll import LongPoll
from pitelegram.errors import (
    CertainlyUnsent,
    Conflict,
    Fenced,
    Refused,
    StoreFull,
    Unauthorized,
    Uncertain,
)
from pitelegram.ids import UPDATE_KINDS
from pitelegram.kernel.machine import NoTransition
from pitelegram.testing.botapi import Call, FakeBotApi

CONFLICT = Conflict("getUpdates", 409, "Conflict: terminated by other getUpdates request")
WEBHOOK = Conflict("getUpdates", 409, "Conflict: can't use getUpdates while webhook is active")
UNAUTHORIZED = Unauthorized("getUpdates", 401, "Unauthorized")
BROKEN = Uncertain("getUpdates", 0, "HTTP 502 without a readable answer")


def update(number: int) -> dict[str, Any]:
    """Return an update."""
    return {"update_id": number, "message": {"message_id": number}}


@implementer(IUpdateSink)
class Sink:
    """A cursor and batches; C{answers} are given to C{accept}, success without."""

    def __init__(self) -> None:
        self.cursor: int | None = None
        self.batches: list[list[int]] = []
        self.answers: list[Any] = []

    def next_offset(self) -> int | None:
        """The cursor."""
        return self.cursor

    def accept(self, updates: Sequence[dict[str, Any]], next_offset: int) -> Deferred[None]:
        """Store."""
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        self.batches.append([each["update_id"] for each in updates])
        self.cursor = next_offset
        return answer if isinstance(answer, Deferred) else succeed(None)


class LongPollTests(SynchronousTestCase):
    """One poll at a time, nothing confirmed before it is stored."""

    def setUp(self) -> None:
        """A poller on a fake API whose open polls are counted."""
        self.clock = Clock()
        self.clock.advance(1_000_000)
        self.api = FakeBotApi()
        self.sink = Sink()
        self.events: list[str] = []
        self.owner: Any = True
        self.open: list[Deferred[Any]] = []
        self.skew = 0.0
        self.poll = LongPoll(
            self.api,
            self.sink,
            self.clock,
            Random(1),
            lambda: self.clock.seconds() + self.skew,
            on_conflict=lambda: self.events.append("conflict"),
            on_unauthorized=lambda: self.events.append("unauthorized"),
            on_fenced=lambda: self.events.append("fenced"),
            recheck=self._recheck,
        )

    def _recheck(self) -> Deferred[bool]:
        self.events.append("recheck")
        return self.owner if isinstance(self.owner, Deferred) else succeed(self.owner)

    def start(self, *answers: Any) -> None:
        """Script answers, then open polls, and start."""
        self.api.script("getUpdates", *answers, *([self._hold] * 50))
        self.poll.startService()

    def _hold(self, call: Call) -> Deferred[Any]:
        self.assertEqual(self.open, [], "two polls are open")
        waiting: Deferred[Any] = Deferred()
        self.open.append(waiting)
        return waiting.addBoth(self._closed)

    def _closed(self, outcome: Any) -> Any:
        self.open.clear()
        return outcome

    def params(self, index: int = -1) -> dict[str, Any]:
        """Parameters of a poll."""
        return self.api.made("getUpdates")[index].params

    def polls(self) -> int:
        """How many polls were made."""
        return len(self.api.made("getUpdates"))

    def view(self, key: str) -> Any:
        """A member of the snapshot."""
        return self.poll.snapshot()[key]

    def test_parameters(self) -> None:
        """Every call names everything; the offset is left out until there is a cursor."""
        self.start()
        self.assertTrue(verifyObject(IPollingView, self.poll))
        expected = {"limit": 100, "timeout": 25, "allowed_updates": list(UPDATE_KINDS)}
        self.assertEqual(self.params(), expected)
        self.assertEqual(self.api.calls[-1].timeout, 40)
        self.open[0].callback([update(5)])
        self.assertEqual(self.params(), {**expected, "offset": 6})

    def test_never_negative(self) -> None:
        """A cursor that would forget updates is not sent."""
        self.sink.cursor = -5
        self.start()
        self.assertNotIn("offset", self.params())

    def test_cursor_follows_the_batch(self) -> None:
        """The highest id of the last batch counts, even when it is lower than before."""
        self.sink.cursor = 900
        self.start([update(7), update(9), update(8)])
        self.assertEqual(self.sink.batches, [[7, 9, 8]])
        self.assertEqual(self.params()["offset"], 10)

    def test_stored_before_confirmed(self) -> None:
        """The next poll waits for the commit."""
        commit: Deferred[None] = Deferred()
        self.sink.answers = [commit]
        self.start([update(1)])
        self.assertEqual((self.polls(), self.view("phase")), (1, "persisting"))
        commit.callback(None)
        self.assertEqual((self.polls(), self.view("phase")), (2, "long-poll"))

    def test_empty_at_once(self) -> None:
        """A server that ends polls at once is not asked in a hot loop."""
        self.start(*([[]] * 5))
        self.assertEqual(self.polls(), 1)
        self.clock.advance(1)
        self.assertEqual(self.polls(), 2)

    def test_malformed(self) -> None:
        """Updates without an id are left out; an answer without any is a failure."""
        self.start([{"x": 1}, 5, update(3), {"update_id": True}])
        self.assertEqual(self.sink.batches, [[3]])
        self.open[0].callback({"not": "a list"})
        self.assertEqual(self.view("phase"), "retrying")
        self.clock.advance(1)
        self.open[0].callback([{"x": 1}, update(2**63 - 1), update(-1)])
        self.assertEqual((self.view("phase"), self.sink.cursor), ("retrying", 4))

    def test_fault_of_ours(self) -> None:
        """A poll that fails by a fault of this program is repeated like any that failed."""
        self.start(RuntimeError("a fault"), [update(1)])
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)
        self.assertEqual((self.view("phase"), self.polls()), ("retrying", 1))
        self.clock.advance(1)
        self.assertEqual(self.sink.batches, [[1]])

    def test_network_errors(self) -> None:
        """Failures are retried after 1 s, doubling to 30 s, and counted until a success."""
        self.start(*([BROKEN] * 8))
        waits = []
        for count in range(1, 9):
            self.assertEqual(self.view("consecutive_failures"), count)
            self.assertEqual(self.view("phase"), "retrying")
            before = self.clock.seconds()
            while self.polls() == count:
                self.clock.advance(0.25)
            waits.append(self.clock.seconds() - before)
        for wait, base in zip(waits, (1, 2, 4, 8, 16, 30, 30, 30), strict=True):
            self.assertTrue(base / 2 <= wait <= base + 0.25, f"{wait} for {base}")
        self.open[0].callback([])
        self.assertEqual(self.view("phase"), "long-poll")
        self.assertEqual(self.view("consecutive_failures"), 0)
        self.assertEqual(self.events, [])

    def test_retry_after(self) -> None:
        """429 is waited out in full."""
        self.start(CertainlyUnsent("getUpdates", 429, "Too Many Requests", 90.0))
        self.clock.advance(89.9)
        self.assertEqual(self.polls(), 1)
        self.clock.advance(0.2)
        self.assertEqual(self.polls(), 2)

    def _through_failures(self, seconds: float) -> None:
        end = self.clock.seconds() + seconds
        while self.clock.seconds() < end:
            self.clock.advance(0.5)

    def test_lasting_conflict(self) -> None:
        """Ten 409 in a row and a minute end polling, once; the phase says so until then."""
        self.start(*([CONFLICT] * 40))
        self.assertEqual(self.view("phase"), "conflict")
        self.assertIsNotNone(self.view("not_receiving_since_ms"))
        self._through_failures(600)
        self.assertEqual(self.events, ["conflict"])
        self.assertGreaterEqual(self.polls(), 10)
        self.assertLess(self.polls(), 20)
        self.assertEqual(self.view("phase"), "stopped")
        self.assertFalse(self.view("receiving"))

    def test_ten_conflicts_too_fast(self) -> None:
        """Ten are not enough before a minute is over."""
        self.skew = 0.0
        self.start(*([CONFLICT] * 12))
        while self.polls() < 10:
            before = self.clock.seconds()
            self.clock.advance(1)
            self.skew -= self.clock.seconds() - before - 0.1
        self.assertEqual(self.events, [])

    def test_conflict_passes(self) -> None:
        """A success between them begins the count anew."""
        self.start(*([CONFLICT] * 9), [], *([CONFLICT] * 9))
        self._through_failures(260)
        self.assertEqual(self.events, [])
        self.assertEqual(len(self.open), 1)

    def test_webhook(self) -> None:
        """A webhook's 409 waits for ever."""
        self.start(*([WEBHOOK] * 45))
        self._through_failures(900)
        self.assertEqual(self.events, [])
        self.assertEqual(self.view("phase"), "conflict")
        self.assertFalse(self.view("receiving"))

    def test_unauthorized(self) -> None:
        """Three 401 in a row end polling; a failure without an answer does not end the row."""
        self.start(UNAUTHORIZED, UNAUTHORIZED, BROKEN, UNAUTHORIZED)
        self._through_failures(60)
        self.assertEqual((self.events, self.polls()), (["unauthorized"], 4))
        self.assertEqual(self.view("phase"), "stopped")

    def test_unauthorized_passes(self) -> None:
        """Another refusal ends the row."""
        other = Refused("getUpdates", 404, "Not Found")
        self.start(UNAUTHORIZED, UNAUTHORIZED, other, UNAUTHORIZED, UNAUTHORIZED)
        self._through_failures(120)
        self.assertEqual(self.events, [])

    def test_full_disk(self) -> None:
        """A batch that cannot be stored is tried again; nothing is polled or confirmed."""
        self.sink.answers = [StoreFull("no space"), StoreFull("no space"), RuntimeError("odd")]
        self.start([update(4)])
        self.assertEqual((self.view("phase"), self.polls()), ("persisting", 1))
        self._through_failures(10)
        self.assertEqual(self.sink.batches, [[4]])
        self.assertEqual((self.polls(), self.params()["offset"]), (2, 5))
        self.assertEqual(self.view("phase"), "long-poll")
        self.assertEqual(len(self.flushLoggedErrors(StoreFull, RuntimeError)), 1)

    def test_fenced(self) -> None:
        """A newer leader ends polling at once."""
        self.sink.answers = [Fenced("newer")]
        self.start([update(4)])
        self.assertEqual((self.events, self.polls()), (["fenced"], 1))
        self.assertEqual(self.view("phase"), "stopped")
        self.successResultOf(self.poll.stopService())

    def test_stop(self) -> None:
        """Stopping cancels the open poll at once."""
        self.start()
        waiting = self.open[0]
        self.successResultOf(self.poll.stopService())
        self.assertTrue(waiting.called)
        self.assertEqual((self.open, self.view("phase")), ([], "stopped"))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_stop_while_waiting(self) -> None:
        """Stopping ends a pause."""
        self.start(BROKEN)
        self.successResultOf(self.poll.stopService())
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_stop_while_storing(self) -> None:
        """Stopping waits for a commit that is under way, and polls no more."""
        commit: Deferred[None] = Deferred()
        self.sink.answers = [commit]
        self.start([update(1)])
        stopping = self.poll.stopService()
        self.assertNoResult(stopping)
        commit.callback(None)
        self.successResultOf(stopping)
        self.assertEqual(self.polls(), 1)

    def test_stop_on_a_full_disk(self) -> None:
        """Stopping gives up a batch that cannot be stored: Telegram still has it."""
        self.sink.answers = [StoreFull("no space")] * 9
        self.start([update(1)])
        self.successResultOf(self.poll.stopService())
        self.assertEqual(self.sink.batches, [])
        self.flushLoggedErrors(StoreFull)

    def test_restart(self) -> None:
        """It can be started again."""
        self.start()
        self.successResultOf(self.poll.stopService())
        self.poll.startService()
        self.assertEqual((len(self.open), self.view("phase")), (1, "long-poll"))

    def test_discard(self) -> None:
        """A late owner throws the open poll away and polls again, unconfirmed."""
        self.start()
        first = self.open[0]
        self.poll.discard_current()
        self.assertTrue(first.called)
        self.assertEqual((self.polls(), len(self.open)), (2, 1))
        self.assertNotIn("offset", self.params())

    def test_discard_in_a_pause(self) -> None:
        """Without an open poll there is nothing to throw away, and the pause goes on."""
        self.start(BROKEN)
        self.poll.discard_current()
        self.assertEqual(self.polls(), 1)
        self.clock.advance(1)
        self.open[0].callback([update(1)])
        self.assertEqual(self.sink.batches, [[1]])

    def test_discard_on_a_full_disk(self) -> None:
        """A batch that is not stored yet is thrown away too."""
        self.sink.answers = [StoreFull("no space")]
        self.start([update(1)])
        self.poll.discard_current()
        self.assertEqual((self.sink.batches, self.polls()), ([], 2))
        self.flushLoggedErrors(StoreFull)

    def test_late_answer_of_an_owner(self) -> None:
        """After a jump of time the record is read first; an owner uses the answer."""
        self.start()
        self.skew += 49
        self.open[0].callback([update(1)])
        self.assertEqual((self.events, self.sink.batches), (["recheck"], [[1]]))

    def test_late_answer_of_a_former_owner(self) -> None:
        """Who is no owner any more uses nothing and polls no more."""
        self.owner = False
        self.start()
        self.skew += 49
        self.open[0].callback([update(1)])
        self.assertEqual((self.events, self.sink.batches), (["recheck", "fenced"], []))
        self.assertEqual((self.polls(), self.view("phase")), (1, "stopped"))

    def test_late_answer_and_no_record(self) -> None:
        """When the record cannot be read the answer is not used, and polling goes on."""
        self.owner = Deferred()
        self.start()
        self.skew += 49
        self.open[0].callback([update(1)])
        self.owner.errback(OSError("unreadable"))
        self.assertEqual((self.sink.batches, self.polls()), ([], 2))
        self.flushLoggedErrors(OSError)

    def test_discarded_while_asking(self) -> None:
        """An answer that is discarded while the record is read is not used."""
        self.owner = Deferred()
        self.start()
        self.skew += 49
        self.open[0].callback([update(1)])
        self.poll.discard_current()
        self.owner.callback(True)
        self.assertEqual((self.sink.batches, self.polls()), ([], 2))

    def test_punctual_answer(self) -> None:
        """An answer in time asks nobody."""
        self.start()
        self.clock.advance(48)
        self.open[0].callback([])
        self.assertEqual(self.events, [])

    def test_receiving(self) -> None:
        """Receiving: the first poll within 40 s, then the last completed one within 40 s."""
        self.assertFalse(self.view("receiving"))
        self.start()
        self.assertTrue(self.view("receiving"))
        self.assertIsNone(self.view("not_receiving_since_ms"))
        self.clock.advance(41)
        self.assertFalse(self.view("receiving"))
        self.assertEqual(self.view("not_receiving_since_ms"), 1_000_000_000)
        self.open[0].callback([])
        self.assertTrue(self.view("receiving"))
        self.assertEqual(self.view("last_success_ms"), 1_000_041_000)
        self.clock.advance(39)
        self.assertTrue(self.view("receiving"))
        self.clock.advance(2)
        self.assertFalse(self.view("receiving"))
        self.assertEqual(self.view("not_receiving_since_ms"), 1_000_041_000)

    def test_not_receiving_after_a_first_failure(self) -> None:
        """When the first poll fails, nothing was ever received."""
        self.start(BROKEN)
        self.assertFalse(self.view("receiving"))
        self.assertIsNone(self.view("last_success_ms"))

    def test_clock_step(self) -> None:
        """Setting the wall clock makes no jump."""
        self.start()
        self.skew -= 5000
        self.clock.advance(5010)
        self.open[0].callback([update(1)])
        self.assertEqual((self.events, self.sink.batches), ([], [[1]]))

    def test_cancelled_store(self) -> None:
        """A cancellation of the store is not taken for a full disk."""
        self.sink.answers = [CancelledError()]
        self.start([update(1)])
        self.assertEqual(self.view("phase"), "stopped")
        self.assertEqual(len(self.flushLoggedErrors(CancelledError)), 1)


class PhaseTests(SynchronousTestCase):
    """The table."""

    def test_every_phase_can_stop(self) -> None:
        """From anywhere STOP leads to C{stopped}."""
        phases = {name for name, _ in phase.TABLE} | set(phase.TABLE.values())
        for name in phases:
            self.assertEqual(phase.TABLE[name, phase.STOP], phase.STOPPED)

    def test_unknown_step(self) -> None:
        """A step that the table lacks is an error."""
        machine = phase.poll_phase()
        self.assertRaises(NoTransition, machine.feed, phase.STORED)
