"""Choosers: their messages, their identity, restarts, crowds, and a store that fails."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, fail
from twisted.trial.unittest import SynchronousTestCase

import pitelegram
from pitelegram.errors import CertainlyUnsent, Refused, StoreError, Uncertain
from pitelegram.routing import asking, cases, choosertexts
from pitelegram.store.rows import Incoming
from tests.routing.support import ALPHA, BETA, OWNER, jsonio
from tests.routing.test_chooser import LOST, ChooserCase


class MessageTests(ChooserCase):
    """The chooser's own message."""

    def test_lost_answer(self) -> None:
        """Nobody knows whether it was sent: it is asked again; a copy's buttons do nothing."""
        self.api.script("sendMessage", Uncertain("sendMessage", 502, "bad gateway"))
        link = self.follow("a")
        self.accept(self.message(LOST, "one"))
        copy = self.asked()[0]
        self.assertEqual(self.press(4711, self.data(copy, f"↪️ {ALPHA}")), choosertexts.EXPIRED)
        self.clock.advance(6)
        self.assertEqual(len(self.asked()), 2)
        self.choose(f"↪️ {ALPHA}")
        self.assertEqual(self.texts(link), ["one"])

    def test_deleted_by_the_user(self) -> None:
        """Deleted by the user, it is asked again with the next message."""
        self.follow("a")
        self.accept(self.message(LOST, "one"))
        first = self.shown()
        self.clock.advance(120)
        words = "Bad Request: message to edit not found"
        self.api.script("editMessageText", Refused("editMessageText", 400, words))
        self.accept(self.message(LOST, "two"))
        self.clock.advance(10)
        self.assertEqual(len(self.asked()), 2)
        self.assertNotEqual(self.shown(), first)

    def test_thread_deleted(self) -> None:
        """A Thread that is missing again and again is gone, and its messages with it; that is told."""
        words = "Bad Request: message thread not found"
        self.api.script("sendMessage", *[Refused("sendMessage", 400, words)] * 3)
        self.accept(self.message(LOST, "one"))
        self.clock.advance(6)
        self.assertEqual((self.states(), len(self.asked())), (["held"], 2))
        self.clock.pump([5] * 10)
        self.assertEqual((self.states(), self.choosers.all()), (["settled"], []))
        ((key, text, *_),) = self.notices.posted
        self.assertEqual((key, text), ("daemon", asking.GONE_TEXT.format(count=1)))

    def test_topics_switched_off(self) -> None:
        """When the bot has no Threads at all, a missing one proves nothing."""
        self.api.me["has_topics_enabled"] = False
        words = "Bad Request: message thread not found"
        self.api.script("sendMessage", *[Refused("sendMessage", 400, words)] * 5)
        self.accept(self.message(LOST, "one"))
        self.clock.pump([5] * 30)
        self.assertEqual((self.states(), self.notices.posted), (["held"], []))

    def test_landed_elsewhere(self) -> None:
        """A question that lands outside of the Thread is taken back."""
        self.api.script("sendMessage", {"message_id": 7, "chat": {"id": OWNER}})
        self.accept(self.message(LOST, "one"))
        self.assertEqual([c.params["message_id"] for c in self.api.made("deleteMessage")], [7])
        self.assertEqual(self.choosers.all()[0].state, "open")
        self.clock.advance(6)
        self.assertEqual(self.choosers.all()[0].state, "sent")

    def test_ended_while_it_is_sent(self) -> None:
        """The Thread gets an owner while the question is under way: it is taken back."""
        sending: Deferred[Any] = Deferred()
        self.api.script("sendMessage", sending)
        self.accept(self.message(LOST, "one"))
        self.give(BETA, LOST)
        self.moved(BETA)
        self.assertEqual(self.choosers.all(), [])
        sending.callback({"message_id": 7, "message_thread_id": LOST})
        self.assertEqual([c.params["message_id"] for c in self.api.made("deleteMessage")], [7])

    def test_old_message(self) -> None:
        """A chooser that Telegram does not delete any more says how it ended."""
        link = self.follow("a")
        self.accept(self.command("/compact"))
        words = "Bad Request: message can't be deleted for everyone"
        self.api.script("deleteMessage", Refused("deleteMessage", 400, words))
        self.choose(f"↪️ {ALPHA}", None)
        link.waiting[0].settle()
        self.clock.advance(5)
        last = self.api.made("editMessageText")[-1].params
        self.assertEqual(last["text"], choosertexts.FAREWELLS["over"])
        self.assertEqual(self.choosers.all(), [])

    def test_missing_while_tidying_up(self) -> None:
        """Nothing can be offered any more: it is tidied up again by itself, less and less often."""
        link = self.follow("a")
        self.accept(self.message(LOST, "one"))
        words = "Bad Request: message to edit not found"
        self.api.script("editMessageText", *[Refused("editMessageText", 400, words)] * 5)
        self.api.script("deleteForumTopic", *[Uncertain("deleteForumTopic", 502, "bad")] * 4)
        self.choose(f"↪️ {ALPHA}")
        link.waiting[0].settle()
        self.clock.pump([1] * 4)
        self.assertLessEqual(len(self.deleted()), 2)
        self.clock.pump([5] * 20)
        self.assertEqual((self.deleted(), self.choosers.all()), ([LOST] * 5, []))
        self.assertEqual(self.texts(link), ["one"])

    def test_workers_change(self) -> None:
        """Workers that come and go at once change nothing that is shown; one that stays does."""
        alpha = self.follow("a")
        self.clock.advance(asking.START_CALM)
        self.accept(self.message(LOST, "one"))
        alpha.cut()
        self.clock.advance(1)
        self.follow("a")
        self.clock.advance(10)
        self.assertEqual(self.api.made("editMessageText"), [])
        self.follow("b")
        self.clock.advance(10)
        (edit,) = self.api.made("editMessageText")
        self.assertIn(f"↪️ {BETA}", self.labels(edit.params))

    def test_hurry(self) -> None:
        """Another screen of one chooser does not wait for the questions of many others."""
        self.follow("a")
        self.accept(self.message(LOST, "one"))
        self.accept(*[self.message(1000 + n, "x") for n in range(50)])
        first = self.choosers.all()[0]
        assert first.message_id is not None
        self.press(first.message_id, f"rerouterestore:{first.chooser_id}")
        self.clock.pump([1] * 3)
        (edit,) = self.api.made("editMessageText")
        self.assertIn(f"➡️ {ALPHA}", self.labels(edit.params))
        self.assertLess(len(self.asked()), 20)


class IdentityTests(ChooserCase):
    """Whose press counts, and on what."""

    def test_inaccessible(self) -> None:
        """A press on a message that Telegram shows no more of works by its id."""
        link = self.follow("a")
        self.accept(self.message(LOST, "one"))
        data = self.data(self.asked()[0], f"↪️ {ALPHA}")
        press = self.callback(self.shown(), data, "p", None)
        press["callback_query"]["message"]["date"] = 0
        del press["callback_query"]["message"]["message_thread_id"]
        self.accept(press)
        self.assertEqual(self.texts(link), ["one"])

    def test_foreign(self) -> None:
        """Another message, another Thread, an unknown id: nothing but a toast."""
        link = self.follow("a")
        self.accept(self.message(LOST, "one"))
        data, message_id = self.data(self.asked()[0], f"↪️ {ALPHA}"), self.shown()
        self.assertEqual(self.press(message_id + 1, data), choosertexts.EXPIRED)
        self.assertEqual(self.press(message_id, data, 98), choosertexts.EXPIRED)
        for odd in ("reroute:nope:x", "reroute:", "reroute", "rerouteclean:zz", "reroutenew::"):
            self.assertEqual(self.press(message_id, odd), choosertexts.EXPIRED, odd)
        self.assertEqual((self.states()[0], link.forwards), ("held", []))

    def test_unknown_worker(self) -> None:
        """A token that stands for no live worker chooses nobody."""
        self.follow("a")
        self.accept(self.message(LOST, "one"))
        data = self.data(self.asked()[0], f"↪️ {ALPHA}")
        self.assertEqual(self.press(self.shown(), data[:-3] + "xyz"), choosertexts.NOT_ACTIVE)

    def test_forged_restore_in_all(self) -> None:
        """All is not a Thread: it cannot be given to a worker, whatever is pressed."""
        self.follow("a")
        self.accept(self.command("/compact"))
        data = self.data(self.asked()[0], f"↪️ {ALPHA}").replace("reroute:", "reroutenew:")
        self.assertEqual(self.press(self.shown(), data, None), choosertexts.UNAVAILABLE)
        self.assertEqual(self.states()[0], "held")

    def test_stranger(self) -> None:
        """A stranger is never asked, and his press chooses nothing."""
        self.follow("a")
        stranger = {"from": {"id": 5, "is_bot": False}, "chat": {"id": 5, "type": "private"}}
        self.accept(self.message(LOST, "hello", **stranger))
        self.assertEqual((self.rows(), self.api.calls), ([], []))
        self.accept(self.message(LOST, "one"))
        press = self.callback(self.shown(), self.data(self.asked()[0], f"↪️ {ALPHA}"), "p", LOST)
        press["callback_query"]["from"]["id"] = 5
        self.accept(press)
        self.assertEqual(self.states(), ["held"])

    def test_press_twice(self) -> None:
        """The same press, delivered again, is executed once."""
        link = self.follow("a")
        self.accept(self.message(LOST, "one"))
        press = self.callback(self.shown(), self.data(self.asked()[0], f"↪️ {ALPHA}"), "p", LOST)
        self.accept(press, {**press, "update_id": press["update_id"] + 5000})
        self.assertEqual(self.texts(link), ["one"])
        self.assertEqual(len(self.api.made("answerCallbackQuery")), 1)

    def test_labels(self) -> None:
        """Titles are cut to what a button takes; equal ones get their letter."""
        for key, slot in ((ALPHA, "A"), (BETA, "B")):
            self.successResultOf(self.bindings.assign_slot(key, slot, f"name {slot}"))
            self.successResultOf(self.bindings.set_title(key, "🛠" * 60))
        self.follow("a")
        self.follow("b")
        self.accept(self.message(LOST, "one"))
        labels = self.labels(self.asked()[0])
        self.assertTrue(labels[0].startswith("↪️ A · ") and labels[1].startswith("↪️ B · "))
        for text in labels:
            self.assertLessEqual(len(text.encode("utf-16-le")) // 2, choosertexts.LABEL_LIMIT)
        for row in self.asked()[0]["reply_markup"]["inline_keyboard"]:
            self.assertLessEqual(len(row[0]["callback_data"].encode()), 64)


class RestartTests(ChooserCase):
    """Another leader goes on."""

    def test_buttons_live_on(self) -> None:
        """The question is not repeated, and its old buttons work."""
        self.follow("a")
        self.accept(self.message(LOST, "one"), self.command("/compact"))
        data = [self.data(each, f"↪️ {ALPHA}") for each in self.asked()]
        ids = [chooser.message_id or 0 for chooser in self.choosers.all()]
        self.restart()
        link = self.follow("a")
        self.assertEqual(self.states(), ["held", "held"])
        self.press(ids[0], data[0])
        self.press(ids[1], data[1], None)
        self.assertEqual(self.api.made("editMessageText"), [])
        self.assertEqual((self.texts(link), len(self.asked())), (["one", "/compact"], 2))

    def test_not_proven_sent(self) -> None:
        """What was not proven to be sent is sent again, under the same id."""
        self.api.script("sendMessage", Deferred())
        self.accept(self.message(LOST, "one"))
        self.restart()
        self.assertEqual(len({str(each["reply_markup"]) for each in self.asked()}), 1)
        self.assertEqual(self.choosers.all()[0].state, "sent")

    def test_pinned_goes_on(self) -> None:
        """A choice that was stored is carried out by the next leader, with the same delivery id."""
        link = self.follow("a")
        self.accept(self.message(LOST, "one"))
        self.choose(f"↪️ {ALPHA}")
        first = link.waiting[0].delivery_id
        self.restart()
        again = self.follow("a")
        self.assertEqual([f.delivery_id for f in again.waiting], [first])
        again.waiting[0].settle()
        self.assertEqual((self.deleted(), self.choosers.all()), ([LOST], []))

    def test_killed_before_the_take_over(self) -> None:
        """Killed between the stored choice and the take-over of the Thread: the next does it."""
        self.follow("a")
        self.accept(self.message(LOST, "one"))
        self.threads.reassigning = Deferred()
        self.choose("🔁 Replace/restore thread…")
        self.clock.advance(5)
        self.choose(f"➡️ {ALPHA}")
        self.restart()
        binding = self.bindings.get(ALPHA)
        assert binding is not None
        self.assertEqual(binding.thread_id, LOST)
        link = self.follow("a")
        link.waiting[0].settle()
        self.assertEqual((self.texts(link), self.deleted()), (["one"], [11]))
        # The dead leader's press ends at last, and changes nothing.
        self.clock.advance(121)
        self.assertEqual(self.flushLoggedErrors(), [])
        self.assertEqual((self.texts(link), self.choosers.all()), (["one"], []))

    def test_cleanup_goes_on(self) -> None:
        """What was not tidied up is tried once more; nothing is dispatched."""
        link = self.follow("a")
        self.accept(self.message(LOST, "one"))
        self.api.script("deleteForumTopic", CertainlyUnsent("deleteForumTopic", 0, "no network"))
        self.choose(f"↪️ {ALPHA}")
        link.waiting[0].settle()
        self.restart()
        self.assertEqual((self.deleted(), self.choosers.all()), ([LOST, LOST], []))

    def test_others_wait_at_the_restart(self) -> None:
        """The chosen rows turn out to be over at the start; those written later are asked about."""
        link = self.follow("a")
        self.accept(self.message(LOST, "one"))
        self.choose(f"↪️ {ALPHA}")
        self.accept(self.message(LOST, "two"))
        self.probe.answers[ALPHA] = True
        link.leader, link.connected = None, False
        self.restart()
        self.assertEqual((self.states()[0], self.states()[2]), ("settled", "held"))
        self.assertEqual(([c.state for c in self.choosers.all()], self.deleted()), (["sent"], []))
        link = self.follow("a")
        self.clock.advance(20)
        self.choose(f"↪️ {ALPHA}")
        self.assertEqual(self.texts(link), ["two"])

    def test_settled_before_the_restart(self) -> None:
        """Everything chosen had settled when the leader was killed: the next one tidies up."""
        self.follow("a")
        self.accept(self.message(LOST, "one"))
        self.choose(f"↪️ {ALPHA}")
        self.successResultOf(self.journal.settle([1]))
        self.restart()
        self.assertEqual((self.deleted(), self.choosers.all()), ([LOST], []))


class CrowdTests(ChooserCase):
    """Many at once."""

    def test_capacity(self) -> None:
        """At most a hundred are open; the next wait, unasked, and get theirs when there is room."""
        self.follow("a")
        self.accept(*[self.message(1000 + n, "x") for n in range(130)])
        self.clock.pump([1] * 200)
        self.assertEqual(len(self.asked()), asking.CAPACITY)
        self.assertEqual(self.states(), ["held"] * 130)
        first = self.choosers.all()[0]
        assert first.message_id is not None
        self.press(first.message_id, f"reroutedrop:{first.chooser_id}", 1000)
        self.clock.pump([1] * 5)
        self.assertEqual(len(self.asked()), asking.CAPACITY + 1)
        self.assertEqual(len(self.choosers.all()), asking.CAPACITY)

    def test_flood(self) -> None:
        """A thousand messages of one unknown Thread: one question, and nobody else waits."""
        link = self.follow("a")
        for batch in range(10):
            self.accept(*[self.message(LOST, f"m{batch}-{n}") for n in range(100)])
        self.accept(self.message(11, "mine"))
        self.assertEqual((len(self.asked()), self.texts(link)), (1, ["mine"]))
        link.waiting[0].settle()
        self.choose(f"↪️ {ALPHA}")
        while link.waiting:
            link.waiting[0].settle()
        self.assertEqual(len(link.forwards), 1001)
        self.assertEqual(self.texts(link)[1::100], [f"m{batch}-0" for batch in range(10)])
        self.assertEqual(self.deleted(), [LOST])

    def test_many_starts(self) -> None:
        """A hundred equal C{/start} lead to one question, about the newest."""
        self.follow("a")
        self.accept(*[self.command("/start") for _ in range(100)])
        self.clock.pump([1] * 20)
        self.assertEqual(len(self.asked()), 1)
        self.assertEqual(self.states(), ["settled"] * 99 + ["held"])

    def test_status(self) -> None:
        """The status says so once messages have waited long."""
        self.accept(self.message(LOST, "one"), self.message(LOST, "two"))
        self.assertEqual(self.desk.problems(), [])
        self.clock.advance(700)
        self.assertEqual(len(self.desk.problems()), 1)
        self.assertTrue(self.desk.problems()[0].endswith(": 2"))

    def test_former_owner(self) -> None:
        """Nothing is asked in the chat of a former owner."""
        self.owner.owner_id = 5
        self.successResultOf(
            self.journal.accept(1, [an_incoming(self.message(LOST, "one"))], 10_000)
        )
        self.restart()
        self.clock.advance(100)
        self.assertEqual(self.api.calls, [])


class ModeTests(ChooserCase):
    """Whether the bot has Threads is not known, or changes."""

    def test_not_known_yet(self) -> None:
        """What comes before Telegram has said whether there are Threads is kept, and asked then."""
        self.threads.now = "unknown"
        self.follow("a")
        self.accept(self.message(LOST, "one"), self.command("/compact"))
        self.clock.advance(20)
        self.assertEqual((self.states(), self.asked()), (["held", "held"], []))
        self.threads.now = "enabled"
        self.clock.advance(6)
        self.assertEqual(len(self.asked()), 2)

    def test_switched_off(self) -> None:
        """Without Threads nobody is asked any more; what waited gets the short answer."""
        self.follow("a")
        self.accept(self.message(LOST, "one"), self.command("/compact"))
        self.threads.now = "disabled"
        self.follow("b")
        self.clock.advance(6)
        self.assertEqual((self.states(), self.choosers.all()), (["settled"] * 2, []))
        self.assertEqual([place.thread_id for place, _ in self.replies], [LOST, None])
        self.assertEqual(len(self.api.made("deleteMessage")), 2)

    def test_many_ends(self) -> None:
        """A question does not wait until a hundred others have said that they expired."""
        self.follow("a")
        self.accept(*[self.command(f"/c{n}") for n in range(60)])
        self.clock.pump([1] * 90)
        self.clock.advance(3600)
        self.accept(self.message(LOST, "one"))
        self.clock.pump([1] * 10)
        self.assertEqual(self.asked()[-1].get("message_thread_id"), LOST)


class StoreFailsTests(ChooserCase):
    """A disk that takes nothing."""

    def test_choice(self) -> None:
        """A choice that cannot be stored is none; the same press, again, is one later."""
        link = self.follow("a")
        self.accept(self.message(LOST, "one"))
        choosing = self.desk.choosing
        store, choosing.store = choosing.store, Failing(choosing.store, "choose")  # type: ignore[assignment]
        self.assertEqual(self.choose(f"↪️ {ALPHA}"), choosertexts.UNAVAILABLE)
        self.assertEqual((self.states()[0], link.forwards), ("held", []))
        choosing.store = store
        self.choose(f"↪️ {ALPHA}")
        self.assertEqual(self.texts(link), ["one"])

    def test_end_of_a_choice(self) -> None:
        """The end of a choice that cannot be stored is tried again."""
        link = self.follow("a")
        self.accept(self.message(LOST, "one"))
        self.choose(f"↪️ {ALPHA}")
        choosing = self.desk.choosing
        store, choosing.store = choosing.store, Failing(choosing.store, "handed")  # type: ignore[assignment]
        link.waiting[0].settle()
        self.assertEqual(len(self.flushLoggedErrors(StoreError)), 1)
        choosing.store = store
        self.clock.advance(61)
        self.assertEqual((self.deleted(), self.choosers.all()), ([LOST], []))

    def test_expiry(self) -> None:
        """An expiry that cannot be stored is tried again, not all the time."""
        self.accept(self.command("/compact"))
        choosing = self.desk.choosing
        store, choosing.store = choosing.store, Failing(choosing.store, "end")  # type: ignore[assignment]
        self.clock.pump([60] * 60 + [1] * 10)
        self.assertLess(len(self.flushLoggedErrors(StoreError)), 15)
        self.assertEqual(self.states(), ["held"])
        choosing.store = store
        self.clock.advance(61)
        self.assertEqual(self.states(), ["settled"])


class Failing:
    """A store of which one method fails."""

    def __init__(self, store: Any, name: str) -> None:
        self._store, self._name = store, name

    def __getattr__(self, name: str) -> Any:
        if name == self._name:
            return lambda *_: fail(StoreError("no space"))
        return getattr(self._store, name)


class PageTests(SynchronousTestCase):
    """What is written of the machine."""

    def test_page(self) -> None:
        """The page has the same table."""
        page = (Path(pitelegram.__file__).parent.parent / "docs/machines/chooser.md").read_text()
        rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `(\w+)` \|", page, re.MULTILINE)
        self.assertEqual({(start, event): end for start, event, end in rows}, dict(cases.TABLE))

    def test_done_is_the_end(self) -> None:
        """Nothing leads away from the end."""
        self.assertEqual([start for start, _ in cases.TABLE if start == cases.DONE], [])


def an_incoming(update: dict[str, Any]) -> Incoming:
    """Return a message as admission stores it."""
    message = update["message"]
    return Incoming(
        update_id=update["update_id"],
        kind="message",
        chat_id=message["chat"]["id"],
        thread_id=message["message_thread_id"],
        message_id=message["message_id"],
        callback_id=None,
        body=jsonio.dumps(update),
    )
