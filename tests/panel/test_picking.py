"""The directory picker."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from pitelegram.errors import Refusal
from pitelegram.panel.interfaces import IDirectories
from pitelegram.panel.picking import EXPIRED, PAGE_SIZE, TRUST, Picker
from pitelegram.panel.reply import Reply
from pitelegram.panel.rosterscreens import workers
from pitelegram.panel.screens import Screen
from pitelegram.store.pickers import KEEP_MS, Pickers, token_of
from pitelegram.testing.panel import FakeDirectories, FakeSupervisor, a_view
from pitelegram.testing.stores import leader_database


def data(screen: Screen | None, label: str) -> str:
    """Return the callback data behind a label."""
    assert screen is not None
    return next(b.data for row in screen.rows for b in row if b.label == label)


def labels(screen: Screen | None) -> list[str]:
    """Return all labels in order."""
    assert screen is not None
    return [button.label for row in screen.rows for button in row]


class PickerCase(SynchronousTestCase):
    """A picker over a small tree."""

    tree: dict[str, list[str]] = {
        "/home": ["/home/my project", "/home/größe", "/home/empty"],
        "/home/my project": [f"/home/my project/d{number:02}" for number in range(40)],
    }

    def setUp(self) -> None:
        """Build it."""
        self.clock = Clock()
        self.database = leader_database(self.clock)
        self.addCleanup(self.database.stopService)
        self.directories = FakeDirectories({k: list(v) for k, v in self.tree.items()})
        self.supervisor = FakeSupervisor(a_view("alpha"))
        self.picker = self.make()

    def make(self) -> Picker:
        """Another picker on the same store, as after a restart of the daemon."""
        return Picker(
            self.directories,
            Pickers(self.database),
            self.supervisor,
            lambda note: workers(self.supervisor.views(), 0, note),
        )

    def got(self, answering: Any) -> Reply:
        """Return the reply."""
        from twisted.internet.defer import Deferred

        reply = self.successResultOf(Deferred.fromCoroutine(answering))
        assert isinstance(reply, Reply)
        return reply

    def press(self, screen: Screen | None, label: str) -> Reply:
        """Press a button of a screen."""
        verb, _, argument = data(screen, label).partition(":")[2].partition(":")
        acts: dict[str, Any] = {
            "b": lambda _: self.picker.begin(),
            "d": self.picker.open,
            "s": self.picker.ask,
            "g": self.picker.start,
        }
        return self.got(acts[verb](argument))


class WalkTests(PickerCase):
    """From the root to a start."""

    def test_provides(self) -> None:
        """The fake is what it says."""
        self.assertTrue(verifyObject(IDirectories, self.directories))

    def test_one_root(self) -> None:
        """The picker opens in the only root, which has nothing above it."""
        reply = self.got(self.picker.begin())
        self.assertEqual(
            labels(reply.screen),
            ["📁 my project", "📁 größe", "📁 empty"]
            + ["✅ Start a worker here", "↩️ Back", "↩️ Menu"],
        )

    def test_down_and_up(self) -> None:
        """Into a directory and back; a directory without any says so."""
        first = self.got(self.picker.begin())
        second = self.press(first.screen, "📁 empty")
        assert second.screen is not None
        self.assertIn("No directories in it.", second.screen.text)
        self.assertEqual(self.press(second.screen, "⬆️ ..").screen, first.screen)

    def test_pages(self) -> None:
        """Forty directories make three pages; every one of them can be reached."""
        screen = self.press(self.got(self.picker.begin()).screen, "📁 my project").screen
        seen = []
        for number in range(3):
            assert screen is not None
            self.assertIn(f"page {number + 1} of 3", screen.text)
            shown = [label for label in labels(screen) if label.startswith("📁")]
            self.assertLessEqual(len(shown), PAGE_SIZE)
            seen += shown
            screen = self.press(screen, "➡️").screen
        self.assertEqual(seen, [f"📁 d{number:02}" for number in range(40)])
        assert screen is not None
        self.assertIn("page 1 of 3", screen.text)
        self.assertIn("page 3 of 3", str(self.press(screen, "⬅️").screen))

    def test_start(self) -> None:
        """A start asks first, with what it implies; then the worker is started there."""
        screen = self.press(self.got(self.picker.begin()).screen, "📁 größe").screen
        asked = self.press(screen, "✅ Start a worker here")
        assert asked.screen is not None
        self.assertIn("/home/größe", asked.screen.text)
        self.assertIn(TRUST, asked.screen.text)
        self.assertEqual(self.supervisor.asked, [])
        self.assertEqual(self.press(asked.screen, "↩️ Back").screen, screen)
        reply = self.press(asked.screen, "✅ Start a worker here")
        self.assertEqual(reply.toast, "Starting in größe…")
        assert reply.later is not None
        ended = self.got(reply.later())
        self.assertEqual(self.supervisor.asked, [("start", "/home/größe")])
        self.assertIn("is starting", str(ended.screen))

    def test_start_is_refused(self) -> None:
        """The reason stands on the roster, with its keyboard."""
        asked = self.got(self.picker.confirm("/home/empty"))
        self.supervisor.outcome = Refusal("no-slot", "all 26 letters are taken")
        reply = self.press(asked.screen, "✅ Start a worker here")
        assert reply.later is not None
        ended = self.got(reply.later())
        self.assertIn("⚠️ all 26 letters are taken", str(ended.screen))
        self.assertIn("↩️ Menu", labels(ended.screen))

    def test_several_roots_and_recent(self) -> None:
        """Recent projects come first, then the roots; from a root the way leads up to them."""
        self.directories.tree["/srv"] = []
        self.directories.used = ["/home/größe", "/srv"]
        first = self.got(self.picker.begin())
        self.assertEqual(
            labels(first.screen), ["📁 größe", "📁 home", "📁 srv", "↩️ Back", "↩️ Menu"]
        )
        root = self.press(first.screen, "📁 srv")
        self.assertEqual(self.press(root.screen, "⬆️ ..").screen, first.screen)

    def test_no_root(self) -> None:
        """Without any root there is a sentence and a way back."""
        self.directories.tree.clear()
        reply = self.got(self.picker.begin())
        self.assertIn("None of the configured roots exists", str(reply.screen))
        self.assertEqual(labels(reply.screen), ["↩️ Back", "↩️ Menu"])


class StaleTests(PickerCase):
    """Buttons of another time."""

    def test_after_a_restart(self) -> None:
        """Every button goes on working in another daemon."""
        screen = self.got(self.picker.begin()).screen
        self.picker = self.make()
        self.assertIn("empty", str(self.press(screen, "📁 empty").screen))

    def test_directory_is_gone(self) -> None:
        """The reason is said, and the picker begins again, with its keyboard."""
        screen = self.got(self.picker.begin()).screen
        self.directories.tree["/home"].remove("/home/empty")
        reply = self.press(screen, "📁 empty")
        self.assertIn("no such directory", reply.toast)
        self.assertTrue(reply.alert)
        self.assertIn("📁 größe", labels(reply.screen))

    def test_forgotten_token(self) -> None:
        """A token that nobody knows (any more) leads to the beginning."""
        for answering in (
            self.picker.open("0123456789abcdef:0"),
            self.picker.ask("x"),
            self.picker.start("../../etc"),
            self.picker.open(""),
        ):
            reply = self.got(answering)
            self.assertEqual(reply.toast, EXPIRED)
            self.assertIn("📁 größe", labels(reply.screen))
        self.assertEqual(self.supervisor.asked, [])

    def test_old_tokens_go(self) -> None:
        """A month after it was shown a token is forgotten, when others are shown."""
        pickers = Pickers(self.database)
        self.successResultOf(pickers.show(["/home/a"]))
        self.clock.advance(KEEP_MS / 1000 + 1)
        self.successResultOf(pickers.show(["/home/b"]))
        self.assertIsNone(pickers.directory(token_of("/home/a")))
        self.assertEqual(pickers.directory(token_of("/home/b")), "/home/b")


class LimitTests(PickerCase):
    """Telegram's limits."""

    tree = {"/r": [f"/r/{'ü' * 200}{number}\udc80" for number in range(500)]}

    def test_long_names(self) -> None:
        """Long, broken names fit into labels, data and text; the page is never too full."""
        reply = self.got(self.picker.begin())
        assert reply.screen is not None
        params = reply.screen.as_params()
        self.assertLessEqual(len(params["text"]), 4096)
        rows = params["reply_markup"]["inline_keyboard"]
        buttons = [button for row in rows for button in row]
        self.assertLessEqual(len(buttons), 100)
        for button in buttons:
            self.assertLessEqual(len(button["text"].encode("utf-16-le")) // 2, 64)
            self.assertLessEqual(len(button["callback_data"].encode()), 64)
            button["text"].encode()
