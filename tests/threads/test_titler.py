"""Titles follow the mode and the workers, slowly."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from pitelegram.errors import CertainlyUnsent, Refusal, Refused, Uncertain
from pitelegram.targets import TelegramTarget
from pitelegram.threads.budget import MOST, MOST_ASKED, PERIOD
from pitelegram.threads.titler import Titler
from pitelegram.threads.titles import MODES
from tests.threads.test_provision import OWNER, ThreadsCase

TOO_MANY = CertainlyUnsent("editForumTopic", 429, "Too Many Requests", retry_after=35)
BAD = Refused("editForumTopic", 400, "Bad Request: TOPIC_TITLE_INVALID")
CUT = Uncertain("editForumTopic", 0, "the connection was lost")


class TitlerTests(ThreadsCase):
    """26 workers, all connected, in the mode C{state}."""

    def setUp(self) -> None:
        """Begin, with every title right."""
        super().setUp()
        self.keys = [f"spec-{number:02}" for number in range(26)]
        self.display = "state"
        for key in self.keys:
            self.ensure(key)
        self.busy = dict.fromkeys(self.keys, False)
        self.titler = Titler(self.clock, self.threads, self.threads.budget, lambda: self.busy)
        self.titler.startService()
        self.addCleanup(self.titler.stopService)
        self.rounds(10)
        del self.api.calls[:]

    def edits(self) -> list[Any]:
        """The titles that were asked for."""
        return [call.params["name"] for call in self.api.made("editForumTopic")]

    def work(self, *keys: str) -> None:
        """These work, the others do not."""
        self.busy = {key: key in keys for key in self.keys}

    def rounds(self, count: int = 1) -> None:
        """So many rounds later."""
        self.clock.pump([PERIOD] * count)

    def test_nothing_to_do(self) -> None:
        """No edit without a change."""
        self.rounds(3)
        self.assertEqual(self.edits(), [])

    def test_state(self) -> None:
        """A worker that works shows it, and again when it rests."""
        self.work("spec-07")
        self.rounds()
        self.work()
        self.rounds(2)
        self.assertEqual(self.edits(), ["⏳ spec_07", "🟢 spec_07"])

    def test_silent(self) -> None:
        """A worker that is connected and has not said what it does has no mark."""
        self.busy = {"spec-07": None}
        self.rounds()
        self.assertEqual(self.edits(), ["spec_07"])

    def test_budget(self) -> None:
        """A storm of changes is a few edits a round, and everybody's turn comes."""
        self.work(*self.keys)
        self.rounds()
        self.assertEqual(len(self.edits()), MOST)
        self.rounds(8)
        titles = {self.bindings.get(key).title for key in self.keys}
        self.assertEqual((len(self.edits()), len(titles)), (26, 26))
        self.assertTrue(all(title.startswith("⏳") for title in titles))

    def test_fair(self) -> None:
        """One that changes always does not keep the others waiting."""
        for number in range(MOST * 2):
            self.work(*self.keys[: MOST + 1] if number % 2 else self.keys[1 : MOST + 1])
            self.rounds()
        self.assertTrue(self.bindings.get(self.keys[MOST]).title.startswith("⏳"))

    def test_only_the_connected(self) -> None:
        """A worker that is not there keeps its title."""
        self.display = "names"
        self.busy = {"spec-03": False}
        self.rounds(5)
        self.assertEqual(self.edits(), [self.bindings.get("spec-03").thread_name])

    def test_told_to_wait(self) -> None:
        """After a 429 nothing is asked for as long as Telegram said."""
        self.api.script("editForumTopic", TOO_MANY)
        self.work(*self.keys)
        self.rounds(4)
        self.assertEqual(len(self.edits()), 1)
        self.rounds(1)
        self.assertEqual(len(self.edits()), 1 + MOST)

    def test_a_bad_one_stops_nobody(self) -> None:
        """A refused title is tried once, the others go on; a new one is tried again."""
        self.api.script("editForumTopic", BAD)
        self.work("spec-00", "spec-01", "spec-02")
        self.rounds(4)
        titles = [self.bindings.get(key).title[0] for key in self.keys[:3]]
        self.assertEqual((titles, len(self.edits())), (["🟢", "⏳", "⏳"], 3))
        self.display = "names"
        self.rounds(9)
        self.assertEqual(
            self.bindings.get("spec-00").title, self.bindings.get("spec-00").thread_name
        )

    def test_nobody_can_tell(self) -> None:
        """A title of which nobody can tell is asked for again, with everybody else's after it."""
        self.api.script("editForumTopic", CUT)
        self.work("spec-00", "spec-01")
        self.rounds()
        self.assertEqual(len(self.edits()), 1)
        self.rounds(1)
        self.assertEqual(self.bindings.get("spec-01").title[0], "⏳")
        self.rounds(1)
        self.assertEqual(len(self.edits()), 3)

    def test_deleted_while_it_was_renamed(self) -> None:
        """A title is noted only for the Thread that got it."""
        waiting: Deferred[bool] = Deferred()
        self.api.script("editForumTopic", waiting)
        self.work("spec-00")
        self.rounds()
        target = self.target("spec-00")
        assert target is not None
        self.successResultOf(
            self.bindings.clear_target("spec-00", (target.chat_id, target.thread_id))
        )
        waiting.callback(True)
        self.assertFalse(self.bindings.get("spec-00").title.startswith("⏳"))


class CharacterTests(ThreadsCase):
    """Titles that Telegram or Python might stumble over."""

    def test_odd_directories(self) -> None:
        """Whatever a directory is called, every worker gets its title."""
        names = ["\ufffd", "..", "a\0b", "x" * 5000, "🚀", "\u202e", "ok"]
        for number, name in enumerate(names):
            self.successResultOf(self.threads.ensure(f"spec-{number}", "managed", f"/d/{name}"))
        self.display = "directory-title"
        busy = {f"spec-{number}": False for number in range(len(names))}
        titler = Titler(self.clock, self.threads, self.threads.budget, lambda: busy)
        titler.startService()
        self.addCleanup(titler.stopService)
        self.clock.pump([PERIOD] * 5)
        titles = [self.bindings.get(key).title for key in busy]
        self.assertEqual(titles, [self.threads.title(key) for key in busy])
        self.assertEqual(len(set(titles)), len(names))
        for title in titles:
            title.encode()


class NameCase(ThreadsCase):
    """One worker with a Thread."""

    def setUp(self) -> None:
        """Give it its Thread."""
        super().setUp()
        self.ensure()
        self.place = self.target()

    def name(self, name: str, **more: Any) -> Any:
        """Ask for a name."""
        return self.threads.rename("spec-1", more.pop("place", self.place), name, **more)

    def named(self, name: str, **more: Any) -> Any:
        """The same, done."""
        return self.successResultOf(self.name(name, **more))

    def refused(self, name: str, **more: Any) -> Refusal:
        """The same, refused."""
        refusal = self.failureResultOf(self.name(name, **more), Refusal).value
        assert isinstance(refusal, Refusal)
        return refusal

    def edits(self) -> list[Any]:
        """The titles that were asked for."""
        return [call.params["name"] for call in self.api.made("editForumTopic")]

    def message(self, field: str, topic: dict[str, Any] | None = None) -> dict[str, Any]:
        """A service message of the owner."""
        assert self.place is not None
        return {
            "chat": {"id": OWNER},
            "from": {"id": OWNER, "is_bot": False},
            "message_thread_id": self.place.thread_id,
            field: topic or {},
        }


class RenameTests(NameCase):
    """What /name does."""

    def test_named_and_reset(self) -> None:
        """Title and name are stored together; a reset takes the name away only."""
        self.assertEqual(self.named(" Navi\n gator "), ("Navi gator", "Navi gator"))
        row = self.bindings.get("spec-1")
        self.assertEqual((row.title, row.manual_name), ("Navi gator", "Navi gator"))
        self.assertEqual((row.slot, row.target), ("A", self.place))
        for self.display in MODES:
            self.assertEqual(self.threads.title("spec-1", True), "Navi gator")
        self.display = "letters"
        self.assertEqual(self.named(""), ("A", None))
        row = self.bindings.get("spec-1")
        self.assertEqual((row.title, row.manual_name), ("A", None))
        self.assertEqual(self.edits(), ["Navi gator", "A"])

    def test_same_again(self) -> None:
        """A name that it has already needs no edit."""
        self.named("Navigator")
        self.assertEqual(self.named("Navigator"), ("Navigator", "Navigator"))
        self.assertEqual(self.edits(), ["Navigator"])

    def test_replaces_what_the_user_wrote(self) -> None:
        """The user's own title holds until /name; a reset ends it too."""
        for name, title in (("Navigator", "Navigator"), ("", "A")):
            edited = self.message("forum_topic_edited", {"name": "Mine"})
            self.successResultOf(self.threads.renamed(edited))
            self.assertEqual(self.threads.title("spec-1"), "Mine")
            self.named(name)
            self.assertEqual(self.bindings.get("spec-1").user_title, None)
            self.assertEqual(self.bindings.get("spec-1").title, title)

    def test_survives_the_thread(self) -> None:
        """A new Thread in the place of a lost one has the name from the start."""
        self.named("Navigator")
        self.assertTrue(self.successResultOf(self.threads.lost("spec-1", self.place)))
        self.assertEqual(self.made(), ["A", "Navigator"])
        self.assertEqual(self.bindings.get("spec-1").title, "Navigator")

    def test_another_thread(self) -> None:
        """What was asked for in another Thread than the worker's is refused, and nothing edited."""
        for place in (TelegramTarget(OWNER, 999), TelegramTarget(7, 101)):
            self.assertEqual(self.refused("x", place=place).code, "not-allowed")
        for place in (None, TelegramTarget(OWNER)):
            self.assertEqual(self.refused("x", place=place).code, "unavailable")
        self.assertEqual(self.edits(), [])

    def test_late_acknowledgement(self) -> None:
        """An edit that was under way when the Thread was replaced names nothing."""
        waiting: Deferred[bool] = Deferred()
        self.api.script("editForumTopic", waiting)
        naming = self.name("Navigator")
        self.successResultOf(self.threads.lost("spec-1", self.place))
        waiting.callback(True)
        self.assertEqual(self.failureResultOf(naming, Refusal).value.code, "not-allowed")
        row = self.bindings.get("spec-1")
        self.assertEqual((row.title, row.manual_name), ("A", None))

    def test_rate(self) -> None:
        """Telegram's "wait" is passed on at once, kept, and ends the titler's round too."""
        self.api.script("editForumTopic", TOO_MANY)
        first = self.refused("x")
        self.assertEqual((first.code, first.fields["retryAfter"]), ("rate-limited", 35))
        self.clock.advance(20)
        second = self.refused("x")
        self.assertEqual((second.code, second.fields["retryAfter"]), ("rate-limited", 15))
        self.assertEqual(len(self.edits()), 1)
        self.assertEqual(self.bindings.get("spec-1").manual_name, None)
        self.clock.advance(15)
        self.named("x")

    def test_storm(self) -> None:
        """Names go beyond what titles change by themselves, and not without end."""
        for number in range(MOST_ASKED):
            self.named(f"n{number}")
        refusal = self.refused("one more")
        self.assertEqual((refusal.code, refusal.fields["retryAfter"]), ("rate-limited", PERIOD))
        self.assertGreater(self.threads.budget.wait_for(), 0)

    def test_refusals(self) -> None:
        """Telegram's own refusal is passed on; where nobody can tell, the title is put right later."""
        self.api.script("editForumTopic", BAD)
        refusal = self.refused("x")
        self.assertEqual((refusal.code, refusal.fields["errorCode"]), ("api", 400))
        self.api.script("editForumTopic", CUT)
        self.assertEqual(self.refused("x").code, "unavailable")
        self.assertEqual(self.bindings.get("spec-1").title, "A")
        self.clock.advance(PERIOD)
        self.assertTrue(self.successResultOf(self.threads.retitle("spec-1")))
        self.assertEqual(self.edits(), ["x", "x", "A"])
        self.assertFalse(self.successResultOf(self.threads.retitle("spec-1")))
        self.assertEqual(self.refused(" ").code, "invalid-name")

    def test_in_turn(self) -> None:
        """A title that is being edited and a name do not cross: the name comes last."""
        waiting: Deferred[bool] = Deferred()
        self.api.script("editForumTopic", waiting)
        self.display = "names"
        retitling = self.threads.retitle("spec-1")
        naming = self.name("Navigator")
        self.assertEqual(len(self.edits()), 1)
        waiting.callback(True)
        self.successResultOf(retitling)
        self.successResultOf(naming)
        self.assertEqual(self.edits()[-1], "Navigator")
        self.assertEqual(self.bindings.get("spec-1").title, "Navigator")

    def test_no_threads(self) -> None:
        """In a chat without Threads there is nothing to name."""
        for _ in range(2):
            self.threads.learn({**self.api.me, "has_topics_enabled": False})
        self.assertIn("no Threads", str(self.refused("x")))


class ClosedTests(NameCase):
    """A Thread that the user closed."""

    def close(self) -> None:
        """He closes it."""
        key = self.successResultOf(self.threads.closed(self.message("forum_topic_closed")))
        self.assertEqual(key, "spec-1")

    def test_left_alone(self) -> None:
        """No title is edited while it is closed, by nobody's wish; it is the worker's all the time."""
        self.close()
        self.display = "names"
        self.assertFalse(self.successResultOf(self.threads.retitle("spec-1")))
        self.assertIn("closed", str(self.refused("x")))
        self.restart()
        self.ensure()
        self.assertFalse(self.successResultOf(self.threads.retitle("spec-1")))
        methods = {call.method for call in self.api.calls}
        self.assertEqual((self.edits(), self.target()), ([], self.place))
        self.assertEqual(methods & {"reopenForumTopic", "deleteForumTopic"}, set())
        self.assertEqual(len(self.made()), 1)
        reopened = self.message("forum_topic_reopened")
        self.assertEqual(self.successResultOf(self.threads.reopened(reopened)), "spec-1")
        self.assertTrue(self.successResultOf(self.threads.retitle("spec-1")))

    def test_said_by_telegram(self) -> None:
        """A refusal that names it says the same, and is no failure of the title."""
        closed = Refused("editForumTopic", 400, "Bad Request: TOPIC_CLOSED")
        self.api.script("editForumTopic", closed)
        self.display = "names"
        self.assertTrue(self.successResultOf(self.threads.retitle("spec-1")))
        self.assertTrue(self.bindings.get("spec-1").closed)
        self.assertFalse(self.successResultOf(self.threads.retitle("spec-1")))

    def test_named_while_it_closes(self) -> None:
        """The same for a name."""
        closed = Refused("editForumTopic", 400, "Bad Request: TOPIC_CLOSED")
        self.api.script("editForumTopic", closed)
        self.assertIn("closed", str(self.refused("x")))
        self.assertTrue(self.bindings.get("spec-1").closed)

    def test_strangers(self) -> None:
        """A bot's message, another Thread's and a broken one change nothing."""
        message = self.message("forum_topic_closed")
        for broken in (
            {**message, "from": {"id": 5, "is_bot": True}},
            {**message, "message_thread_id": 999},
            {**message, "chat": None},
            {**message, "from": None},
            {**message, "forum_topic_closed": 1},
        ):
            self.assertIsNone(self.successResultOf(self.threads.closed(broken)))
        self.assertFalse(self.bindings.get("spec-1").closed)


class DirectoryTests(ThreadsCase):
    """Directories that are shared, and that change."""

    display = "directory-snake"

    def at(self, key: str, directory: str, kind: str = "attached") -> Any:
        """A worker registers."""
        row = self.successResultOf(self.threads.ensure(key, kind, directory))
        self.live.append(key)
        return row

    def test_shared(self) -> None:
        """The second of one directory has its letter from the start, and both keep theirs."""
        self.at("ws-1", "/x/app")
        self.at("ws-2", "/x/app")
        self.assertEqual(self.made(), ["app", "app_b"])
        self.assertEqual(self.threads.title("ws-1"), "app_a")
        self.live.remove("ws-2")
        self.successResultOf(self.threads.forget("ws-2"))
        self.at("ws-1", "/x/app")
        self.restart()
        self.assertEqual(self.threads.title("ws-1"), "app_a")

    def test_dormant_neighbour(self) -> None:
        """One that does not live makes nobody show a letter; its own title still is another."""
        self.at("ws-1", "/x/app")
        self.live.clear()
        self.at("ws-2", "/x/app")
        self.assertFalse(self.bindings.get("ws-2").suffixed)
        self.assertNotEqual(self.threads.title("ws-1"), self.threads.title("ws-2"))

    def test_moved(self) -> None:
        """A worker that goes elsewhere keeps Thread and letter; the title follows, and back again."""
        row = self.at("spec-1", "/x/app", "managed")
        place = self.target()
        self.successResultOf(self.threads.moved("spec-1", "/y/site"))
        now = self.bindings.get("spec-1")
        self.assertEqual((now.title, now.directory), ("site", "/y/site"))
        self.assertEqual((now.slot, now.thread_name), (row.slot, row.thread_name))
        self.successResultOf(self.threads.moved("spec-1", "/x/app"))
        now = self.bindings.get("spec-1")
        self.assertEqual((now.title, now.target), ("app", place))
        self.assertEqual(len(self.made()), 1)
        self.successResultOf(self.threads.moved("nobody", "/z"))
        self.threads.budget.pause()
        self.successResultOf(self.threads.moved("spec-1", "/y/site", True))
        self.assertEqual(self.bindings.get("spec-1").title, "app")

    def test_moved_into_company(self) -> None:
        """Who comes into another's directory makes both show their letters."""
        self.at("spec-1", "/x/app", "managed")
        self.at("spec-2", "/y/site", "managed")
        self.successResultOf(self.threads.moved("spec-2", "/x/app"))
        titles = [self.threads.title(key) for key in ("spec-1", "spec-2")]
        self.assertEqual(titles, ["app_a", "app_b"])
