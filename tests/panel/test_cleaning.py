"""The Threads screen."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from pitelegram.errors import ConfigError, Refusal
from pitelegram.panel.cleaning import Cleaning
from pitelegram.panel.interfaces import ICleanup
from pitelegram.panel.reply import Reply
from pitelegram.testing.panel import FakeCleanup, FakeTitleModes
from tests.panel.test_picking import data, labels


class CleaningTests(SynchronousTestCase):
    """L{Cleaning}."""

    def setUp(self) -> None:
        """Build it."""
        self.cleanup = FakeCleanup()
        self.titles = FakeTitleModes()
        self.cleaning = Cleaning(self.cleanup, self.titles)

    def got(self, answering: Any) -> Reply:
        """Return the reply."""
        reply = self.successResultOf(Deferred.fromCoroutine(answering))
        assert isinstance(reply, Reply)
        return reply

    def test_provides(self) -> None:
        """The fake is what it says."""
        self.assertTrue(verifyObject(ICleanup, self.cleanup))

    def test_screen(self) -> None:
        """Both switches as they are, the review, and the way back; nothing to delete yet."""
        reply = self.got(self.cleaning.show())
        self.assertEqual(
            labels(reply.screen),
            ["🔍 Review inactive", "🟢 Delete tab on quit", "⚫ Unattended cleanup"]
            + ["🏷 Titles: letters", "↩️ Menu"],
        )
        self.assertEqual(self.cleanup.asked, [])

    def test_review(self) -> None:
        """What was found is named; only then, and after a question, something is deleted."""
        self.cleanup.found = ["A", "C"]
        reviewed = self.got(self.cleaning.review(""))
        self.assertIn("2 inactive: A, C", str(reviewed.screen))
        asking = data(reviewed.screen, "🗑 Delete reviewed").rpartition(":")[2]
        asked = self.got(self.cleaning.ask(asking))
        self.assertEqual(self.cleanup.asked, ["review"])
        confirmed = data(asked.screen, "🗑 Delete reviewed").rpartition(":")[2]
        deleting = self.got(self.cleaning.delete(confirmed))
        assert deleting.later is not None
        ended = self.got(deleting.later())
        self.assertEqual(self.cleanup.asked, ["review", "delete op1"])
        self.assertIn("Deleted 2; kept 0.", str(ended.screen))
        self.assertNotIn("🗑 Delete reviewed", labels(ended.screen))

    def test_nothing_found(self) -> None:
        """That is said, and there is nothing to delete."""
        reply = self.got(self.cleaning.review(""))
        self.assertEqual(reply.toast, "No proven inactive tabs.")
        self.assertNotIn("🗑 Delete reviewed", labels(reply.screen))

    def test_failures(self) -> None:
        """Each failure is said on a screen with its keyboard."""
        self.cleanup.fails = Refusal("x", "the store is closed")
        reply = self.got(self.cleaning.review(""))
        self.assertEqual(reply.toast, "Could not safely review inactive tabs.")
        self.assertIn("🔍 Review inactive", labels(reply.screen))
        self.cleanup.fails = ConfigError("telegram.json is not valid JSON")
        reply = self.got(self.cleaning.flip("unattended"))
        self.assertEqual(reply.toast, "Could not change the cleanup setting.")
        self.assertFalse(self.cleanup.now.unattended)
        deleting = self.got(self.cleaning.delete("old"))
        self.cleanup.fails = Refusal("stale", "review again")
        assert deleting.later is not None
        self.assertIn("⚠️ review again", str(self.got(deleting.later()).screen))

    def test_switches(self) -> None:
        """Each flips, and says what that means."""
        for name, words in (
            ("on_quit", "Tabs are preserved on quit."),
            ("on_quit", "Tabs delete on graceful quit."),
            ("unattended", "Provably inactive tabs now delete unattended."),
            ("unattended", "Unattended deletion is off."),
        ):
            reply = self.got(self.cleaning.flip(name))
            self.assertEqual(reply.toast, words)
        self.assertIn("🟢 Delete tab on quit", labels(reply.screen))
