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
        """Messages go before edits, edits before actions, each kind in order."""
        self.gate.flood(1, 5)
        order: list[str] = []
        for name in ("action1", "edit1", "send1", "edit2", "send2"):
            self.gate.wait(1, name[:-1]).addCallback(lambda _, name=name: order.append(name))
        self.clock.advance(5)
        self.assertEqual(order, ["send1", "send2", "edit1", "edit2", "action1"])

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

    def test_actions_are_free(self) -> None:
        """A chat action costs nothing."""
        self.assertEqual(self.gone(self.ask(50, weight="action")), 50)
        self.assertEqual(self.gone(self.ask(8)), 8)

    def test_blocked_for(self) -> None:
        """It tells how long, and takes nothing."""
        self.assertEqual(self.gate.blocked_for(1), 0)
        self.ask(8)
        self.assertAlmostEqual(self.gate.blocked_for(1), 1, 3)
        self.assertEqual(self.gate.blocked_for(1, "action"), 0)
        self.gate.flood(1, 60)
        self.assertAlmostEqual(self.gate.blocked_for(1, "action"), 60, 3)
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
