"""What was refused, what nobody knows, and Threads that are gone."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from pitelegram.errors import CertainlyUnsent, Refused, Uncertain
from pitelegram.testing.botapi import FakeBotApi
from tests.delivery.errors import SEND, lost_answer, refused
from tests.delivery.world import OWNER, START, DeliveryCase, text_call


class RefusedTests(DeliveryCase):
    """What Telegram definitely refused."""

    def test_dead_letter(self) -> None:
        """A refusal ends its delivery with a reason in one word; the next delivery goes on."""
        self.start()
        self.api.script(SEND, refused("message is too long, and secret words of the answer"))
        self.submit("a", "1", text_call("a1"), text_call("a2"))
        self.submit("a", "2", text_call("a3"))
        self.assertEqual(self.texts(), ["a1", "a3"])
        self.assertEqual(self.states(), {"1": "dead_letter"})
        self.assertEqual(self.outbox.items()[0]["reason"], "too-long")

    def test_plain_once(self) -> None:
        """Broken markup is sent once more as plain text."""
        self.start()
        self.api.script(SEND, refused("can't parse entities: unclosed start tag"))
        self.submit("a", "1", text_call("<b>1 &lt; 2</b>", parse_mode="HTML"), text_call("after"))
        self.assertEqual(self.texts(), ["<b>1 &lt; 2</b>", "1 < 2", "after"])
        self.assertNotIn("parse_mode", self.sent()[1].params)
        self.assertEqual(self.states(), {})

    def test_plain_refused_too(self) -> None:
        """When the plain text is refused as well, that is the end."""
        self.start()
        self.api.script(SEND, *(refused("can't parse entities: x") for _ in range(2)))
        self.submit("a", "1", text_call("*x", parse_mode="MarkdownV2"))
        self.assertEqual(self.states(), {"1": "dead_letter"})

    def test_keyboard(self) -> None:
        """What has a keyboard that Telegram refuses is sent without it, in its place, once."""
        self.start()
        keyboard = {"inline_keyboard": [[{"text": "b", "callback_data": "d"}]]}
        bold = [{"type": "bold", "offset": 0, "length": 1}]
        self.api.script(
            SEND, *(refused("inline keyboard button text must be non-empty") for _ in "12")
        )
        self.submit("a", "1", text_call("x", entities=bold, reply_markup=keyboard), text_call("y"))
        self.submit("a", "2", text_call("z"))
        self.assertEqual(self.texts(), ["x", "z"])
        first, second = (call.params for call in self.sent()[:2])
        self.assertEqual((first["text"], first["reply_markup"]), ("x", keyboard))
        self.assertEqual((second.get("entities"), second.get("reply_markup")), (bold, None))
        self.assertEqual(self.states(), {"1": "dead_letter"})
        self.submit("a", "3", text_call("n"))
        self.api.script(SEND, refused("BUTTON_DATA_INVALID"))
        self.submit("a", "4", text_call("q", reply_markup=keyboard), text_call("r"))
        self.assertEqual(self.texts()[-2:], ["q", "r"])
        self.assertEqual(self.states(), {"1": "dead_letter"})

    def test_keyboard_of_the_last_form(self) -> None:
        """Refused in any form, it is left out of that and of those behind it."""
        keyboard = {"inline_keyboard": [[{"text": "b", "callback_data": "d"}]]}
        bold = [{"type": "bold", "offset": 0, "length": 1}]
        self.start()
        for number, descriptions in enumerate(
            (
                ("can't parse entities", "BUTTON_DATA_INVALID"),
                ("BUTTON_DATA_INVALID", "can't parse entities"),
            ),
            1,
        ):
            last = text_call(f"plain{number}", reply_markup=keyboard)
            call = text_call(f"bold{number}", entities=bold, reply_markup=keyboard)
            self.api.script(SEND, *map(refused, descriptions))
            self.submit("a", str(number), {**call, "otherwise": [last]}, text_call("after"))
            self.assertEqual(self.texts()[-2:], [f"plain{number}", "after"])
        self.assertEqual(self.states(), {})

    def test_nothing_to_make_plain(self) -> None:
        """Text that was plain already is not sent a second time."""
        self.start()
        self.api.script(SEND, refused("can't parse entities: x"))
        self.submit("a", "1", text_call("x"))
        self.assertEqual((self.texts(), self.states()), (["x"], {"1": "dead_letter"}))

    def test_rich_falls_back(self) -> None:
        """A server without rich messages gets plain ones, cut to size, and is not asked again."""
        self.start()
        self.api.script("sendRichMessage", Refused("sendRichMessage", 404, "Not Found: method"))
        rich = {"method": "sendRichMessage", "params": {"rich_message": {"markdown": "w " * 4000}}}
        self.submit("a", "1", rich, text_call("after"))
        self.submit(
            "a",
            "2",
            {"method": "sendRichMessage", "params": {"rich_message": {"html": "<p>x</p>"}}},
        )
        self.clock.pump([1] * 10)
        lengths = [len(text) for text in self.texts()]
        self.assertEqual(self.texts()[-2:], ["after", "x"])
        self.assertEqual(sum(lengths[:-2]) + 1, len("w " * 4000) - 1)
        self.assertTrue(all(length <= 4096 for length in lengths))
        self.assertEqual(len(self.api.made("sendRichMessage")), 1)
        self.assertEqual(self.states(), {})

    def test_known_to_be_missing_costs_nothing(self) -> None:
        """A form that is known to be missing uses up nothing of the chat's budget."""
        self.start()
        rich = {"method": "sendRichMessage", "params": {"rich_message": {"markdown": "**x**"}}}
        self.api.script("sendRichMessage", Refused("sendRichMessage", 404, "Not Found"))
        self.submit("a", "0", rich)
        self.clock.advance(20)
        for number in range(1, 9):
            self.submit("a", str(number), rich)
        self.assertEqual(len(self.api.made("sendRichMessage")), 1)
        self.assertEqual(len(self.texts()), 9)

    def test_rich_refused(self) -> None:
        """Any 400 about a rich message is taken as one about its content."""
        self.start()
        self.api.script("sendRichMessage", Refused("sendRichMessage", 400, "Bad Request: NOPE"))
        rich = {"method": "sendRichMessage", "params": {"rich_message": {"markdown": "# x"}}}
        self.submit("a", "1", rich)
        self.submit("a", "2", rich)
        self.assertEqual(self.texts(), ["# x"])
        self.assertEqual(len(self.api.made("sendRichMessage")), 2)


class UncertainTests(DeliveryCase):
    """What nobody knows."""

    def test_parked(self) -> None:
        """A part without an answer is parked, the rest goes on, and it is never repeated."""
        self.start()
        self.api.script(SEND, lost_answer())
        self.submit("a", "1", text_call("a1"), text_call("a2"))
        self.submit("a", "2", text_call("a3"))
        self.clock.pump([600] * 10)
        self.assertEqual(self.texts(), ["a1", "a2", "a3"])
        self.assertEqual(self.states(), {"1": "uncertain"})
        self.restart()
        self.assertEqual(self.texts(), ["a1", "a2", "a3"])

    def test_again(self) -> None:
        """The operator's word sends what is uncertain, and only that, once more."""
        self.start()
        self.api.script(SEND, lost_answer())
        self.submit("a", "1", text_call("a1"), text_call("a2"))
        again = self.service.intake.again(self.key_of("1"))
        self.assertTrue(self.successResultOf(again))
        self.assertEqual(self.texts(), ["a1", "a2", "a1"])
        self.assertFalse(self.successResultOf(self.service.intake.again(self.key_of("1"))))
        self.assertFalse(self.successResultOf(self.service.intake.again("nothing")))

    def test_resend(self) -> None:
        """With the resend policy an uncertain part is repeated, after a restart too."""
        self.resend = True
        self.start()
        self.api.script(SEND, lost_answer(), Uncertain(SEND, 502, "Bad Gateway"))
        self.submit("a", "1", text_call("a1"))
        self.clock.pump([5] * 5)
        self.assertEqual((self.texts(), self.states()), (["a1"] * 3, {}))
        self.api.script(SEND, Deferred())
        self.submit("a", "2", text_call("a2"))
        self.restart()
        self.assertEqual((self.texts()[3:], self.states()), (["a2"] * 2, {}))

    def test_repeatable(self) -> None:
        """A method that may be repeated simply is."""
        call = {"method": "sendChatAction", "params": {"action": "typing"}}
        self.successResultOf(self.outbox.submit("a", "1", "final", "x", [call]))
        self.api.script("sendChatAction", lost_answer())
        self.start()
        self.clock.pump([5] * 3)
        self.assertEqual(len(self.api.made("sendChatAction")), 2)
        self.assertEqual(self.states(), {})

    def test_killed_while_sending(self) -> None:
        """What was under way when the leader was killed is uncertain, and is not sent again."""
        self.start()
        self.api.script(SEND, Deferred())
        self.submit("a", "1", text_call("a1"), text_call("a2"))
        self.assertEqual(self.states(), {"1": "sending"})
        self.restart()
        self.assertEqual(self.texts(), ["a1", "a2"])
        self.assertEqual(self.outbox.items()[0]["reason"], "interrupted")

    def test_killed_while_connecting(self) -> None:
        """What had no connection yet when the leader was killed was certainly not sent."""
        self.start()
        self.api.connecting = True
        self.submit("a", "1", text_call("a1"), text_call("a2"))
        self.assertEqual(self.states(), {"1": "pending"})
        self.api.connecting = False
        self.restart()
        self.assertEqual(self.texts(), ["a1", "a2"])
        self.assertEqual(self.states(), {})

    def test_outage_counts(self) -> None:
        """Attempts that never got a connection count, for the operator and for the seven days."""
        self.start()
        self.api.script(SEND, *(CertainlyUnsent(SEND, 0, "no route") for _ in range(3)))
        self.submit("a", "1", text_call("a1"))
        self.clock.pump([0.5] * 4)
        part = self.outbox.next_part("a")
        assert part is not None
        self.assertEqual(part.first_attempt_ms, START * 1000)
        self.assertEqual((part.state, part.attempts), ("retry_wait", 2))

    def test_unexpected_error(self) -> None:
        """An error of our own while sending is as uncertain as a lost answer."""
        self.start()
        self.api.script(SEND, ValueError("a bug"))
        self.submit("a", "1", text_call("a1"))
        self.assertEqual(self.states(), {"1": "uncertain"})
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)


class ThreadLossTests(DeliveryCase):
    """Threads that are gone."""

    def test_lost(self) -> None:
        """With the Thread confirmed lost the part waits for the new one and goes there."""
        self.losses.answer = "lost"
        self.start()
        self.api.script(SEND, refused("message thread not found"))
        self.submit("a", "1", text_call("a1"))
        self.clock.advance(1000)
        self.assertEqual(self.losses.asked, ["a"])
        self.assertEqual(self.texts(), ["a1"])
        self.give("a", 99)
        self.service.intake.kick("a")
        self.assertEqual([c.params["message_thread_id"] for c in self.sent()], [70, 99])
        self.assertEqual(self.states(), {})

    def test_alive_or_unknown(self) -> None:
        """A Thread that is alive, or about which nobody knows, is tried again with back-off."""
        for answer in ("alive", "unknown"):
            self.losses.answer = answer
            self.api.script(SEND, refused("TOPIC_DELETED"))
            if not self.service.running:
                self.start()
            self.submit("a", answer, text_call(answer))
            self.assertEqual(self.states(), {answer: "retry_wait"})
            self.clock.pump([1] * 5)
            self.assertEqual(self.states(), {})
        self.assertEqual(self.texts(), ["alive", "alive", "unknown", "unknown"])

    def test_misplaced(self) -> None:
        """A message that landed outside its Thread is taken back and sent to the new one."""
        self.losses.answer = "lost"
        self.start()
        self.api.script(SEND, {"message_id": 5})
        self.submit("a", "1", text_call("a1"))
        removed = self.api.made("deleteMessage")
        self.assertEqual([call.params["message_id"] for call in removed], [5])
        self.assertEqual(self.losses.asked, ["a"])
        self.assertIsNone(self.bindings.message_owner(OWNER, 5))
        self.give("a", 99)
        self.service.intake.kick("a")
        self.assertEqual(self.states(), {})
        self.assertEqual(self.sent()[-1].params["message_thread_id"], 99)

    def test_misplaced_album(self) -> None:
        """Of an album that landed elsewhere every message is taken back."""
        self.losses.answer = "lost"
        self.start()
        self.api.script("sendMediaGroup", [{"message_id": 5}, {"message_id": 6}])
        media = [{"type": "photo", "media": "id1"}, {"type": "photo", "media": "id2"}]
        self.submit("a", "1", {"method": "sendMediaGroup", "params": {"media": media}})
        removed = self.api.made("deleteMessages")
        self.assertEqual([call.params["message_ids"] for call in removed], [[5, 6]])

    def test_misplaced_for_good(self) -> None:
        """If it cannot be taken back it counts as delivered there; the Thread is examined."""
        self.losses.answer = "lost"
        self.start()
        self.api.script(SEND, {"message_id": 5})
        self.api.script("deleteMessage", refused("message can't be deleted"))
        self.submit("a", "1", text_call("a1"))
        self.assertEqual(self.states(), {})
        self.assertEqual(self.losses.asked, ["a"])
        self.assertEqual(self.bindings.message_owner(OWNER, 5), ("a", True))

    def test_misplaced_again_and_again(self) -> None:
        """A server that never says the Thread does not make messages appear and vanish for ever."""
        self.start()
        self.api.script(SEND, *({"message_id": number} for number in range(1, 9)))
        self.submit("a", "1", text_call("a1"))
        self.clock.pump([10] * 20)
        self.assertEqual((len(self.texts()), self.states()), (4, {}))
        self.assertEqual(len(self.api.made("deleteMessage")), 3)

    def test_deletion_without_answer(self) -> None:
        """Whether it was taken back is asked until it is known: deleted is not delivered."""
        self.losses.answer = "lost"
        cases = (("done", True), ("gone", refused("message to delete not found")))
        for name, found in cases:
            self.api = FakeBotApi()
            self.service = self.make()
            self.give("a", 70)
            self.start()
            self.api.script(SEND, {"message_id": 5})
            lost = Uncertain("deleteMessage", 502, "x")
            unsent = CertainlyUnsent("deleteMessage", 429, "x", 7.0)
            self.api.script("deleteMessage", lost, unsent, found)
            self.submit("a", name, text_call("a1"))
            self.assertEqual(self.states(), {name: "sending"})
            self.clock.pump([1] * 20)
            self.assertEqual(len(self.api.made("deleteMessage")), 3)
            self.assertEqual(self.states(), {name: "retry_wait"})
            self.give("a", 99)
            self.service.intake.kick("a")
            self.assertEqual([c.params["message_thread_id"] for c in self.sent()], [70, 99])
            self.assertEqual(self.states(), {})
            self.stop()

    def test_deletion_of_unknown_fate(self) -> None:
        """Where nobody can tell, the part is parked and shown; it is neither lost nor doubled."""
        self.losses.answer = "lost"
        self.start()
        self.api.script(SEND, {"message_id": 5})
        self.api.script("deleteMessage", *(Uncertain("deleteMessage", 502, "x") for _ in range(9)))
        self.submit("a", "1", text_call("a1"))
        self.clock.pump([5] * 30)
        self.assertEqual(self.states(), {"1": "uncertain"})
        self.assertEqual(self.outbox.items()[0]["reason"], "misplaced")
        self.assertEqual((self.losses.asked, self.texts()), (["a"], ["a1"]))

    def test_deletion_while_telegram_is_away(self) -> None:
        """What certainly could not be taken back is where it landed: delivered there."""
        self.start()
        self.api.script(SEND, {"message_id": 5})
        away = [CertainlyUnsent("deleteMessage", 0, "x") for _ in range(9)]
        self.api.script("deleteMessage", *away)
        self.submit("a", "1", text_call("a1"))
        self.clock.pump([5] * 30)
        self.assertEqual((self.states(), self.texts()), ({}, ["a1"]))

    def test_stopped_while_it_is_taken_back(self) -> None:
        """A stop does not wait for Telegram; what became of the message nobody knows then."""
        self.start()
        self.api.script(SEND, {"message_id": 5})
        self.api.script("deleteMessage", *(CertainlyUnsent("deleteMessage", 0, "x") for _ in "123"))
        self.submit("a", "1", text_call("a1"))
        self.stop()
        tried = len(self.api.made("deleteMessage"))
        self.clock.pump([5] * 10)
        self.assertEqual(len(self.api.made("deleteMessage")), tried)
        self.service = self.make()
        self.start()
        self.assertEqual(self.outbox.items()[0]["reason"], "interrupted")
        self.assertEqual(self.texts(), ["a1"])
