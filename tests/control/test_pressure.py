"""Figures about the store: shown when they make sense together, else zeros and C{degraded}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.control.pressure import LARGE_LOG, TABLES, checked, problems
from pitelegram.testing.control import quiet_figures

JOURNAL = {
    "total": 6,
    "states": {
        "pending": 1,
        "forwarding": 1,
        "held": 0,
        "retry_wait": 0,
        "failed": 0,
        "settled": 4,
    },
    "eligible": 3,
    "overdue": 1,
    "retention_seconds": 172_800,
    "storage_pressure": True,
}
OUTBOX = {
    "total": 6,
    "states": {
        "pending": 1,
        "sending": 0,
        "retry_wait": 1,
        "uncertain": 2,
        "dead_letter": 1,
        "hold": 1,
    },
    "unresolved": 4,
}
TOMBSTONES = {
    "total": 5000,
    "eligible": 904,
    "overdue": 904,
    "retention_seconds": 3_888_000,
    "retention_count": 4096,
    "storage_pressure": True,
}
COMMANDS = {
    "total": 4,
    "states": {"reserved": 0, "send_started": 2, "accepted": 2, "rejected": 0, "uncertain": 0},
    "stale_active": 1,
    "eligible": 0,
    "retry_horizon_seconds": 604_800,
    "retention_seconds": 2_592_000,
    "retention_count": 4096,
    "storage_pressure": True,
}
AUDIT = {
    "total": 9,
    "eligible": 4,
    "overdue": 0,
    "retention_seconds": 7_776_000,
    "storage_pressure": False,
}
FULL = {"journal": JOURNAL, "outbox": OUTBOX, "tombstones": TOMBSTONES, "commands": COMMANDS}


class CheckedTests(SynchronousTestCase):
    """L{checked}."""

    def test_shape(self) -> None:
        """Exactly these parts, whatever is given."""
        names = {
            "status",
            "pressure",
            "database_bytes",
            "wal_bytes",
            "disk",
            "commits",
            "maintenance",
            "journal",
            "outbox",
            "tombstones",
            "commands",
            "audit",
            "messages",
            "spawns",
        }
        for raw in ({}, quiet_figures(), {"secret": "x", **quiet_figures()}):
            self.assertEqual(set(checked(raw)), names)

    def test_right(self) -> None:
        """What makes sense is shown as it is."""
        shown = checked(quiet_figures(**FULL, audit=AUDIT))
        self.assertEqual(shown["status"], "ok")
        for name, figures in {**FULL, "audit": AUDIT}.items():
            self.assertEqual(shown[name], figures)

    def wrong(self, name: str, value: Any) -> None:
        """A part with that value is shown as nothing, and the whole as degraded."""
        shown = checked(quiet_figures(**{name: value}))
        self.assertEqual(shown["status"], "degraded", (name, value))
        self.assertNotEqual(shown[name], value)
        if name in TABLES:
            self.assertEqual(shown[name], TABLES[name].zeros())

    def test_wrong_tables(self) -> None:
        """Missing and additional members, wrong types, sums and flags."""
        for name, figures in FULL.items():
            for wrong in (
                {k: v for k, v in figures.items() if k != "total"},
                {**figures, "instruction": "x"},
                {**figures, "total": True},
                {**figures, "total": -1},
                {**figures, "total": 1.0},
                {**figures, "total": "6"},
                {**figures, "total": 2**63},
                {**figures, "total": figures["total"] + 1 if "states" in figures else 7},
                [],
                "zeros",
            ):
                self.wrong(name, wrong)
        for name in ("journal", "tombstones", "commands"):
            self.wrong(name, {**FULL[name], "storage_pressure": False})
            self.wrong(name, {**FULL[name], "storage_pressure": 1})
            self.wrong(name, {**FULL[name], "eligible": FULL[name]["total"] + 1})

    def test_wrong_sums(self) -> None:
        """Figures that contradict each other."""
        self.wrong("journal", {**JOURNAL, "states": {**JOURNAL["states"], "held": True}})
        self.wrong("journal", {**JOURNAL, "states": {**JOURNAL["states"], "other": 0}})
        self.wrong("journal", {**JOURNAL, "states": []})
        self.wrong("journal", {**JOURNAL, "overdue": 4})
        self.wrong("journal", {**JOURNAL, "eligible": 5})
        self.wrong("outbox", {**OUTBOX, "unresolved": 3})
        self.wrong("tombstones", {**TOMBSTONES, "eligible": 905})
        self.wrong("commands", {**COMMANDS, "stale_active": 3})
        self.wrong("commands", {**COMMANDS, "eligible": 1})

    def test_wrong_rest(self) -> None:
        """Sizes, disk, commits and maintenance."""
        quiet = quiet_figures()
        for name, value in (
            ("database_bytes", -1),
            ("database_bytes", True),
            ("wal_bytes", None),
            ("disk", "/dev/sda1"),
            ("disk", ["ok"]),
            ("commits", {**quiet["commits"], "p50_us": 21}),
            ("commits", {**quiet["commits"], "window": 3}),
            ("commits", {**quiet["commits"], "count": False}),
            ("commits", None),
            ("maintenance", {**quiet["maintenance"], "status": "fine"}),
            ("maintenance", {**quiet["maintenance"], "last_completed_at_ms": None}),
            ("maintenance", {**quiet["maintenance"], "status": "never"}),
            ("maintenance", {**quiet["maintenance"], "last_completed_at_ms": "today"}),
            ("maintenance", {**quiet["maintenance"], "error": "in /home"}),
        ):
            self.wrong(name, value)

    def test_not_there_yet(self) -> None:
        """Receipts that nobody can count yet are no fault."""
        shown = checked(quiet_figures(commands=None))
        self.assertEqual((shown["status"], shown["commands"]["total"]), ("ok", 0))

    def test_foreign_part(self) -> None:
        """A part that nobody knows is not shown, and is a fault."""
        shown = checked(quiet_figures(paths=["/home"]))
        self.assertEqual(shown["status"], "degraded")
        self.assertNotIn("paths", shown)

    def test_pressure(self) -> None:
        """The whole presses when a table, the disk or the log does."""
        for changes, right in (
            ({}, False),
            ({"audit": AUDIT}, False),
            ({"journal": JOURNAL}, True),
            ({"commands": COMMANDS}, True),
            ({"disk": "low"}, True),
            ({"disk": "full"}, True),
            ({"disk": "unknown"}, False),
            ({"wal_bytes": LARGE_LOG}, False),
            ({"wal_bytes": LARGE_LOG + 1}, True),
        ):
            self.assertIs(checked(quiet_figures(**changes))["pressure"], right, changes)


class ProblemTests(SynchronousTestCase):
    """L{problems}."""

    def test_sentences(self) -> None:
        """Each kind of pressure has its sentence; what is quiet has none."""
        for changes, words in (
            ({}, ()),
            ({"audit": AUDIT}, ()),
            ({"journal": JOURNAL}, ("(journal)",)),
            ({"journal": JOURNAL, "tombstones": TOMBSTONES}, ("(journal, tombstones)",)),
            ({"outbox": OUTBOX}, ("1 answer(s) are held back",)),
            ({"commands": COMMANDS}, ("1 command(s) were never ended",)),
            ({"disk": "low"}, ("nearly full",)),
            ({"disk": "full"}, ("the disk is full",)),
            ({"wal_bytes": 2 * LARGE_LOG}, ("log has grown large",)),
            ({"database_bytes": -1}, ("make no sense together",)),
        ):
            found = problems(checked(quiet_figures(**changes)))
            self.assertEqual(len(found), len(words), found)
            for sentence, word in zip(found, words, strict=True):
                self.assertIn(word, sentence)
