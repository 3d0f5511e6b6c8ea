"""Screens: what they say, their buttons, and Telegram's limits."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.panel import rosterscreens, screens
from pitelegram.testing.panel import a_view
from pitelegram.testing.spec import check_call

DOCUMENT = {
    "health": "degraded",
    "profile": "default",
    "polling": {"receiving": False, "phase": "retrying"},
    "workers": [{}, {}],
    "attached": {"count": 0},
    "journal": {"pending": 1, "held": 2, "retry_wait": 0, "failed": 3},
    "outbox": {"pending": 4, "sending": 0, "uncertain": 5, "dead_letter": 6},
    "problems": ["the roof is on fire"],
}


def labels(screen: screens.Screen) -> list[list[str]]:
    """Return the labels, row by row."""
    return [[button.label for button in row] for row in screen.rows]


def every_screen() -> list[screens.Screen]:
    """Return one of each kind, and a roster with every state on it."""
    states = (
        *("stopped", "spawning", "running", "draining", "aborting", "closing"),
        *("terminating", "killing", "backoff", "failed", "adopting"),
    )
    views = [a_view(f"w{number}", state) for number, state in enumerate(states)]
    return [
        screens.menu(),
        screens.closing("a short answer"),
        rosterscreens.workers([]),
        rosterscreens.workers(views, 0),
        rosterscreens.workers(views, 1),
        screens.status(DOCUMENT),
        *(rosterscreens.confirm(view, verb) for view in views for verb in ("stop", "restart")),
    ]


class ScreenTests(SynchronousTestCase):
    """Each screen."""

    def test_menu(self) -> None:
        """The root has the contract's labels."""
        self.assertEqual(
            labels(screens.menu()),
            [["👷 Workers", "📁 New worker…"], ["ℹ️ Status", "🧹 Threads"], ["✖️ Close"]],
        )

    def test_life_buttons(self) -> None:
        """What may be done with a worker depends on its state."""
        expected = {
            "running": ["🛑 Stop", "♻️ Restart"],
            "backoff": ["🛑 Stop", "♻️ Restart"],
            "spawning": ["🛑 Stop", "♻️ Restart"],
            "stopped": ["♻️ Retry"],
            "failed": ["♻️ Retry"],
            "adopting": ["♻️ Start anew", "⏳ Keep waiting"],
        }
        for state, right in expected.items():
            rows = labels(rosterscreens.workers([a_view("alpha", state)]))
            self.assertEqual(rows[:2], [["📍 alpha"], right], state)

    def test_worker_line(self) -> None:
        """State and activity, what waits, restarts, the model, and the end of the last error."""
        line = rosterscreens.worker_line
        busy = a_view("a", activity="active", queued=2, restarts=1, model="one/big")
        self.assertEqual(line(busy), "🟢 a · running · active · 2 waiting · restarts 1 · one/big")
        failed = a_view("a", "failed", last_error="x" * 200 + " no such model", model="one/big")
        first, second = line(failed).split("\n")
        self.assertEqual(first, "🔴 a · failed")
        self.assertEqual(len(second.strip()), len("⚠️ ") + rosterscreens.ERROR_TAIL)
        self.assertTrue(second.endswith("x no such model"))
        self.assertEqual(line(a_view("a", "stopped", last_error="old")), "⚪ a · stopped")

    def test_every_start_and_stop_asks(self) -> None:
        """No button of the roster stops, restarts or starts anything by itself."""
        for screen in every_screen():
            if "Pi workers" in screen.text:
                verbs = {button.data.split(":")[1] for row in screen.rows for button in row}
                self.assertEqual(verbs & {"y", "n"}, set(), screen.text)

    def test_confirm(self) -> None:
        """The question names the worker and what it means; its button is called the same."""
        for state, label in (
            ("running", "♻️ Restart"),
            ("failed", "♻️ Retry"),
            ("adopting", "♻️ Start anew"),
        ):
            screen = rosterscreens.confirm(a_view("alpha", state), "restart")
            self.assertTrue(screen.text.startswith(f"{label} alpha?"), screen.text)
            self.assertEqual(labels(screen), [[label], ["↩️ Back"]])
        screen = rosterscreens.confirm(a_view("alpha"), "stop")
        self.assertTrue(screen.text.startswith("🛑 Stop alpha?"))
        self.assertEqual(labels(screen), [["🛑 Stop"], ["↩️ Back"]])

    def test_always_a_way_back(self) -> None:
        """Every screen but the closed one leads somewhere."""
        for screen in every_screen():
            data = [button.data for row in screen.rows for button in row]
            self.assertTrue({"ptd:m", "ptd:w:0", "ptd:x"} & set(data), screen.text)
        self.assertEqual(screens.closed().rows, ())

    def test_lines(self) -> None:
        """A line says state, activity, what waits and how often it was restarted."""
        view = a_view("alpha", activity="active", queued=2, restarts=3)
        self.assertEqual(
            rosterscreens.worker_line(view), "🟢 alpha · running · active · 2 waiting · restarts 3"
        )
        self.assertEqual(rosterscreens.worker_line(a_view("b", "draining")), "🟡 b · draining")

    def test_status(self) -> None:
        """Health, reception, counts and problems."""
        self.assertIn("Waiting updates: 1 ", screens.status(DOCUMENT).text)
        self.assertIn("Waiting updates: 0 ", screens.status(DOCUMENT, own=2).text)
        self.assertIn("Workers: 2\n", screens.status(DOCUMENT).text)
        shared = {**DOCUMENT, "attached": {"count": 3}}
        self.assertIn("Workers: 2 · attached Pis 3\n", screens.status(shared).text)
        text = screens.status(DOCUMENT).text
        for words in (
            *("Status: degraded", "Receiving: no (retrying)", "Workers: 2", "held 2"),
            *("failed 3", "5 uncertain", "6 refused", "⚠️ the roof is on fire"),
        ):
            self.assertIn(words, text)

    def test_pages(self) -> None:
        """Nine workers make two pages; a page that is no more is the nearest one."""
        views = [a_view(f"w{number}") for number in range(9)]
        first = rosterscreens.workers(views, 0)
        self.assertIn("(1/2)", first.text)
        self.assertIn(["⬅️", "➡️"], labels(first))
        self.assertIn("w8", rosterscreens.workers(views, 1).text)
        self.assertEqual(rosterscreens.workers(views, 77), rosterscreens.workers(views, 1))
        self.assertEqual(rosterscreens.workers(views, -1), first)
        self.assertNotIn(["⬅️", "➡️"], labels(rosterscreens.workers(views[:8])))


class LimitTests(SynchronousTestCase):
    """Telegram's limits."""

    def test_clip(self) -> None:
        """Counted in UTF-16 units; no character is cut in half."""
        self.assertEqual(screens.clip("a" * 4096), "a" * 4096)
        self.assertEqual(screens.clip("a" * 4097), "a" * 4095 + "…")
        cut = screens.clip("😀" * 4096)
        self.assertEqual(cut, "😀" * 2047 + "…")

    def test_many_buttons(self) -> None:
        """More than a hundred buttons are cut at a row."""
        row = tuple(screens.Button("x", "ptd:m") for _ in range(7))
        params = screens.Screen("many", (row,) * 20).as_params()
        self.assertEqual(
            [len(each) for each in params["reply_markup"]["inline_keyboard"]], [7] * 14
        )

    def test_every_screen_can_be_sent(self) -> None:
        """Each is a good call, its data short enough, with the longest of names too."""
        long = attrs.evolve(
            a_view("n" * 300, "running", last_error="e" * 500, model="m" * 60), spec_id="f" * 16
        )
        for screen in (
            *every_screen(),
            rosterscreens.workers([long] * 8),
            rosterscreens.confirm(long, "stop"),
        ):
            params = screen.as_params()
            check_call("sendMessage", {"chat_id": 1, **params})
            self.assertLessEqual(len(params["text"]), 4096)
            for row in params["reply_markup"]["inline_keyboard"]:
                for button in row:
                    self.assertLessEqual(len(button["callback_data"].encode()), 64)
                    self.assertLessEqual(len(button["text"]), 64)
