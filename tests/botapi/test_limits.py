"""Rates, by the clock."""

from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from pitelegram.botapi.interfaces import ISendGate
from pitelegram.botapi.limits import SendGate


class SendGateTests(SynchronousTestCase):
    """Who may send when."""

    def setUp(self) -> None:
        """A gate."""
        self.clock = Clock()
        self.clock.advance(1_700_000_000.123)
        self.gate = SendGate(self.clock)

    def ask(self, count: int, chat: int = 1, weight: str = "send") -> list[Deferred[None]]:
        """Ask so many times."""
        return [self.gate.wait(chat, weight) for _ in range(count)]

    @staticmethod
    def gone(waits: list[Deferred[None]]) -> int:
        """How many may go."""
        return sum(1 for wait in waits if wait.called)

    def test_provides(self) -> None:
        """It keeps the interface."""
        self.assertTrue(verifyObject(ISendGate, self.gate))

    def test_burst_then_rate(self) -> None:
        """Eight at once, then one a second."""
        waits = self.ask(12)
        self.assertEqual(self.gone(waits), 8)
        for expected in (9, 10, 11, 12):
            self.clock.advance(0.5)
            self.assertEqual(self.gone(waits), expected - 1)
            self.clock.advance(0.5)
            self.assertEqual(self.gone(waits), expected)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_chats_are_apart(self) -> None:
        """One chat's burst leaves another's alone."""
        self.ask(8)
        self.assertEqual(self.gone(self.ask(8, chat=2)), 8)

    def test_all_chats_together(self) -> None:
        """Thirty a second over all."""
        waits = [self.gate.wait(chat) for chat in range(40)]
        self.assertEqual(self.gone(waits), 30)
        self.clock.pump([0.05, 0.055])
        self.assertEqual(self.gone(waits), 33)
        self.clock.pump([0.05] * 10)
        self.assertEqual(self.gone(waits), 40)

    def test_flood(self) -> None:
        """After 429 nothing goes to that chat before its time; other chats go on."""
        self.gate.flood(1, 137)
        waits = [self.gate.wait(1, weight) for weight in ("send", "edit", "action")]
        self.clock.advance(136.9)
        self.assertEqual(self.gone(waits), 0)
        self.assertEqual(self.gone(self.ask(1, chat=2)), 1)
        self.clock.advance(0.1)
        self.assertEqual(self.gone(waits), 2)
        self.clock.advance(0.2)
        self.assertEqual(self.gone(waits), 3)

    def test_typing_beside_waiting_messages(self) -> None:
        """Messages that wait for their own budget keep no action waiting; a flood keeps all."""
        waits = self.ask(10)
        self.assertEqual(self.gone(waits), 8)
        self.assertEqual(self.gate.blocked_for(1, "action"), 0)
        self.assertEqual(self.gone(self.ask(1, weight="action")), 1)
        self.gate.flood(1, 5)
        self.assertGreater(self.gate.blocked_for(1, "action"), 5)

    def test_slow_after_a_flood(self) -> None:
        """When a flood limit is over two go at once, then one a second: the burst was too much."""
        self.gate.flood(1, 10)
        waits = self.ask(4)
        self.clock.advance(10)
        self.assertEqual(self.gone(waits), 2)
        self.clock.advance(1)
        self.assertEqual(self.gone(waits), 3)

    def test_flood_while_waiting(self) -> None:
        """A flood holds back who waits already, and a shorter one shortens nothing."""
        waits = self.ask(9)
        self.gate.flood(1, 10)
        self.gate.flood(1, 2)
        self.clock.advance(9)
        self.assertEqual(self.gone(waits), 8)
        self.clock.advance(1)
        self.assertEqual(self.gone(waits), 9)

    def test_order(self) -> None:
        """The more important first, each kind in order."""
        self.gate.flood(1, 5)
        order: list[str] = []
        names = "action1 draft1 minor-edit1 minor1 edit1 send1 edit2 send2".split()
        for name in names:
            self.gate.wait(1, name[:-1]).addCallback(lambda _, name=name: order.append(name))
        self.clock.pump([5, *[0.5] * 40])
        wanted = "send1 send2 edit1 edit2 minor1 minor-edit1 draft1 action1".split()
        self.assertEqual(order, wanted)

    def test_edits(self) -> None:
        """Edits count as messages, and only so many of them go."""
        edits = self.ask(8, weight="edit")
        self.assertEqual(self.gone(edits), 8)
        self.assertFalse(self.gate.wait(1).called)
        self.clock.advance(100)
        edits = self.ask(40, weight="edit")
        self.clock.pump([0.5] * 120)
        self.assertLessEqual(self.gone(edits), 31)
        self.assertGreaterEqual(self.gone(edits), 28)

    def test_sends_pass_waiting_edits(self) -> None:
        """A message does not queue behind an edit that has used its share."""
        self.ask(8, weight="edit")
        self.clock.advance(4)
        edits = self.ask(6, weight="edit")
        self.assertLess(self.gone(edits), 6)
        self.clock.advance(8)
        send = self.gate.wait(1)
        self.clock.advance(1)
        self.assertTrue(send.called)

    def test_actions(self) -> None:
        """Chat actions are no messages; twenty at once, then five a second."""
        actions = self.ask(50, weight="action")
        self.assertEqual(self.gone(actions), 20)
        self.assertEqual(self.gone(self.ask(8)), 8)
        self.clock.advance(2)
        self.assertEqual(self.gone(actions), 30)

    def test_actions_leave_the_rest(self) -> None:
        """Typing in many chats takes no more than its part of what all chats have together."""
        actions = [self.gate.wait(chat, "action") for chat in range(40)]
        self.assertEqual(self.gone(actions), 20)
        self.assertEqual(self.gone(self.ask(8, chat=99)), 8)

    def test_spare(self) -> None:
        """What nobody waits for leaves a part of the burst to what somebody does."""
        for weight, gone in (("draft", 4), ("minor", 6), ("minor-edit", 6)):
            self.clock.advance(100)
            waits = self.ask(8, weight=weight)
            self.assertEqual(self.gone(waits), gone, weight)
            self.assertEqual(self.gone(self.ask(8 - gone)), 8 - gone, weight)
            last = self.gate.wait(1)
            self.assertFalse(last.called)
            for wait in (*waits[gone:], last):
                wait.cancel()
                self.failureResultOf(wait, CancelledError)

    def test_edits_of_menus(self) -> None:
        """Activity that is edited all the time leaves edits to menus."""
        minor = self.ask(100, weight="minor-edit")
        self.clock.pump([0.5] * 40)
        self.assertLess(self.gone(minor), 16)
        self.assertEqual(self.gone(self.ask(2, weight="edit")), 2)

    def test_drafts(self) -> None:
        """Thirty a minute, however few messages there are."""
        drafts = self.ask(200, weight="draft")
        self.clock.pump([0.5] * 120)
        self.assertLessEqual(self.gone(drafts), 35)
        self.assertGreaterEqual(self.gone(drafts), 30)

    def test_blocked_for(self) -> None:
        """It tells how long, and takes nothing."""
        self.assertEqual(self.gate.blocked_for(1), 0)
        self.ask(8)
        self.assertAlmostEqual(self.gate.blocked_for(1), 1, 3)
        self.assertEqual(self.gate.blocked_for(1, "action"), 0)
        self.gate.flood(1, 60)
        self.assertAlmostEqual(self.gate.blocked_for(1, "action"), 60.2, 3)
        self.assertEqual(self.gate.blocked_for(2), 0)

    def test_cancel(self) -> None:
        """Who cancels gives the place to the next."""
        waits = self.ask(10)
        waits[8].cancel()
        self.failureResultOf(waits[8], CancelledError)
        self.clock.advance(1)
        self.assertTrue(waits[9].called)

    def test_forgets_chats(self) -> None:
        """A chat that was quiet for long costs no memory."""
        for chat in range(100):
            self.gate.wait(chat)
            self.clock.advance(20)
        self.assertLess(len(self.gate._chats), 3)
