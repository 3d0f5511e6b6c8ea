"""The Threads screen."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from pitelegram.errors import ConfigError, Refusal
from pitelegram.panel.cleaning import Cleaning
from pitelegram.panel.interfaces import DISPLAY_MODES, ICleanup, ITitleModes
from pitelegram.panel.reply import Reply
from pitelegram.testing.panel import FakeCleanup, FakeTitleModes
from tests.panel.test_picking import data, labels


class CleaningCase(SynchronousTestCase):
    """L{Cleaning} over fakes."""

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


class CleaningTests(CleaningCase):
    """Inactive Threads and the switches."""

    def test_provides(self) -> None:
        """The fake is what it says."""
        self.assertTrue(verifyObject(ICleanup, self.cleanup))
        self.assertTrue(verifyObject(ITitleModes, self.titles))

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


class TitlingTests(CleaningCase):
    """How Threads are titled."""

    def marked(self, reply: Reply) -> list[str]:
        """Return the labels that carry the mark."""
        return [label[2:] for label in labels(reply.screen) if label.startswith("🟢")]

    def test_screen_of_titles(self) -> None:
        """The Threads screen leads there; all five modes, the one in force marked; two ways back."""
        self.titles.now = "directory-title"
        opened = self.got(self.cleaning.show())
        self.assertEqual(data(opened.screen, "🏷 Titles: directory-title"), "ptd:tt")
        reply = self.got(self.cleaning.titles())
        assert reply.screen is not None
        self.assertEqual([label[2:] for label in labels(reply.screen)[:5]], list(DISPLAY_MODES))
        self.assertEqual(self.marked(reply), ["directory-title"])
        self.assertEqual(labels(reply.screen)[5:], ["↩️ Back", "↩️ Menu"])
        for mode in DISPLAY_MODES:
            self.assertIn(f"{mode}:", reply.screen.text)

    def test_choose(self) -> None:
        """Each button chooses its mode and shows it marked."""
        for mode in DISPLAY_MODES:
            screen = self.got(self.cleaning.titles()).screen
            mark = "🟢" if mode == self.titles.now else "⚫"
            chosen = data(screen, f"{mark} {mode}").removeprefix("ptd:ts:")
            reply = self.got(self.cleaning.retitle(chosen))
            self.assertEqual(self.titles.now, mode)
            self.assertEqual((reply.toast, self.marked(reply)), (f"Titles: {mode}", [mode]))

    def test_not_chosen(self) -> None:
        """A mode that does not exist and a file that cannot be written are said, with the screen."""
        reply = self.got(self.cleaning.retitle("capitals"))
        self.assertIn("no such way", reply.toast)
        self.titles.fails = ConfigError("telegram.json is not valid JSON")
        reply = self.got(self.cleaning.retitle("names"))
        self.assertTrue(reply.alert)
        self.assertIn("Could not change", str(reply.screen))
        self.assertEqual(self.marked(reply), ["letters"])
