"""Sending: order, targets, retries, and the end of the process."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from zope.interface.verify import verifyObject

from pitelegram.delivery.interfaces import IDelivery, IThreadLoss
from pitelegram.delivery.sender import Standing
from pitelegram.delivery.transmitter import RETRIED_FOR_MS
from pitelegram.errors import CertainlyUnsent, Refused, StoreError, Unauthorized
from pitelegram.targets import TelegramTarget
from tests.delivery.errors import SEND, unreachable
from tests.delivery.world import OWNER, DeliveryCase, text_call


class OrderTests(DeliveryCase):
    """Order, targets and what is remembered."""

    def test_interfaces(self) -> None:
        """The intake and the stand-in for Thread losses have their interfaces' methods."""
        self.assertTrue(verifyObject(IDelivery, self.service.intake))
        self.assertTrue(verifyObject(IThreadLoss, self.losses))

    def test_sent_in_order(self) -> None:
        """Parts and deliveries of a binding arrive in order, in its Thread."""
        self.start()
        self.submit("a", "1", text_call("a1"), text_call("a2"))
        self.submit("a", "2", text_call("a3"))
        self.submit("b", "1", text_call("b1"))
        self.assertEqual(self.texts(), ["a1", "a2", "a3", "b1"])
        places = [(c.params["chat_id"], c.params["message_thread_id"]) for c in self.sent()]
        self.assertEqual(places, [(OWNER, 70)] * 3 + [(OWNER, 80)])
        self.assertEqual(self.states(), {})

    def test_one_at_a_time(self) -> None:
        """While one call of a binding is open the next waits; another binding does not."""
        self.start()
        first: Deferred[Any] = Deferred()
        self.api.script(SEND, first)
        self.submit("a", "1", text_call("a1"), text_call("a2"))
        self.submit("a", "2", text_call("a3"))
        self.submit("b", "1", text_call("b1"))
        self.assertEqual(self.texts(), ["a1", "b1"])
        first.callback({"message_id": 5, "message_thread_id": 70})
        self.assertEqual(self.texts(), ["a1", "b1", "a2", "a3"])

    def test_messages_are_remembered(self) -> None:
        """A sent message belongs to its binding."""
        self.start()
        self.api.script(SEND, {"message_id": 5, "message_thread_id": 70})
        self.submit("a", "1", text_call("a1"))
        self.assertEqual(self.bindings.message_owner(OWNER, 5), ("a", True))

    def test_waits_for_a_target(self) -> None:
        """Without a Thread a delivery waits, and goes to the one that the binding gets."""
        self.lose("a")
        self.start()
        self.assertEqual(self.submit("a", "1", text_call("a1")), "accepted")
        self.clock.advance(3600)
        self.assertEqual(self.texts(), [])
        self.give("a", 71)
        self.service.intake.kick("a")
        self.assertEqual(self.sent()[0].params["message_thread_id"], 71)

    def test_chat_without_threads(self) -> None:
        """In classic mode the chat itself is the target."""
        self.give("a", None)
        self.start()
        self.submit("a", "1", text_call("a1"))
        self.assertNotIn("message_thread_id", self.sent()[0].params)
        self.assertEqual(self.states(), {})

    def test_destination(self) -> None:
        """Reports go where they are sent to, even when their binding has no target of its own."""
        self.lose("a")
        self.destination = lambda key: TelegramTarget(OWNER)
        self.service = self.make()
        self.start()
        self.submit("a", "1", text_call("a1"))
        self.assertEqual(self.sent()[0].params, {"chat_id": OWNER, "text": "a1"})

    def test_only_the_owner(self) -> None:
        """Nothing goes to a chat that is not the paired owner's."""
        self.start()
        self.owner = 8
        self.submit("a", "1", text_call("a1"))
        self.assertEqual(self.texts(), [])
        self.owner = OWNER
        self.service.intake.kick()
        self.assertEqual(self.texts(), ["a1"])

    def test_rate(self) -> None:
        """Beyond a burst one message a second goes to a chat, whichever binding it is from."""
        self.start()
        self.submit("a", "1", *(text_call(f"a{number}") for number in range(12)))
        self.submit("b", "1", text_call("b"))
        before = len(self.texts())
        self.assertLess(before, 13)
        self.clock.advance(1)
        self.assertEqual(len(self.texts()), before + 1)
        self.clock.pump([1] * 12)
        self.assertEqual(sorted(self.texts()), sorted([f"a{n}" for n in range(12)] + ["b"]))

    def test_target_at_send_time(self) -> None:
        """A Thread that changes while a message waits for its turn gets that message."""
        self.start()
        self.gate.flood(OWNER, 30)
        self.submit("a", "1", text_call("a1"))
        self.give("a", 71)
        self.clock.pump([31, 1, 1])
        self.assertEqual([c.params["message_thread_id"] for c in self.sent()], [71])

    def test_reply_without_its_message(self) -> None:
        """A reply is sent even when the message it answers is gone."""
        self.start()
        self.submit("a", "1", text_call("x", reply_parameters={"message_id": 3}))
        self.assertEqual(
            self.sent()[0].params["reply_parameters"],
            {"message_id": 3, "allow_sending_without_reply": True},
        )


class UnsentTests(DeliveryCase):
    """What certainly did not arrive."""

    def test_retried_with_backoff(self) -> None:
        """An unreachable server is tried again, later and later, and nothing overtakes."""
        self.start()
        self.api.script(SEND, *(unreachable() for _ in range(4)))
        self.submit("a", "1", text_call("a1"))
        self.submit("a", "2", text_call("a2"))
        self.assertEqual(self.states(), {"1": "retry_wait", "2": "pending"})
        times = []
        while self.states():
            before = len(self.texts())
            self.clock.advance(0.25)
            if len(self.texts()) > before:
                times.append(self.clock.seconds())
        self.assertEqual(self.texts(), ["a1"] * 5 + ["a2"])
        gaps = [later - sooner for sooner, later in zip(times, times[1:], strict=False)]
        self.assertGreater(gaps[-1], gaps[0])

    def test_retry_after(self) -> None:
        """A flood limit holds the whole chat back for as long as the server said."""
        self.start()
        self.api.script(SEND, CertainlyUnsent(SEND, 429, "Too Many Requests", 37.0))
        self.submit("a", "1", text_call("a1"))
        self.submit("b", "1", text_call("b1"))
        self.clock.advance(36.5)
        self.assertEqual(self.texts(), ["a1"])
        self.clock.pump([1, 1])
        self.assertEqual(sorted(self.texts()), ["a1", "a1", "b1"])

    def test_seven_days(self) -> None:
        """After seven days of trying it is a dead letter; the operator may begin anew."""
        self.start()
        self.api.script(SEND, *(unreachable() for _ in range(2)))
        self.submit("a", "1", text_call("a1"))
        self.stop()
        self.clock.advance(RETRIED_FOR_MS / 1000 + 1)
        self.service = self.make()
        self.start()
        self.assertEqual(self.states(), {"1": "dead_letter"})
        self.assertEqual(self.outbox.items()[0]["reason"], "expired")
        self.api.script(SEND, unreachable())
        self.assertTrue(self.successResultOf(self.service.intake.again(self.key_of("1"))))
        self.clock.pump([5] * 20)
        self.assertEqual(self.states(), {})

    def test_blocked(self) -> None:
        """When the owner blocks the bot everything waits, and goes on when he unblocks it."""
        self.start()
        self.api.script(SEND, Refused(SEND, 403, "Forbidden: bot was blocked by the user"))
        self.submit("a", "1", text_call("a1"))
        self.submit("b", "1", text_call("b1"))
        self.clock.advance(10_000)
        self.service.intake.kick()
        self.assertEqual(self.texts(), ["a1"])
        self.assertEqual(self.outbox.counts()["pending"], 2)
        self.assertIs(self.service.sender.standing, Standing.BLOCKED)
        self.service.intake.blocked(False)
        self.assertEqual(sorted(self.texts()), ["a1", "a1", "b1"])
        self.service.intake.blocked(True)
        self.submit("a", "2", text_call("a2"))
        self.assertNotIn("a2", self.texts())

    def test_unauthorized(self) -> None:
        """A refused token is reported each time; the third in a row stops all calls; rows stay."""
        self.start()
        self.api.script(SEND, *(Unauthorized(SEND, 401, "Unauthorized") for _ in range(9)))
        self.submit("a", "1", text_call("a1"))
        self.clock.pump([5] * 20)
        self.assertEqual((self.refusals, len(self.texts())), (3, 3))
        self.assertIs(self.service.sender.standing, Standing.HALTED)
        self.service.intake.kick()
        self.service.intake.blocked(False)
        self.submit("a", "2", text_call("a2"))
        self.clock.pump([60] * 5)
        self.assertEqual(len(self.texts()), 3)
        self.assertEqual(self.states(), {"1": "retry_wait", "2": "pending"})

    def test_wrong_address(self) -> None:
        """A server without sendMessage is the wrong server: nothing becomes a dead letter."""
        self.start()
        self.api.script(SEND, Refused(SEND, 404, "Not Found"))
        self.submit("a", "1", text_call("a1"))
        self.assertEqual(self.states(), {"1": "retry_wait"})


class StopTests(DeliveryCase):
    """Ends and troubles of the process itself."""

    def test_stop_waits_for_an_answer(self) -> None:
        """A stop begins nothing new, waits for a running call, and its outcome is recorded."""
        self.start()
        answer: Deferred[Any] = Deferred()
        self.api.script(SEND, answer)
        self.submit("a", "1", text_call("a1"), text_call("a2"))
        stopping = self.service.stopService()
        self.assertNoResult(stopping)
        answer.callback({"message_id": 5, "message_thread_id": 70})
        self.successResultOf(stopping)
        self.assertEqual((self.texts(), self.states()), (["a1"], {"1": "pending"}))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_stop_does_not_wait_for_ever(self) -> None:
        """After its grace a stop cuts the call off; the part is uncertain at the next start."""
        self.start()
        self.api.script(SEND, Deferred())
        self.submit("a", "1", text_call("a1"))
        self.stop()
        self.assertEqual(self.states(), {"1": "sending"})
        self.service = self.make()
        self.start()
        self.assertEqual(self.states(), {"1": "uncertain"})

    def test_stop_while_waiting(self) -> None:
        """A stop ends back-off and rate waits at once and leaves no timer."""
        self.start()
        self.api.script(SEND, unreachable())
        self.submit("a", "1", text_call("a1"))
        self.gate.flood(OWNER, 100)
        self.submit("b", "1", text_call("b1"))
        self.successResultOf(self.service.stopService())
        self.clock.advance(1000)
        self.assertEqual(self.texts(), ["a1"])

    def test_outcome_on_a_full_disk(self) -> None:
        """An outcome that cannot be stored is stored as soon as there is space."""
        self.start()
        answer: Deferred[Any] = Deferred()
        self.api.script(SEND, answer)
        self.submit("a", "1", text_call("a1" * 100))
        opened = self.database._opened
        assert opened is not None
        opened.writer.execute("PRAGMA query_only = ON")
        answer.callback({"message_id": 5, "message_thread_id": 70})
        self.assertEqual(self.states(), {"1": "sending"})
        opened.writer.execute("PRAGMA query_only = OFF")
        self.clock.advance(2)
        self.assertEqual(self.states(), {})
        self.assertEqual(len(self.texts()), 1)

    def test_store_in_trouble(self) -> None:
        """When C{sending} cannot be committed nothing is sent; it goes on by itself later."""
        self.start()
        self.gate.flood(OWNER, 5)
        self.submit("a", "1", text_call("a1"))
        opened = self.database._opened
        assert opened is not None
        opened.writer.execute("PRAGMA query_only = ON")
        self.clock.advance(6)
        self.assertEqual(self.texts(), [])
        self.assertEqual(len(self.flushLoggedErrors(StoreError)), 1)
        opened.writer.execute("PRAGMA query_only = OFF")
        self.clock.advance(2)
        self.assertEqual((self.texts(), self.states()), (["a1"], {}))

    def test_overtaken(self) -> None:
        """Once another leader owns the store nothing more is sent."""
        self.start()
        self.gate.flood(OWNER, 5)
        self.submit("a", "1", text_call("a1"))
        opened = self.database._opened
        assert opened is not None
        opened.writer.execute("UPDATE leader SET epoch = 'another'")
        self.clock.pump([6, 60, 60])
        self.assertEqual(self.texts(), [])
        self.assertIs(self.service.sender.standing, Standing.HALTED)
