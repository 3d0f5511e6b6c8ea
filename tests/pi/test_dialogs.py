"""Open dialogs of Pi's extensions."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.pi.dialogs import OpenDialogs, cancelled


class OpenDialogsTests(SynchronousTestCase):
    """L{OpenDialogs}."""

    def setUp(self) -> None:
        """No dialog."""
        self.clock = Clock()
        self.dialogs = OpenDialogs(self.clock)

    def opened(self, method: str, **fields: Any) -> bool:
        """Open dialog C{d}."""
        return self.dialogs.opened({"id": "d", "method": method, **fields})

    def test_answered_once(self) -> None:
        """The first answer is sent, the second is not."""
        self.assertTrue(self.opened("input", title="t"))
        record = self.dialogs.answer("d", {"value": ""})
        self.assertEqual(record, {"type": "extension_ui_response", "id": "d", "value": ""})
        self.assertIsNone(self.dialogs.answer("d", {"value": "again"}))
        self.assertIsNone(self.dialogs.answer("other", {"value": "x"}))

    def test_answers_must_fit(self) -> None:
        """An answer of the wrong kind is a fault of the caller and leaves the dialog open."""
        self.opened("confirm")
        for answer in (
            {"value": "x"},
            {"confirmed": "yes"},
            {},
            {"cancelled": False},
            {"confirmed": True, "cancelled": True},
        ):
            self.assertRaises(ValueError, self.dialogs.answer, "d", answer)
        self.assertTrue(self.dialogs.answer("d", {"confirmed": True}))
        self.opened("select", options=["a"])
        self.assertRaises(ValueError, self.dialogs.answer, "d", {"confirmed": True})
        self.assertTrue(self.dialogs.answer("d", {"cancelled": True}))

    def test_malformed(self) -> None:
        """What cannot be shown is no open dialog."""
        self.assertFalse(self.opened("select"))
        self.assertFalse(self.opened("select", options=["a", 1]))
        self.assertFalse(self.opened("select", options=[]))
        self.assertFalse(self.opened("notify"))
        self.assertFalse(self.dialogs.opened({"id": 1, "method": "input"}))
        self.assertEqual(self.dialogs.cancel_all(), [])

    def test_own_timeout(self) -> None:
        """A dialog whose own time-out has passed takes no answer."""
        self.opened("confirm", timeout=700)
        self.clock.advance(0.8)
        self.assertIsNone(self.dialogs.answer("d", {"confirmed": True}))
        self.assertEqual(self.dialogs.cancel_all(), [])

    def test_cancel_all(self) -> None:
        """All open dialogs are cancelled once."""
        self.dialogs.opened({"id": "a", "method": "editor"})
        self.dialogs.opened({"id": "b", "method": "confirm"})
        self.assertEqual([record["id"] for record in self.dialogs.cancel_all()], ["a", "b"])
        self.assertEqual(self.dialogs.cancel_all(), [])

    def test_cancelled(self) -> None:
        """Only what waits for an answer is cancelled."""
        self.assertEqual(cancelled({"id": "a", "method": "select"})["cancelled"], True)
        self.assertIsNone(cancelled({"id": "a", "method": "notify"}))
        self.assertIsNone(cancelled({"method": "select"}))
