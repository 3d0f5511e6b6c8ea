"""Parked and refused answers are announced with their button, and notices arrive once."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from zope.interface.verify import verifyObject

from pitelegram.delivery.announce import BUTTON
from pitelegram.errors import CertainlyUnsent, Refused, Uncertain
from pitelegram.routing.interfaces import INotices
from tests.delivery.world import OWNER, DeliveryCase, delivery, text_call

SEND = "sendMessage"


class AnnounceTests(DeliveryCase):
    """The button appears, whatever happens."""

    def announced(self) -> list[tuple[int, str]]:
        """Return Thread and callback data of every announcement that was tried."""
        found = []
        for call in self.sent():
            if "reply_markup" in call.params:
                ((button,),) = call.params["reply_markup"]["inline_keyboard"]
                self.assertEqual(button["text"], BUTTON)
                found.append((call.params["message_thread_id"], button["callback_data"]))
        return found

    def park(self, *answers: Any) -> str:
        """Let the one part of a delivery be uncertain; what follows is answered as given."""
        self.api.script(SEND, Uncertain(SEND, 502, "Bad Gateway"), *answers)
        self.submit("a", "1", text_call("a1"))
        return self.key_of("1")

    def test_uncertain(self) -> None:
        """A parked delivery is announced once, in its Thread, and within the button's limit."""
        self.start()
        key = self.park()
        self.service.intake.kick()
        self.assertEqual(self.announced(), [(70, f"ob:again:{key}")])
        self.assertLessEqual(len(f"ob:again:{key}"), 64)
        self.assertIn("server-error", self.sent()[-1].params["text"])

    def test_dead_letter(self) -> None:
        """A refused delivery is announced too."""
        self.start()
        self.api.script(SEND, Refused(SEND, 400, "Bad Request: chat not found"))
        self.submit("a", "1", text_call("a1"), text_call("a2"))
        self.assertEqual(len(self.announced()), 1)
        self.assertIn("chat-not-found", self.sent()[-1].params["text"])

    def test_hold(self) -> None:
        """What is held back for safety is said, without a button; nothing behind it waits."""
        self.start()
        held = {**delivery(text_call("half")), "knownIncomplete": True}
        self.successResultOf(self.service.intake.submit("a", "1", held, None))
        self.submit("a", "2", text_call("whole"))
        self.clock.advance(1)
        self.assertEqual(self.announced(), [])
        texts = [call.params["text"] for call in self.sent()]
        self.assertEqual(len(texts), 2)
        self.assertIn("whole", texts)
        self.assertTrue(any("known-incomplete" in text for text in texts))
        key = self.key_of("1")
        self.assertFalse(self.successResultOf(self.service.intake.again(key)))
        self.clock.pump([5] * 100)
        self.assertEqual(len(self.sent()), 2)

    def test_after_the_rest(self) -> None:
        """A delivery of which parts still go is announced when nothing of it goes any more."""
        self.start()
        rest: Deferred[Any] = Deferred()
        self.api.script(SEND, Uncertain(SEND, 502, "x"), rest)
        self.submit("a", "1", text_call("a1"), text_call("a2"))
        self.assertEqual(self.announced(), [])
        rest.callback({"message_id": 5, "message_thread_id": 70})
        self.clock.advance(2)
        self.assertEqual(len(self.announced()), 1)

    def test_telegram_is_away(self) -> None:
        """It is tried until it is there."""
        self.start()
        away = [CertainlyUnsent(SEND, 0, "refused") for _ in range(5)]
        self.park(*away)
        self.clock.pump([5] * 60)
        self.assertEqual(len(self.announced()), 6)

    def test_flood(self) -> None:
        """A flood limit is honoured and passed on."""
        self.start()
        self.park(CertainlyUnsent(SEND, 429, "x", 30.0))
        self.assertGreater(self.gate.blocked_for(OWNER), 29)
        self.clock.pump([5] * 10)
        self.assertEqual(len(self.announced()), 2)

    def test_unreadable_answers(self) -> None:
        """While nobody can read the answers it is tried ever more rarely, until one is readable."""
        self.start()
        self.park(*(Uncertain(SEND, 502, "x") for _ in range(9)))
        self.clock.pump([1] * 1300)
        self.assertIn(len(self.announced()), (4, 5, 6))
        self.clock.pump([30] * 1000)
        self.assertEqual(len(self.announced()), 10)
        self.clock.pump([30] * 1000)
        self.assertEqual(len(self.announced()), 10)

    def test_refused_for_good(self) -> None:
        """An announcement that Telegram will not have is not tried for ever."""
        self.start()
        self.park(Refused(SEND, 400, "Bad Request: chat not found"))
        self.clock.pump([60] * 20)
        self.assertEqual(len(self.announced()), 1)

    def test_thread_is_gone(self) -> None:
        """In a lost Thread it is tried again, and lands in the binding's new one."""
        self.start()
        self.park(Refused(SEND, 400, "Bad Request: message thread not found"))
        self.give("a", 99)
        self.clock.pump([5] * 5)
        self.assertEqual([thread for thread, _ in self.announced()], [70, 99])

    def test_finds_out_itself(self) -> None:
        """When nothing else is sent there, it is the announcement that has the Thread examined."""
        self.losses.answer = "lost"
        self.start()
        self.park(Refused(SEND, 400, "Bad Request: TOPIC_DELETED"))
        self.assertEqual(self.losses.asked, ["a"])
        self.clock.pump([5] * 5)
        self.give("a", 99)
        self.service.intake.kick()
        self.assertEqual([thread for thread, _ in self.announced()], [70, 99])

    def test_lands_elsewhere(self) -> None:
        """One that landed in the main chat is taken back and sent to the new Thread."""
        self.losses.answer = "lost"
        self.start()
        self.park({"message_id": 5})
        self.assertEqual(self.losses.asked, ["a"])
        self.assertEqual([c.params["message_id"] for c in self.api.made("deleteMessage")], [5])
        self.give("a", 99)
        self.clock.pump([5] * 5)
        self.assertEqual([thread for thread, _ in self.announced()], [70, 99])

    def test_lands_elsewhere_for_good(self) -> None:
        """What cannot be taken back is told there; what never has a Thread does not come for ever."""
        self.start()
        self.api.script("deleteMessage", Refused("deleteMessage", 400, "message can't be deleted"))
        self.park({"message_id": 5})
        self.assertEqual(self.losses.asked, ["a"])
        self.clock.pump([5] * 5)
        self.assertEqual(len(self.announced()), 1)
        self.api.script(SEND, Uncertain(SEND, 502, "x"), *({"message_id": n} for n in range(9)))
        self.submit("a", "2", text_call("a2"))
        self.clock.pump([5] * 50)
        self.assertEqual(len(self.announced()), 1 + 4)

    def test_no_thread_yet(self) -> None:
        """Without a Thread it waits for one."""
        self.start()
        answer: Deferred[Any] = Deferred()
        self.api.script(SEND, answer)
        self.submit("a", "1", text_call("a1"))
        self.lose("a")
        answer.errback(Uncertain(SEND, 0, "x"))
        self.assertEqual(self.announced(), [])
        self.give("a", 99)
        self.service.intake.kick("a")
        self.assertEqual([thread for thread, _ in self.announced()], [99])

    def test_told_over_restarts(self) -> None:
        """What was told is not told again by the next process; what was not, is."""
        self.start()
        self.park()
        self.restart()
        self.assertEqual(len(self.announced()), 1)
        self.api.script(SEND, Uncertain(SEND, 0, "x"), Deferred())
        self.submit("b", "1", text_call("b1"))
        self.assertEqual(len(self.announced()), 2)
        self.restart()
        self.assertEqual([thread for thread, _ in self.announced()], [70, 80, 80])

    def test_killed_leader(self) -> None:
        """What a kill left uncertain is announced at the start."""
        self.start()
        self.api.script(SEND, Deferred())
        self.submit("a", "1", text_call("a1"))
        self.restart()
        self.assertEqual(len(self.announced()), 1)

    def test_fails_again(self) -> None:
        """A retry that ends like the first try has its button again; forgotten ones leave no trace."""
        self.start()
        key = self.park()
        self.api.script(SEND, Uncertain(SEND, 0, "x"))
        self.successResultOf(self.service.intake.again(key))
        self.assertEqual(len(self.announced()), 2)
        self.successResultOf(self.service.intake.again(key))
        self.assertEqual(self.states(), {})
        self.api.script(SEND, Uncertain(SEND, 0, "x"))
        self.submit("a", "2", text_call("a2"))
        told = self.facts.get_meta("outbox.told")
        assert told is not None
        self.assertNotIn(key, told)

    def test_one_does_not_block_another(self) -> None:
        """An announcement that cannot be made does not hold back those of other Threads."""
        self.start()
        self.park(*(Refused(SEND, 403, "Forbidden") for _ in range(1)))
        self.api.script(SEND, Uncertain(SEND, 0, "x"))
        self.submit("b", "1", text_call("b1"))
        self.assertIn(80, [thread for thread, _ in self.announced()])

    def test_stop(self) -> None:
        """A stop ends its back-off and leaves no timer."""
        self.start()
        self.park(CertainlyUnsent(SEND, 0, "refused"))
        self.successResultOf(self.service.stopService())
        self.assertEqual(self.clock.getDelayedCalls(), [])


class NoticeTests(DeliveryCase):
    """Short messages of the daemon."""

    def test_interface(self) -> None:
        """The object has the interface's methods."""
        self.assertTrue(verifyObject(INotices, self.service.notices))

    def test_once(self) -> None:
        """The same id is posted once per binding, whatever its text; no id is a new notice."""
        self.start()
        post = self.service.notices.post
        for key, text, identity in (
            ("a", "one", "x"),
            ("a", "two", "x"),
            ("b", "three", "x"),
            ("a", "four", None),
            ("a", "four", None),
        ):
            self.successResultOf(post(key, text, identity))
        self.assertEqual(self.texts(), ["one", "three", "four", "four"])

    def test_any_id(self) -> None:
        """An id that the grammar does not take works as well, and still identifies."""
        self.start()
        post = self.service.notices.post
        for identity in ("ä b/c", "ä b/c", "x" * 500, "x" * 501):
            self.successResultOf(post("a", identity, identity))
        self.assertEqual(len(self.texts()), 3)

    def test_long_text(self) -> None:
        """A long text is cut to one message."""
        self.start()
        self.successResultOf(self.service.notices.post("a", "😀" * 5000))
        (text,) = self.texts()
        self.assertLessEqual(len(text.encode("utf-16-le")) // 2, 4096)

    def test_waits_like_an_answer(self) -> None:
        """Without a Thread a notice waits for it."""
        self.lose("a")
        self.start()
        self.successResultOf(self.service.notices.post("a", "hello"))
        self.assertEqual(self.texts(), [])
        self.give("a", 71)
        self.service.intake.kick("a")
        self.assertEqual(self.texts(), ["hello"])
