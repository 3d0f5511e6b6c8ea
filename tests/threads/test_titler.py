"""Titles follow the mode and the workers, slowly."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from pitelegram.errors import CertainlyUnsent, Refused, Uncertain
from pitelegram.threads.titler import MOST, PERIOD, Titler
from tests.threads.test_provision import ThreadsCase

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
        self.titler = Titler(self.clock, self.threads, lambda: self.busy)
        self.titler.startService()
        self.addCleanup(self.titler.stopService)

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
        name = self.bindings.get("spec-07").thread_name
        self.work("spec-07")
        self.rounds()
        self.work()
        self.rounds(2)
        self.assertEqual(self.edits(), [f"⏳ {name}", f"🟢 {name}"])

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
