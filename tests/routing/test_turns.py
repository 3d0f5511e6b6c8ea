"""Questions come through although answers wait all the time; activity does not hold them up."""

from __future__ import annotations

from typing import Any

from pitelegram.botapi.limits import SendGate
from pitelegram.errors import Refusal
from pitelegram.routing.turns import HELD, Turns
from tests.routing.support import ALPHA, OWNER
from tests.routing.test_busleader import BusLeaderCase, sent

BUTTONS: dict[str, Any] = {"inline_keyboard": [[{"text": "x", "callback_data": "dlg:x:y"}]]}


class TurnsTests(BusLeaderCase):
    """Two followers under the real budget."""

    def setUp(self) -> None:
        """Sixty answers wait."""
        super().setUp()
        self.real = self.bus_leader.gate = SendGate(self.clock)
        self.bus_leader.turns = Turns(self.real, self.clock)
        self.api.answer = sent(70)
        self.answers = [self.real.wait(OWNER) for _ in range(68)]

    def ask(self, who: str = "a", **more: Any) -> bool:
        """Send something; whether it went out."""
        thread = {"a": 11, "b": 12}[who]
        self.api.answer = sent(70, thread)
        link: Any = self.clients[who].link
        calling = link.call_api("sendMessage", {**self.place(thread), **more})
        codes: list[str] = []
        calling.addErrback(
            lambda failure: codes.append(failure.trap(Refusal) and failure.value.code)
        )
        self.wire.flush()
        self.successResultOf(calling)
        self.assertIn(codes, ([], ["rate-limited"]))
        return not codes

    def second(self) -> None:
        """A second passes, and one more answer comes."""
        self.answers.append(self.real.wait(OWNER))
        self.clock.pump([0.1] * 10)

    def test_overload(self) -> None:
        """Its turn comes after the answers that waited before it; what has no buttons waits on."""
        tries = 0
        while not self.ask(reply_markup=BUTTONS):
            self.assertFalse(self.ask("b"))
            tries += 1
            self.assertLess(tries, 70)
            self.second()
        self.assertGreater(tries, 55)
        self.assertFalse(self.ask(reply_markup=BUTTONS))
        self.assertLess(sum(answer.called for answer in self.answers), len(self.answers))

    def test_each_has_one_place(self) -> None:
        """Asking again and again takes no second place, and nobody takes another's."""
        for _ in range(10):
            self.assertFalse(self.ask("a", reply_markup=BUTTONS))
            self.assertFalse(self.ask("b", reply_markup=BUTTONS))
        went = []
        for _ in range(75):
            self.second()
            went += [who for who in "ab" if self.ask(who, reply_markup=BUTTONS)]
        self.assertEqual(went, ["a", "b"])

    def test_not_used(self) -> None:
        """A turn that nobody takes is over after a while; budget that nobody wants costs nothing."""
        self.assertFalse(self.ask(reply_markup=BUTTONS))
        for _ in range(62 + int(HELD)):
            self.clock.advance(1)
            self.wire.flush()
        self.assertEqual(self.real.blocked_for(OWNER), 0.0)
        turns = self.bus_leader.turns
        assert turns is not None
        self.assertFalse(turns.take(ALPHA, OWNER))
        self.assertTrue(self.ask(reply_markup=BUTTONS))
