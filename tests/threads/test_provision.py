"""Threads under the clock, with a fake Bot API and the real store."""

from __future__ import annotations

from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from pitelegram.delivery.interfaces import IThreadLoss
from pitelegram.errors import CertainlyUnsent, Refusal, Refused, StoreFull, Uncertain
from pitelegram.kernel.machine import NoTransition
from pitelegram.store.attachments import Attachments
from pitelegram.store.bindings import Bindings
from pitelegram.store.leadership import Leadership
from pitelegram.targets import TelegramTarget
from pitelegram.testing.botapi import FakeBotApi
from pitelegram.testing.stores import leader_database
from pitelegram.threads import making
from pitelegram.threads.interfaces import IThreads
from pitelegram.threads.loss import ThreadLoss
from pitelegram.threads.provision import Threads

OWNER = 1000
UNSENT = CertainlyUnsent("createForumTopic", 0, "the connection was refused")
LOST_ANSWER = Uncertain("createForumTopic", 0, "the connection was lost")
GONE = Refused("editForumTopic", 400, "Bad Request: TOPIC_ID_INVALID")


class ThreadsCase(SynchronousTestCase):
    """A paired owner, Threads on, and a record of what observers heard."""

    def setUp(self) -> None:
        """Make everything."""
        self.clock = Clock()
        self.clock.advance(1_700_000_000)
        self.database = leader_database(self.clock)
        self.addCleanup(self.database.stopService)
        self.bindings = Bindings(self.database)
        self.leadership = Leadership(self.database)
        self.api = FakeBotApi()
        self.owner: int | None = OWNER
        self.live: list[str] = []
        self.receiving = True
        self.heard: list[tuple[str, str | None, str | None, str]] = []
        self.threads = self.make()
        self.threads.learn(self.api.me)

    def make(self, bindings: Any = None) -> Threads:
        """Return a started service over the same store."""
        threads = Threads(
            self.api,
            self.bindings if bindings is None else bindings,
            self.leadership,
            self.clock,
            Random(1),
            lambda: self.owner,
            running=lambda: self.live,
            receiving=lambda: self.receiving,
            display_mode=lambda: self.display,
        )
        threads.subscribe(self.hear)
        threads.startService()
        return threads

    display = "letters"

    def hear(self, key: str, target: Any, old: Any, reason: str) -> None:
        """Observe."""
        self.heard.append((key, target and target.key, old and old.key, reason))

    def ensure(self, key: str = "spec-1", kind: str = "managed") -> Any:
        """Ensure a binding."""
        return self.successResultOf(self.threads.ensure(key, kind, f"/home/{key}"))

    def target(self, key: str = "spec-1") -> TelegramTarget | None:
        """Where it is."""
        binding = self.bindings.get(key)
        return None if binding is None else binding.target

    def made(self) -> list[str]:
        """Titles that were asked for."""
        return [call.params["name"] for call in self.api.made("createForumTopic")]

    def service_message(self, title: str, thread: int, **more: Any) -> None:
        """The bot's own service message arrives."""
        message = {
            "message_id": thread,
            "message_thread_id": thread,
            "date": int(self.clock.seconds()),
            "chat": {"id": OWNER, "type": "private"},
            "from": {"id": 4242, "is_bot": True},
            "forum_topic_created": {"name": title, "icon_color": 1},
            **more,
        }
        self.successResultOf(self.threads.created(message))

    def pass_time(self, seconds: float) -> None:
        """Let time pass in half seconds."""
        self.clock.pump([0.5] * int(seconds * 2))

    def restart(self) -> None:
        """Another leader over the same store."""
        self.successResultOf(self.threads.stopService())
        self.threads = self.make()


class ProvisionTests(ThreadsCase):
    """Making Threads."""

    def test_ensure(self) -> None:
        """A worker gets letter, name and a Thread with that letter as its title, once."""
        self.assertTrue(verifyObject(IThreads, self.threads))
        row = self.ensure()
        self.assertEqual(row.slot, "A")
        self.assertEqual(self.made(), ["A"])
        self.assertEqual(self.target(), TelegramTarget(OWNER, 101))
        self.assertEqual(self.bindings.get("spec-1").title, "A")
        self.assertEqual(self.heard, [("spec-1", "1000:101", None, "created")])
        again = self.ensure()
        self.assertEqual((again.slot, again.thread_name), ("A", row.thread_name))
        self.assertEqual(len(self.made()), 1)
        self.assertEqual(self.bindings.provisions(), [])

    def test_control(self) -> None:
        """The daemon's Thread has its title and takes no letter."""
        row = self.ensure("daemon", "daemon")
        self.assertEqual((row.slot, self.made()), (None, ["🛠 Control"]))
        self.assertEqual(self.ensure().slot, "A")
        self.restart()
        self.ensure("daemon", "daemon")
        self.assertEqual(self.made().count("🛠 Control"), 1)

    def test_twenty_seven(self) -> None:
        """The 27th is refused truthfully and leaves no row; the Control Thread fits beside 26."""
        for number in range(26):
            self.ensure(f"spec-{number}")
        names = [each.thread_name for each in self.bindings.list()]
        self.assertEqual(len(set(names)), 26)
        error = self.failureResultOf(self.threads.ensure("spec-27", "managed", "/x"), Refusal)
        self.assertEqual(error.value.code, "no-slot")
        self.assertIsNone(self.bindings.get("spec-27"))
        self.ensure("daemon", "daemon")
        self.assertEqual(len(self.made()), 27)

    def test_slow_api(self) -> None:
        """The row comes at once; the Thread follows."""
        answer: Deferred[Any] = Deferred()
        self.api.script("createForumTopic", answer)
        row = self.ensure()
        self.assertEqual((row.slot, row.target), ("A", None))
        self.assertEqual([each["state"] for each in self.bindings.provisions()], ["in-flight"])
        self.ensure()
        self.assertEqual(len(self.made()), 1)
        answer.callback({"message_thread_id": 7, "name": "A"})
        self.assertEqual(self.target(), TelegramTarget(OWNER, 7))

    def test_intent_before_call(self) -> None:
        """The intent is committed before the call is made."""
        seen: list[Any] = []

        def look(call: Any) -> Any:
            seen.extend(self.bindings.provisions())
            return {"message_thread_id": 7, "name": "A"}

        self.api.script("createForumTopic", look)
        self.ensure()
        self.assertEqual([(each["title"], each["state"]) for each in seen], [("A", "in-flight")])

    def test_waits_for_the_owner(self) -> None:
        """Without an owner nothing is made; pairing does it."""
        self.owner = None
        self.ensure()
        self.assertEqual(self.made(), [])
        self.owner = OWNER
        self.threads.kick()
        self.assertEqual(self.made(), ["A"])

    def test_certainly_unsent(self) -> None:
        """What was not sent is tried again, after the server's wait."""
        flood = CertainlyUnsent("createForumTopic", 429, "Too Many Requests", 40.0)
        self.api.script("createForumTopic", UNSENT, flood)
        self.ensure()
        self.assertEqual(self.bindings.provisions(), [])
        self.pass_time(1)
        self.assertEqual(len(self.made()), 2)
        self.pass_time(39)
        self.assertEqual(len(self.made()), 2)
        self.pass_time(1)
        self.assertEqual(self.target(), TelegramTarget(OWNER, 101))

    def test_refused(self) -> None:
        """A refusal is tried again, ever more slowly."""
        self.api.script("createForumTopic", *[Refused("x", 403, "Forbidden")] * 20)
        self.ensure()
        self.pass_time(600)
        self.assertTrue(5 < len(self.made()) < 14, len(self.made()))

    def test_lost_answer_and_service_message(self) -> None:
        """A lost answer is settled by the service message, and no second Thread is made."""
        self.api.script("createForumTopic", LOST_ANSWER)
        self.ensure()
        self.assertEqual([each["state"] for each in self.bindings.provisions()], ["ambiguous"])
        self.pass_time(20)
        self.service_message("A", 55)
        self.assertEqual(self.target(), TelegramTarget(OWNER, 55))
        self.pass_time(60)
        self.assertEqual(len(self.made()), 1)
        self.assertEqual(self.heard, [("spec-1", "1000:55", None, "created")])

    def test_service_message_first(self) -> None:
        """The service message may come before the answer is lost, or before it comes."""
        answer: Deferred[Any] = Deferred()
        other: Deferred[Any] = Deferred()
        self.api.script("createForumTopic", answer, other)
        self.ensure()
        self.service_message("A", 55)
        answer.errback(LOST_ANSWER)
        self.ensure("spec-2")
        self.service_message("B", 56)
        other.callback({"message_thread_id": 56, "name": "B"})
        self.pass_time(60)
        self.assertEqual(self.target(), TelegramTarget(OWNER, 55))
        self.assertEqual(self.target("spec-2"), TelegramTarget(OWNER, 56))
        self.assertEqual((len(self.made()), len(self.heard)), (2, 2))

    def test_no_service_message(self) -> None:
        """Only after 30 s without one, one more is made."""
        self.api.script("createForumTopic", LOST_ANSWER)
        self.ensure()
        self.pass_time(29.5)
        self.assertEqual(len(self.made()), 1)
        self.pass_time(1)
        self.assertEqual(len(self.made()), 2)
        self.assertEqual(self.target(), TelegramTarget(OWNER, 101))

    def test_deaf(self) -> None:
        """Seconds in which nothing can arrive do not count."""
        self.api.script("createForumTopic", LOST_ANSWER)
        self.receiving = False
        self.ensure()
        self.pass_time(300)
        self.assertEqual(len(self.made()), 1)
        self.receiving = True
        self.pass_time(31)
        self.assertEqual(len(self.made()), 2)

    def test_answer_without_thread(self) -> None:
        """An odd answer is a lost answer."""
        self.api.script("createForumTopic", True)
        self.ensure()
        self.service_message("A", 9)
        self.assertEqual(self.target(), TelegramTarget(OWNER, 9))

    def test_foreign_service_messages(self) -> None:
        """Another title, chat, sender, an old one, a Thread that has an owner: none of them counts."""
        self.ensure("spec-0")
        self.api.script("createForumTopic", LOST_ANSWER)
        self.ensure("spec-1")
        self.service_message("A", 50)
        self.service_message("B", 51, chat={"id": 5})
        self.service_message("B", 52, **{"from": {"id": OWNER, "is_bot": False}})
        self.service_message("B", 53, date=int(self.clock.seconds()) - 400)
        self.service_message("B", 101)
        self.service_message("B", 54, date=None)
        self.service_message("B", 54, chat=None)
        self.service_message("B", 54, message_thread_id="x")
        self.service_message("B", 54, forum_topic_created=None)
        self.assertIsNone(self.target("spec-1"))
        self.service_message("B", 57)
        self.assertEqual(self.target("spec-1"), TelegramTarget(OWNER, 57))

    def test_killed_in_flight(self) -> None:
        """An intent of a dead leader is looked out for before one more is made."""
        for state in ("in-flight", "ambiguous"):
            key = f"spec-{state}"
            self.successResultOf(self.bindings.ensure(key, "managed", "/x"))
            slot = "Q" if state == "in-flight" else "R"
            self.successResultOf(self.bindings.assign_slot(key, slot, slot + "name"))
            self.successResultOf(self.bindings.begin_provision(key, OWNER, slot))
        self.successResultOf(self.bindings.mark_ambiguous("spec-ambiguous"))
        self.restart()
        self.assertEqual({each["state"] for each in self.bindings.provisions()}, {"ambiguous"})
        self.service_message("R", 77)
        self.pass_time(31)
        self.assertEqual(self.made(), ["Q"])
        self.assertEqual(self.target("spec-ambiguous"), TelegramTarget(OWNER, 77))
        self.assertEqual(self.target("spec-in-flight"), TelegramTarget(OWNER, 101))

    def test_stop_in_flight(self) -> None:
        """Stopping cancels the call and keeps the intent for the next leader."""
        answer: Deferred[Any] = Deferred()
        self.api.script("createForumTopic", answer)
        self.ensure()
        self.restart()
        self.assertTrue(answer.called)
        self.service_message("A", 60)
        self.pass_time(60)
        self.assertEqual((self.target(), len(self.made())), (TelegramTarget(OWNER, 60), 1))

    def test_stop_in_a_pause(self) -> None:
        """Stopping leaves no timer."""
        self.api.script("createForumTopic", UNSENT)
        self.ensure()
        self.successResultOf(self.threads.stopService())
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_full_disk(self) -> None:
        """A Thread that was made is remembered as soon as there is space; no second one is made."""
        full = FullBindings(self.bindings)
        self.successResultOf(self.threads.stopService())
        self.threads = self.make(full)
        full.failures = 3
        self.ensure()
        self.assertIsNone(self.target())
        self.pass_time(20)
        self.assertEqual(self.target(), TelegramTarget(OWNER, 101))
        self.assertEqual(len(self.made()), 1)

    def test_forgotten_meanwhile(self) -> None:
        """A binding that is forgotten while its Thread is made stays forgotten."""
        answer: Deferred[Any] = Deferred()
        self.api.script("createForumTopic", answer)
        self.ensure()
        self.successResultOf(self.bindings.forget("spec-1"))
        answer.callback({"message_thread_id": 7, "name": "A"})
        self.assertIsNone(self.bindings.get("spec-1"))
        self.assertEqual(self.heard, [])

    def test_observer_that_fails(self) -> None:
        """An observer that fails disturbs nobody."""
        self.threads.subscribe(lambda *_: 1 / 0)
        late: list[Any] = []
        self.threads.subscribe(lambda *heard: late.append(heard))
        self.ensure()
        self.assertEqual(len(late), 1)
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)

    def test_steps_can_be_seen(self) -> None:
        """While a Thread is made its step is known; afterwards nothing is left."""
        self.api.script("createForumTopic", LOST_ANSWER)
        self.ensure()
        steps = self.threads._maker.steps
        self.assertEqual(steps["spec-1"].now, making.AMBIGUOUS)
        self.service_message("A", 5)
        self.pass_time(1)
        self.assertEqual(steps, {})


class FullBindings:
    """Bindings whose disk is full for some C{end_provision}."""

    def __init__(self, real: Bindings) -> None:
        self._real = real
        self.failures = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def end_provision(self, key: str, thread_id: int | None) -> Any:
        """Fail, then work."""
        if self.failures:
            self.failures -= 1
            raise StoreFull("no space is left")
        return self._real.end_provision(key, thread_id)


class ForgetTests(ThreadsCase):
    """A binding that is given up."""

    def test_forget(self) -> None:
        """Slot, name and Thread are free; what it still has to say goes to the Control Thread."""
        self.ensure("daemon", "daemon")
        first = self.ensure()
        self.ensure("spec-2")
        self.successResultOf(self.threads.forget("spec-1"))
        self.assertIsNone(self.bindings.get("spec-1"))
        self.assertEqual(self.heard[-1], ("spec-1", None, first.target.key, "forgotten"))
        self.assertEqual(self.threads.destination("spec-1"), self.threads.destination("daemon"))
        self.assertEqual(self.ensure("spec-3").slot, first.slot)

    def test_forgotten_as_a_guest(self) -> None:
        """Nobody comes back to the Thread that it had before C{/attach}."""
        attachments = Attachments(self.database)
        self.ensure()
        self.ensure("spec-2")
        for key, thread in (("spec-1", 101), ("spec-2", 102)):
            self.successResultOf(attachments.remember(key, OWNER, thread))
        self.successResultOf(self.threads.forget("spec-1"))
        self.assertIsNone(attachments.previous("spec-1"))
        self.assertEqual(attachments.previous("spec-2"), (OWNER, 102))

    def test_forgotten_while_its_thread_is_made(self) -> None:
        """The making ends with it, for good."""
        answer: Deferred[Any] = Deferred()
        self.api.script("createForumTopic", answer)
        self.ensure()
        self.successResultOf(self.threads.forget("spec-1"))
        self.clock.pump([1.0] * 60)
        self.assertEqual((self.bindings.list(), self.bindings.provisions()), ([], []))

    def test_control_thread_is_examined_in_its_place(self) -> None:
        """A send that failed on behalf of a forgotten binding asks for the Thread it went to."""
        control = self.ensure("daemon", "daemon")
        self.ensure()
        self.successResultOf(self.threads.forget("spec-1"))
        self.api.script("editForumTopic", GONE)
        loss = ThreadLoss(self.api, self.bindings, self.threads)
        self.assertEqual(self.successResultOf(loss.examine("spec-1")), "lost")
        self.assertIn(("daemon", None, control.target.key, "lost"), self.heard)


class TitleTests(ThreadsCase):
    """Titles are edited only when they change."""

    def test_no_edit_without_change(self) -> None:
        """The same title is not sent."""
        self.ensure()
        self.successResultOf(self.threads.retitle("spec-1"))
        self.assertEqual(self.api.made("editForumTopic"), [])

    def test_edit(self) -> None:
        """Another display mode renames, once; the new title is remembered."""
        self.ensure()
        self.display = "names"
        name = self.bindings.get("spec-1").thread_name
        for _ in range(2):
            self.successResultOf(self.threads.retitle("spec-1"))
        self.assertEqual([c.params["name"] for c in self.api.made("editForumTopic")], [name])
        self.assertEqual(self.bindings.get("spec-1").title, name)

    def test_failed_edit(self) -> None:
        """A failed edit is not taken for done."""
        self.ensure()
        self.display = "names"
        self.api.script("editForumTopic", LOST_ANSWER)
        self.failureResultOf(self.threads.retitle("spec-1"), Uncertain)
        self.assertEqual(self.bindings.get("spec-1").title, "A")

    def rename(self, name: Any, **more: Any) -> None:
        """The owner gives the Thread of C{spec-1} another name; some fields may be others."""
        message = {
            "message_thread_id": self.target().thread_id,
            "chat": {"id": OWNER, "type": "private"},
            "from": {"id": OWNER, "is_bot": False},
            "forum_topic_edited": {"name": name},
            **more,
        }
        self.successResultOf(self.threads.renamed(message))

    def test_users_title(self) -> None:
        """What the user calls a Thread it stays called, in every mode."""
        self.ensure()
        self.rename("  my   own ")
        self.display = "state"
        self.successResultOf(self.threads.retitle("spec-1", busy=True))
        self.assertEqual(self.api.made("editForumTopic"), [])
        self.assertEqual(self.bindings.get("spec-1").title, "my own")

    def test_given_back(self) -> None:
        """The title that it would have by itself ends that."""
        self.ensure()
        self.rename("my own")
        self.rename("A")
        self.display = "names"
        self.successResultOf(self.threads.retitle("spec-1"))
        self.assertEqual(len(self.api.made("editForumTopic")), 1)

    def test_other_renames(self) -> None:
        """The bot's own, an icon's, one of a foreign Thread and nonsense change nothing."""
        self.ensure()
        self.rename("x", **{"from": {"id": 4242, "is_bot": True}})
        self.rename("x", message_thread_id=99_999)
        self.rename("x", message_thread_id="7")
        self.rename("x", forum_topic_edited={"icon_custom_emoji_id": "1"})
        self.rename("x", forum_topic_edited=7)
        self.rename(7)
        self.rename("  ")
        self.assertIsNone(self.bindings.get("spec-1").user_title)

    def test_new_thread_has_its_own_title(self) -> None:
        """A Thread that replaces a lost one is called as its mode wants it."""
        self.ensure()
        self.rename("my own")
        old = self.target()
        assert old is not None
        self.assertTrue(self.successResultOf(self.threads.lost("spec-1", old)))
        self.assertNotEqual(self.target(), old)
        self.assertIsNone(self.bindings.get("spec-1").user_title)

    def test_not_modified(self) -> None:
        """Telegram has that title already: done."""
        self.ensure()
        self.display = "names"
        same = Refused("editForumTopic", 400, "Bad Request: TOPIC_NOT_MODIFIED")
        self.api.script("editForumTopic", same)
        self.assertTrue(self.successResultOf(self.threads.retitle("spec-1")))
        self.assertFalse(self.successResultOf(self.threads.retitle("spec-1")))

    def test_reassign(self) -> None:
        """A Thread changes hands: who loses it hears first, and it gets the new title."""
        self.ensure("spec-1")
        self.ensure("spec-2")
        self.heard.clear()
        self.assertTrue(self.successResultOf(self.threads.reassign("spec-2", OWNER, 101)))
        self.assertEqual(
            self.heard,
            [
                ("spec-1", None, "1000:101", "reassigned"),
                ("spec-2", "1000:101", "1000:102", "reassigned"),
            ],
        )
        self.assertEqual(self.api.topics[OWNER, 101], "B")
        self.assertEqual(self.bindings.get("spec-2").title, "B")
        self.assertFalse(self.successResultOf(self.threads.reassign("spec-9", OWNER, 5)))
        self.assertTrue(self.successResultOf(self.threads.reassign("spec-2", OWNER, 101)))

    def test_reassign_during_an_edit(self) -> None:
        """An edit for the former owner that ends late leaves no title of his: it is put right."""
        self.ensure("spec-1")
        self.ensure("spec-2")
        target = self.target("spec-1")
        late: Deferred[bool] = Deferred()
        self.display = "names"
        self.api.script("editForumTopic", late)
        retitling = self.threads.retitle("spec-1")
        self.successResultOf(self.threads.reassign("spec-2", target.chat_id, target.thread_id))
        mine = self.bindings.get("spec-2").title
        self.assertEqual(mine, self.bindings.get("spec-2").thread_name)
        late.callback(True)
        self.successResultOf(retitling)
        self.assertTrue(self.successResultOf(self.threads.retitle("spec-2")))
        self.assertFalse(self.successResultOf(self.threads.retitle("spec-2")))
        last = self.api.made("editForumTopic")[-1].params
        self.assertEqual((last["message_thread_id"], last["name"]), (target.thread_id, mine))

    def test_reassign_while_making(self) -> None:
        """A Thread that is given by hand is not taken back by the one that was being made."""
        answer: Deferred[Any] = Deferred()
        self.api.script("createForumTopic", answer)
        self.ensure()
        self.assertTrue(self.successResultOf(self.threads.reassign("spec-1", OWNER, 40)))
        self.pass_time(100)
        self.assertEqual(self.target(), TelegramTarget(OWNER, 40))
        self.assertEqual((self.bindings.provisions(), len(self.made())), ([], 1))


class ModeTests(ThreadsCase):
    """With and without Threads."""

    def switch(self, enabled: bool) -> None:
        """C{getMe} says so, twice."""
        self.api.me["has_topics_enabled"] = enabled
        self.threads.learn(self.api.me)
        self.threads.learn(self.api.me)

    def test_remembered(self) -> None:
        """Mode and bot name are kept."""
        self.assertEqual(self.leadership.get_meta("bot_username"), "test_bot")
        self.restart()
        self.assertEqual(self.threads.mode(), "enabled")

    def test_unknown(self) -> None:
        """Before the first C{getMe} nothing is made."""
        self.successResultOf(self.leadership.set_meta("thread_mode", "odd"))
        self.restart()
        self.ensure()
        self.assertEqual((self.threads.mode(), self.made()), ("unknown", []))
        self.threads.learn(self.api.me)
        self.assertEqual((self.threads.mode(), self.made()), ("enabled", ["A"]))

    def test_one_doubt(self) -> None:
        """One answer without Threads changes nothing."""
        self.threads.learn({"id": 1})
        self.threads.learn(self.api.me)
        self.threads.learn({"id": 1})
        self.assertEqual(self.threads.mode(), "enabled")

    def test_single_worker(self) -> None:
        """Without Threads a single running worker has the chat; reports go there too."""
        self.switch(False)
        self.ensure("daemon", "daemon")
        self.ensure("spec-1")
        self.assertEqual(self.made(), [])
        self.assertEqual(self.target(), TelegramTarget(OWNER))
        self.assertEqual(self.threads.destination("daemon"), TelegramTarget(OWNER))
        self.assertIsNone(self.bindings.get("daemon").target)
        self.assertEqual(self.heard, [("spec-1", "1000", None, "served")])

    def test_second_worker(self) -> None:
        """A second one takes nothing until it is chosen."""
        self.switch(False)
        self.ensure("spec-1")
        self.live.append("spec-1")
        self.ensure("spec-2")
        self.live.append("spec-2")
        self.threads.kick()
        self.assertEqual(
            (self.target("spec-1"), self.target("spec-2")), (TelegramTarget(OWNER), None)
        )
        self.heard.clear()
        self.successResultOf(self.threads.serve("spec-2"))
        self.assertEqual(
            self.heard,
            [("spec-1", None, "1000", "unserved"), ("spec-2", "1000", None, "served")],
        )
        self.assertIsNone(self.threads.destination("spec-1"))

    def test_starting_takes_nothing(self) -> None:
        """A worker that is about to run does not take the chat from another one."""
        self.switch(False)
        self.ensure("spec-1")
        self.ensure("spec-2")
        self.assertEqual(self.target("spec-1"), TelegramTarget(OWNER))

    def test_last_one_left(self) -> None:
        """When the served worker is gone and one other runs, that one is served."""
        self.switch(False)
        self.ensure("spec-1")
        self.ensure("spec-2")
        self.live = ["spec-2"]
        self.threads.kick()
        self.assertEqual(self.target("spec-2"), TelegramTarget(OWNER))

    def test_unserve(self) -> None:
        """After a detach nobody is served by himself."""
        self.switch(False)
        self.ensure("spec-1")
        self.live = ["spec-1"]
        self.successResultOf(self.threads.unserve())
        self.threads.kick()
        self.assertIsNone(self.target())
        self.successResultOf(self.threads.serve("spec-1"))
        self.assertEqual(self.target(), TelegramTarget(OWNER))

    def test_serve_refused(self) -> None:
        """In threaded mode, for nobody, and before pairing, serving is refused."""
        self.failureResultOf(self.threads.serve("spec-1"), Refusal)
        self.switch(False)
        self.failureResultOf(self.threads.serve("spec-9"), Refusal)
        self.failureResultOf(self.threads.serve("daemon"), Refusal)
        self.owner = None
        self.failureResultOf(self.threads.serve("spec-1"), Refusal)

    def test_off_and_on(self) -> None:
        """Switched off and on again, everybody has his own Thread as before."""
        for key in ("spec-1", "spec-2"):
            self.ensure(key)
        self.ensure("daemon", "daemon")
        self.live = ["spec-1", "spec-2"]
        self.switch(False)
        self.assertEqual((self.target("spec-1"), self.target("spec-2")), (None, None))
        self.successResultOf(self.threads.serve("spec-1"))
        self.switch(True)
        self.assertEqual(self.target("spec-1"), TelegramTarget(OWNER, 101))
        self.assertEqual(self.target("spec-2"), TelegramTarget(OWNER, 102))
        self.assertEqual(self.target("daemon"), TelegramTarget(OWNER, 103))
        self.assertEqual(len(self.made()), 3)

    def test_on_for_the_first_time(self) -> None:
        """A worker that had only the chat gets a Thread when there are Threads."""
        self.switch(False)
        self.ensure()
        self.switch(True)
        self.assertEqual((self.target(), self.made()), (TelegramTarget(OWNER, 101), ["A"]))

    def test_off_while_making(self) -> None:
        """When Telegram says that there are no Threads, C{getMe} is asked."""
        no = Refused("createForumTopic", 400, "Bad Request: the chat is not a forum")
        self.api.me["has_topics_enabled"] = False
        self.api.script("createForumTopic", no, no, no)
        self.live = ["spec-1"]
        self.ensure()
        self.pass_time(30)
        self.assertEqual(self.threads.mode(), "disabled")
        self.assertEqual((len(self.made()), self.target()), (2, TelegramTarget(OWNER)))

    def test_another_owner(self) -> None:
        """Targets in another person's chat are dropped, and made anew in the owner's."""
        self.ensure()
        self.owner = 2000
        self.threads.kick()
        self.assertEqual(self.target(), TelegramTarget(2000, 102))
        self.assertIn(("spec-1", None, "1000:101", "owner"), self.heard)


class LossTests(ThreadsCase):
    """Is it gone?"""

    def setUp(self) -> None:
        """A worker with a Thread."""
        super().setUp()
        self.loss = ThreadLoss(self.api, self.bindings, self.threads)
        self.ensure()
        self.heard.clear()

    def examine(self) -> str:
        """Ask."""
        return self.successResultOf(self.loss.examine("spec-1"))

    def test_alive(self) -> None:
        """An edit with the last known title that changes nothing proves life."""
        self.assertTrue(verifyObject(IThreadLoss, self.loss))
        self.assertEqual(self.examine(), "alive")
        expected = {"chat_id": OWNER, "message_thread_id": 101, "name": "A"}
        self.assertEqual(self.api.calls[-1].params, expected)
        self.assertEqual(self.heard, [])

    def test_lost(self) -> None:
        """Proven gone: cleared, one new Thread made, told once."""
        self.api.script("editForumTopic", GONE)
        self.assertEqual(self.examine(), "lost")
        self.assertEqual(self.target(), TelegramTarget(OWNER, 102))
        self.assertEqual(
            self.heard,
            [
                ("spec-1", None, "1000:101", "lost"),
                ("spec-1", "1000:102", None, "recreated"),
            ],
        )
        self.assertEqual(self.made(), ["A", "A"])
        self.assertEqual(self.examine(), "alive")

    def test_lost_and_slow(self) -> None:
        """While the new one is made there is no target, and asking makes no third one."""
        answer: Deferred[Any] = Deferred()
        self.api.script("editForumTopic", GONE)
        self.api.script("createForumTopic", answer)
        self.assertEqual(self.examine(), "lost")
        self.assertEqual(self.examine(), "lost")
        self.ensure()
        self.assertEqual((self.target(), len(self.made())), (None, 2))
        answer.callback({"message_thread_id": 7, "name": "A"})
        self.assertEqual(self.heard[-1], ("spec-1", "1000:7", None, "recreated"))

    def test_lost_and_restarted(self) -> None:
        """A leader that dies after the loss leaves an intent: the next one makes the Thread."""
        self.api.script("editForumTopic", GONE)
        self.api.script("createForumTopic", Deferred())
        self.assertEqual(self.examine(), "lost")
        self.restart()
        self.pass_time(31)
        self.assertEqual(self.target(), TelegramTarget(OWNER, 102))
        self.assertEqual(self.heard[-1], ("spec-1", f"{OWNER}:102", None, "recreated"))

    def test_intent_of_a_loss_that_was_not(self) -> None:
        """An intent beside a target is dropped at start."""
        self.successResultOf(self.bindings.begin_provision("spec-1", OWNER, "A"))
        self.restart()
        self.assertEqual(self.bindings.provisions(), [])
        self.assertEqual(self.target(), TelegramTarget(OWNER, 101))

    def test_unknown(self) -> None:
        """No answer, another refusal, no Threads at all: nothing is proven."""
        for method, answer in (
            ("getMe", UNSENT),
            ("getMe", {"id": 1, "has_topics_enabled": False}),
            ("editForumTopic", LOST_ANSWER),
            ("editForumTopic", Refused("x", 400, "Bad Request: message thread not found")),
            ("editForumTopic", Refused("x", 403, "TOPIC_ID_INVALID")),
        ):
            self.api.script(method, answer)
            self.assertEqual(self.examine(), "unknown")
        self.assertEqual((self.target(), self.heard), (TelegramTarget(OWNER, 101), []))

    def test_changed_meanwhile(self) -> None:
        """A Thread that was given away while Telegram was asked is not cleared."""

        def give_away(call: Any) -> Any:
            self.successResultOf(self.threads.reassign("spec-1", OWNER, 50))
            return GONE

        self.api.script("editForumTopic", give_away)
        self.assertEqual(self.examine(), "unknown")
        self.assertEqual(self.target(), TelegramTarget(OWNER, 50))

    def test_asked_once(self) -> None:
        """Several who ask at once share one answer; who cancels disturbs nobody."""
        answer: Deferred[Any] = Deferred()
        self.api.script("getMe", answer)
        asking = [self.loss.examine("spec-1") for _ in range(3)]
        asking[0].cancel()
        self.failureResultOf(asking[0])
        answer.callback(self.api.me)
        self.assertEqual([self.successResultOf(each) for each in asking[1:]], ["alive"] * 2)
        self.assertEqual(len(self.api.made("getMe")), 1)

    def test_chat_itself(self) -> None:
        """The private chat cannot be lost."""
        self.successResultOf(self.threads.reassign("spec-1", OWNER, None))
        self.assertEqual(self.examine(), "unknown")

    def test_title_unknown(self) -> None:
        """Without a last known title, the one it is to have is asked with."""
        self.successResultOf(self.bindings.set_title("spec-1", ""))
        self.assertEqual(self.examine(), "alive")
        self.assertEqual(self.api.calls[-1].params["name"], "A")


class RandomTests(ThreadsCase):
    """Everything lost at random."""

    def _fate(self, random: Random, made: list[tuple[float, int, str]]) -> Any:
        def create(call: Any) -> Any:
            fate = random.choice(["fine", "lost after", "lost before", "unsent", "hang"])
            if fate in ("lost before", "unsent"):
                return LOST_ANSWER if fate == "lost before" else UNSENT
            thread = 500 + len(made)
            made.append((self.clock.seconds() + random.uniform(0, 25), thread, call.params["name"]))
            if fate == "hang":
                return Deferred()
            return LOST_ANSWER if fate == "lost after" else {"message_thread_id": thread}

        return create

    def test_one_thread_each(self) -> None:
        """While service messages come, each binding gets one Thread, whatever is lost or killed."""
        for seed in range(25):
            random = Random(seed)
            made: list[tuple[float, int, str]] = []
            keys = [f"spec-{seed}"]
            self.api.script("createForumTopic", *[self._fate(random, made) for _ in range(60)])
            self.ensure(keys[0])
            for _ in range(4000):
                if random.random() < 0.01:
                    self.restart()
                    self.ensure(keys[0])
                self.clock.advance(0.5)
                due = [each for each in made if each[0] <= self.clock.seconds()]
                for when, thread, name in due:
                    self.service_message(name, thread)
                    made.remove((when, thread, name))
                    made.insert(0, (float("inf"), thread, name))
                if self.target(keys[0]) is not None and not due:
                    break
            self.assertIsNotNone(self.target(keys[0]), f"seed {seed}")
            self.assertEqual(len(made), 1, f"seed {seed}: {made}")
            self.assertEqual(self.target(keys[0]), TelegramTarget(OWNER, made[0][1]))
            self.api._scripts.clear()
            self.successResultOf(self.bindings.forget(keys[0]))


class TableTests(SynchronousTestCase):
    """The steps."""

    def test_ends(self) -> None:
        """From every step the Thread can be bound."""
        steps = {name for name, _ in making.TABLE} | set(making.TABLE.values())
        reachable = {making.BOUND}
        for _ in steps:
            reachable |= {name for (name, _), to in making.TABLE.items() if to in reachable}
        self.assertEqual(reachable, steps)

    def test_unknown_step(self) -> None:
        """A step that the table lacks is an error."""
        self.assertRaises(NoTransition, making.making().feed, making.NOT_MADE)
