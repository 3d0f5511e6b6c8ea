"""The panel under forged presses and odd words: always an answer, never a traceback it could avoid."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.botapi.limits import SendGate
from pitelegram.errors import CertainlyUnsent, Refusal
from pitelegram.panel.picking import short
from pitelegram.panel.switches import CleanupSwitches
from pitelegram.routing.gate import Sort, look
from pitelegram.supervisor.roots import Roots
from tests.fuzz.test_updates import an_update, odd
from tests.panel.test_panel import CHAT, PanelCase
from tests.routing.support import BOT, OWNER

FORGED = (
    *("m", "x", "t", "w", "w:0", "w:99999", "w:-1", "z:id-alpha", "z", "r:id-alpha", "y:id-alpha"),
    *("n:id-alpha:4711", "n:id-alpha:::", "n", "k:id-alpha", "k", "f:id-alpha", "fx:id-alpha:4711"),
    *("fx", "l:id-alpha", "l", "c:id-alpha", "b", "d", "d:zz:0", "d:::", "s:xx", "s", "g", "g:x:0"),
    *(
        "th",
        "tr",
        "td",
        "td:op",
        "tx:op",
        "tx",
        "tf:on_quit",
        "tt",
        "ts:letters",
        "ts",
        "",
        "q",
        ":::",
    ),
)


class ForgedTests(PanelCase):
    """The owner's own client may send any data."""

    def test_any_press(self) -> None:
        """Every verb with every kind of argument, in updates of odd shapes, is answered."""
        self.successResultOf(self.bindings.remember_messages(OWNER, [50], "daemon", True))
        random, handled = Random(7), 0
        for number in range(2, 6000):
            data = random.choice(("ob:", "ob:x", *(f"ptd:{each}" for each in FORGED)))
            update = odd(random, an_update(random, number, OWNER, data))
            seen = look(update, OWNER, BOT)
            if seen.sort is not Sort.ADMITTED or seen.kind != "callback_query":
                continue
            if self.panel.wants(seen.kind, update, None):
                before = len(self.api.made("answerCallbackQuery"))
                self.successResultOf(self.panel.handle(seen.kind, update))
                self.assertEqual(len(self.api.made("answerCallbackQuery")), before + 1)
                handled += 1
        self.assertGreater(handled, 400)
        self.assertEqual(self.flushLoggedErrors(), [])

    def test_words_that_fail(self) -> None:
        """A command that fails for a reason that nobody thought of is answered, too."""

        def broken(directory: str) -> str:
            raise OSError("the disk is gone")

        self.supervisor.directories.resolve = broken  # type: ignore[method-assign]
        self.write("/workers start /projects")
        self.assertEqual(len(self.flushLoggedErrors(OSError)), 1)
        (sent,) = self.api.made("sendMessage")
        self.assertIn("⚠️ That failed", sent.params["text"])
        self.assertIn("↩️ Menu", str(sent.params["reply_markup"]))


class StormTests(PanelCase):
    """More presses than the chat's budget has edits."""

    def setUp(self) -> None:
        """With the real budget."""
        super().setUp()
        self.clock = Clock()
        self.gate: Any = SendGate(self.clock)
        self.panel = self.make()

    def texts(self) -> list[str]:
        """What the panel became."""
        return [call.params["text"] for call in self.api.made("editMessageText")]

    def test_many_presses(self) -> None:
        """Each is answered at once, and no press waits for the screen of another; the last one shows."""
        for _ in range(500):
            self.successResultOf(self.press("ptd:m"))
            self.successResultOf(self.press("ptd:w:0"))
            self.successResultOf(self.press("ptd:t"))
        self.assertEqual(len(self.api.made("answerCallbackQuery")), 1500)
        self.clock.pump([0.5] * 20)
        self.assertLess(len(self.texts()), 20)
        self.assertIn("Status:", self.texts()[-1])
        self.assertEqual(self.gate.blocked_for(CHAT), 0.0)

    def test_flood_limit(self) -> None:
        """A screen that a flood limit kept away comes after it, as it is to be by then."""
        wait = CertainlyUnsent("editMessageText", 429, "Too Many Requests", retry_after=30.0)
        self.api.script("editMessageText", wait, wait)
        self.successResultOf(self.press("ptd:m"))
        self.successResultOf(self.press("ptd:w:0"))
        self.clock.pump([1.0] * 29)
        self.assertEqual(len(self.texts()), 1)
        self.clock.pump([1.0] * 33)
        self.assertEqual(len(self.texts()), 3)
        self.assertIn("Pi workers", self.texts()[-1])


class CountingRoots(Roots):
    """Counts looks at real paths."""

    looks = 0

    def contains(self, path: Path) -> bool:
        """See L{Roots.contains}."""
        self.looks += 1
        return super().contains(path)


class WordsTests(SynchronousTestCase):
    """What reaches further in."""

    def test_unknown_switch(self) -> None:
        """There are two switches; any other word is refused and changes nothing."""
        nothing: Any = None
        switches = CleanupSwitches(nothing, nothing, Clock())
        for name in ("", "bogus", "__class__"):
            self.failureResultOf(switches.flip(name), Refusal)

    def test_many_directories(self) -> None:
        """Thousands of them cost one look; only links are followed, and none out of the roots."""
        root = Path(self.mktemp()).resolve()
        (root / "in").mkdir(parents=True)
        for number in range(500):
            (root / "in" / f"d{number:03}").mkdir()
        (root / "in" / "out").symlink_to(root.parent)
        (root / "in" / "same").symlink_to(root / "in" / "d001")
        roots = CountingRoots([root])
        found = [path.name for path in roots.children(root / "in")]
        self.assertEqual(found, [*(f"d{number:03}" for number in range(500)), "same"])
        self.assertLess(roots.looks, 5)
        self.assertEqual(roots.children(root.parent), [])

    def test_names_that_pretend(self) -> None:
        """Line ends and signs that turn a line round in a directory's name are shown as such."""
        self.assertEqual(
            short("/a\n\nStart it?\u202e/b\ud800"), "/a\ufffd\ufffdStart it?\ufffd/b\ufffd"
        )
        self.assertEqual(short("/für 👩\u200d💻 b"), "/für 👩\u200d💻 b")

    def test_directories_that_no_system_takes(self) -> None:
        """A name that is too long, a path that is, and a loop of links are no directories."""
        root = Path(self.mktemp()).resolve()
        root.mkdir()
        (root / "loop").symlink_to(root / "loop")
        roots = Roots([root, root / ("n" * 300)])
        for name in ("n" * 300, "/".join(["deep" * 20] * 60), "loop", "loop/x"):
            self.assertRaises(Refusal, roots.resolve, f"{root}/{name}")
        self.assertEqual(roots.real, [root])
