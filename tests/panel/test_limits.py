"""Every screen with hostile content: Telegram's limits hold, and the way back is never cut off.

The defects of an earlier panel (section 7.7 of its review): too many buttons or too much text and the
edit fails; formatting characters of somebody's directory shown as formatting, or escaped in labels.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.panel import cleaning, rosterscreens, screens
from pitelegram.panel.interfaces import DISPLAY_MODES, Switches
from pitelegram.panel.picking import Picker
from pitelegram.panel.screens import Button, Screen
from pitelegram.store.pickers import Pickers
from pitelegram.testing.panel import FakeDirectories, FakeSupervisor, a_view
from pitelegram.testing.spec import check_call
from pitelegram.testing.stores import leader_database
from tests.panel.test_screens import DOCUMENT

WAYS_BACK = {"↩️ Back", "↩️ Menu", "✖️ Close"}

STATES = (
    *("stopped", "spawning", "running", "draining", "aborting", "closing", "terminating"),
    *("killing", "backoff", "failed", "adopting", "a state of tomorrow"),
)

NAMES = st.one_of(
    st.text(min_size=1, max_size=300),
    st.sampled_from(
        [
            *(
                "n" * 300,
                "😀" * 300,
                "größe",
                "項目" * 150,
                "<b>&amp;</b>",
                "**x** _y_ `z`",
                "a\nb",
            ),
            *("\u202egnp.exe", "\udc80" * 40, "e\u0301" * 150, "👨‍👩‍👧‍👦" * 30, "\x00", " "),
        ]
    ),
)

VIEWS = st.lists(
    st.builds(
        a_view,
        NAMES,
        st.sampled_from(STATES),
        spec_id=st.just("0123456789abcdef"),
        binding_key=st.sampled_from(["spec-a", "spec-b"]),
        last_error=st.one_of(st.none(), st.text(max_size=200), st.just("<e>😀" * 500)),
        model=st.one_of(st.none(), NAMES),
        queued=st.integers(0, 10**9),
        restarts=st.integers(0, 10**9),
        pid=st.one_of(st.none(), st.just(2**22)),
    ),
    max_size=12,
)

NOTES = st.one_of(st.just(""), st.text(max_size=200), st.just("⚠️ <x> " + "😀" * 2000))


class LimitCase(SynchronousTestCase):
    """What Telegram takes."""

    def units(self, text: str) -> int:
        """The length that Telegram counts at most."""
        return len(text.encode("utf-16-le")) // 2

    def check(self, screen: Screen) -> dict[str, Any]:
        """Assert that a screen can be sent as it is and leads somewhere; return its parameters."""
        params = screen.as_params()
        check_call("sendMessage", {"chat_id": 1, **params})
        self.assertNotIn("parse_mode", params)
        self.assertTrue(params["text"].strip())
        self.assertLessEqual(self.units(params["text"]), 4096)
        rows = params["reply_markup"]["inline_keyboard"]
        self.assertLessEqual(sum(map(len, rows)), 100)
        for row in rows:
            self.assertTrue(0 < len(row) <= 8)
            for button in row:
                self.assertTrue(button["text"])
                self.assertLessEqual(self.units(button["text"]), 64)
                self.assertTrue(0 < len(button["callback_data"].encode()) <= 64)
                button["text"].encode()
        self.assertTrue(WAYS_BACK & {button["text"] for button in rows[-1]}, params["text"][:80])
        return params


class HostileTests(LimitCase):
    """Screens of hostile workers, directories and errors."""

    @given(VIEWS, st.integers(-3, 30), NOTES, st.sampled_from([None, "spec-a", "spec-c", ""]))
    @settings(deadline=None, max_examples=150)
    def test_roster(self, views: Any, page: int, note: str, served: str | None) -> None:
        """Any page of any roster, with and without Threads."""
        serving = None if served is None else rosterscreens.Serving(served or None)
        self.check(rosterscreens.workers(views, page, note, serving))

    @given(VIEWS)
    @settings(deadline=None, max_examples=50)
    def test_questions(self, views: Any) -> None:
        """Every question about every worker."""
        for view in views:
            for verb in ("stop", "restart", "fresh"):
                self.check(rosterscreens.confirm(view, verb))

    def test_a_hundred_workers(self) -> None:
        """Every one of a hundred has its buttons on some page, and every page leads on and back."""
        views = [
            a_view(f"{'😀ü<&' * 60}{number}", last_error="E" * 2000, spec_id=f"{number:016x}")
            for number in range(100)
        ]
        seen: set[str] = set()
        for page in range(-(-len(views) // rosterscreens.PAGE_SIZE)):
            for serving in (None, rosterscreens.Serving(None)):
                params = self.check(rosterscreens.workers(views, page, "note", serving))
                rows = params["reply_markup"]["inline_keyboard"]
                seen |= {b["callback_data"] for row in rows for b in row}
                self.assertIn("➡️", {b["text"] for row in rows for b in row})
        for view in views:
            self.assertLessEqual({f"ptd:l:{view.spec_id}", f"ptd:z:{view.spec_id}"}, seen)

    @given(NAMES, st.lists(NAMES, max_size=40))
    @settings(deadline=None, max_examples=50)
    def test_status(self, profile: str, problems: list[str]) -> None:
        """The status with whatever is wrong."""
        document = {**DOCUMENT, "profile": profile, "problems": [*problems, "p" * 5000]}
        self.check(screens.status(document))

    @given(NOTES, st.lists(NAMES, max_size=60))
    @settings(deadline=None, max_examples=50)
    def test_threads_and_titles(self, note: str, names: list[str]) -> None:
        """The Threads screens with whatever a review found."""
        switches = Switches(on_quit=True, unattended=False)
        found = f"{len(names)} inactive: {', '.join(names)}"
        for words in (note, found):
            self.check(cleaning.threads(switches, "directory-snake", words, "f" * 16))
        for mode in DISPLAY_MODES:
            self.check(cleaning.titling(mode, note))

    @given(NOTES)
    def test_short_ones(self, words: str) -> None:
        """The menu and short answers; of the closed panel nothing is left to press."""
        self.check(screens.menu(words))
        self.check(screens.closing(words if words.strip() else "x"))
        closed = screens.closed().as_params()
        self.assertEqual(closed["reply_markup"]["inline_keyboard"], [])

    @given(st.lists(NAMES.filter(lambda name: "/" not in name), max_size=40, unique=True), NOTES)
    @settings(deadline=None, max_examples=25)
    def test_picker(self, names: list[str], note: str) -> None:
        """Hostile names of directories: listed, opened, asked about."""
        from twisted.internet.task import Clock

        database = leader_database(Clock())
        tree = {"/r": [f"/r/{name}" for name in names], "/" + "s" * 3000: []}
        directories, supervisor = FakeDirectories(tree), FakeSupervisor()
        directories.used = [f"/r/{name}" for name in names]
        picker = Picker(directories, Pickers(database), supervisor, lambda note: screens.menu(note))
        for asking in (
            picker.begin(note),
            picker.show("/r", 1),
            *(picker.confirm(each) for each in directories.used[:3]),
            picker.confirm("/" + "s" * 3000),
        ):
            reply = self.successResultOf(Deferred.fromCoroutine(asking))
            self.check(reply.screen)
        self.successResultOf(database.stopService())


class CutTests(LimitCase):
    """Too many buttons."""

    @given(
        st.lists(st.integers(1, 8), min_size=1, max_size=60),
        st.sampled_from([1, 2]),
    )
    def test_way_back_survives(self, widths: list[int], last: int) -> None:
        """Rows are cut whole and from the end, but never the last one."""
        many = [tuple(Button("x", f"ptd:l:{n}") for _ in range(w)) for n, w in enumerate(widths)]
        end = (Button("📁 New worker…", "ptd:b"), Button("↩️ Menu", "ptd:m"))[-last:]
        params = self.check(Screen("many", (*many, end)))
        rows = params["reply_markup"]["inline_keyboard"]
        self.assertEqual([b["text"] for b in rows[-1]], [b.label for b in end])
        kept = rows[:-1]
        self.assertEqual([len(row) for row in kept], widths[: len(kept)])
        if len(kept) < len(widths):
            self.assertGreater(sum(widths[: len(kept) + 1]) + last, 100)
