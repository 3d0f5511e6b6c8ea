"""A Thread that the user closed: what is for it waits until he opens it again."""

from __future__ import annotations

from pitelegram.delivery.service import DeliveryService
from pitelegram.errors import Refused
from pitelegram.targets import TelegramTarget
from tests.delivery.errors import SEND, refused
from tests.delivery.world import OWNER, DeliveryCase, text_call

CLOSED = "TOPIC_CLOSED"
DAY = 24 * 3600


class ClosedTests(DeliveryCase):
    """Telegram refuses messages for the Thread of C{a}."""

    def setUp(self) -> None:
        """Begin with a closed Thread."""
        super().setUp()
        self.told: list[tuple[str, TelegramTarget]] = []
        self.service = self.make()
        self.start()
        self.api.script(SEND, refused(CLOSED))

    def make(self) -> DeliveryService:
        """With somebody who is told."""
        service = super().make()

        async def closed(binding_key: str, target: TelegramTarget) -> None:
            self.told.append((binding_key, target))

        if hasattr(self, "told"):
            service.sender._transmitter._closed = closed
        return service

    def test_waits_and_goes_on(self) -> None:
        """Nothing is lost, dead or sent elsewhere, and no Thread counts as lost; then all of it comes."""
        self.submit("a", "1", text_call("a1"), text_call("a2"))
        self.submit("a", "2", text_call("a3"))
        self.submit("b", "3", text_call("b1"))
        self.clock.pump([60] * 30)
        self.assertEqual(self.texts(), ["a1", "b1"])
        self.assertEqual(self.losses.asked, [])
        self.assertEqual(self.told, [("a", TelegramTarget(OWNER, 70))])
        self.assertEqual([item["state"] for item in self.outbox.items()], ["retry_wait", "pending"])
        self.successResultOf(self.service.intake.reopened("a"))
        self.clock.pump([1] * 10)
        self.assertEqual(self.texts(), ["a1", "b1", "a1", "a2", "a3"])
        self.assertEqual(self.outbox.items(), [])

    def test_kicks_do_not_hammer(self) -> None:
        """Whatever else happens, Telegram is asked once an hour at most."""
        self.submit("a", "1", text_call("a1"))
        self.api.script(SEND, *[refused(CLOSED)] * 50)
        for _ in range(50):
            self.service.intake.kick()
            self.clock.advance(60)
        self.assertEqual(len(self.sent()), 1)
        self.clock.pump([60] * 20)
        self.assertEqual(len(self.sent()), 2)

    def test_longer_than_anything_else_is_retried(self) -> None:
        """A Thread that was closed for two weeks gets its answer all the same, told by nobody."""
        self.submit("a", "1", text_call("a1"))
        self.api.script(SEND, *[refused(CLOSED)] * (14 * 24 - 1))
        for _ in range(14 * 24 * 2 + 4):
            self.clock.advance(1800)
        self.assertEqual((self.texts()[-1], self.outbox.items()), ("a1", []))

    def test_over_a_restart(self) -> None:
        """The next daemon waits too, and is told of the end of it."""
        self.submit("a", "1", text_call("a1"))
        self.restart()
        self.clock.pump([60] * 5)
        self.assertEqual(len(self.sent()), 1)
        self.successResultOf(self.service.intake.reopened("a"))
        self.clock.pump([1] * 3)
        self.assertEqual((len(self.sent()), self.outbox.items()), (2, []))

    def test_rich(self) -> None:
        """A rich message is not sent as plain text for that."""
        self.api.script(
            "sendRichMessage", Refused("sendRichMessage", 400, f"Bad Request: {CLOSED}")
        )
        rich = {"method": "sendRichMessage", "params": {"rich_message": {"markdown": "# x"}}}
        self.submit("b", "1", rich)
        self.assertEqual(len(self.api.made(SEND)), 0)
        self.successResultOf(self.service.intake.reopened("b"))
        self.clock.pump([1] * 3)
        self.assertEqual(len(self.api.made("sendRichMessage")), 2)

    def test_nothing_waits(self) -> None:
        """Opening a Thread for which nothing waits sends nothing."""
        for key in ("a", "b", "nobody"):
            self.successResultOf(self.service.intake.reopened(key))
        self.assertEqual(self.sent(), [])
