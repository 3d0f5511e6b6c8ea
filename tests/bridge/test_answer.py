"""Prompts and deliveries have the form that the contract names."""

from __future__ import annotations

import re

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge import labels
from pitelegram.bridge.answer import button_call, deliveries, notice, text_calls
from pitelegram.bridge.prompt import prompt_text, summary


class Prompts(SynchronousTestCase):
    """L{prompt_text} and L{summary}."""

    def test_layout(self) -> None:
        """The tag and the text."""
        self.assertEqual(prompt_text("hi"), "[telegram] hi")
        self.assertEqual(prompt_text("hi", "Atlas"), "[telegram|thread:Atlas] hi")

    def test_names_cannot_forge_a_tag(self) -> None:
        """A Thread's name stays inside its tag."""
        self.assertEqual(prompt_text("hi", "a] x\n[b|c"), "[telegram|thread:a x b c] hi")

    def test_summary(self) -> None:
        """Five words or forty characters, without the tag."""
        self.assertEqual(summary("[telegram|thread:A] one two"), "one two")
        self.assertEqual(
            summary("[telegram] one two three four five six"), "one two three four five…"
        )
        self.assertEqual(summary("x" * 50), "x" * 40 + "…")


class Deliveries(SynchronousTestCase):
    """L{deliveries}."""

    def test_one(self) -> None:
        """A short text is one call without chat or thread."""
        (delivery,) = notice("n", "hello", 5)
        self.assertEqual(delivery["delivery"]["calls"][0]["params"]["text"], "hello")
        self.assertEqual(delivery["delivery"]["createdAtMs"], 5)
        self.assertNotIn("chat_id", delivery["delivery"]["calls"][0]["params"])

    def test_more_than_fit_into_one(self) -> None:
        """More than 64 calls become several deliveries in order."""
        calls = text_calls("x" * 4096 * 130)
        parts = deliveries("final-1", "final", calls, 0)
        self.assertEqual(
            [part["delivery_id"] for part in parts], ["final-1", "final-1.2", "final-1.3"]
        )
        self.assertEqual([len(part["delivery"]["calls"]) for part in parts], [64, 64, 2])
        self.assertEqual([call for part in parts for call in part["delivery"]["calls"]], calls)

    def test_ids_are_legal(self) -> None:
        """Whatever it is made of, an id keeps to the grammar."""
        for name in ("a b", "é" * 300, "x/y"):
            for part in deliveries(name, "notice", text_calls("x"), 0):
                self.assertTrue(re.fullmatch(r"[A-Za-z0-9._-]{1,128}", part["delivery_id"]))

    def test_button(self) -> None:
        """One button below the text."""
        call = button_call("t", "L", "again:1")
        self.assertEqual(
            call["params"]["reply_markup"],
            {"inline_keyboard": [[{"text": "L", "callback_data": "again:1"}]]},
        )


class Labels(SynchronousTestCase):
    """L{labels}."""

    def test_unknown_command_names_what_exists(self) -> None:
        """Every command is in the answer; the daemon's own ones are pointed to."""
        for command in labels.COMMANDS:
            self.assertIn(f"/{command} ", labels.unknown_command("bash"))
        self.assertIn("🛠 Control", labels.unknown_command("daemon"))
        many = [f"t{number}" for number in range(35)]
        self.assertIn("🧩 /t29\n… and 5 more", labels.unknown_command("bash", True, many))

    def test_abort_and_stop(self) -> None:
        """The fixed texts of both."""
        self.assertEqual(labels.aborted(False), "No active turn.")
        self.assertEqual(
            labels.aborted(True, cleared=1), "Aborted current turn. Cleared 1 queued turn."
        )
        self.assertEqual(
            labels.aborted(False, cleared=2), "No active turn. Cleared 2 queued turns."
        )

    def test_uncertain_names_the_prompt(self) -> None:
        """The operator can tell which prompt is meant."""
        self.assertIn("“fix the bug”", labels.uncertain("[telegram] fix the bug"))
