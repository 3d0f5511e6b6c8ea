"""The final answer follows from what Pi said."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.comments import read
from pitelegram.bridge.turn import ABORTED, CUT_SHORT, NO_TEXT, Turn


def _said(text: str, reason: str = "stop", **more: Any) -> dict[str, Any]:
    return {"text": text, "stopReason": reason, **more}


class Turns(SynchronousTestCase):
    """L{Turn}."""

    def _answer(self, *messages: dict[str, Any] | None) -> str:
        turn = Turn()
        turn.user()
        for message in messages:
            if message is None:
                turn.user()
            else:
                turn.assistant(message)
        return turn.answer()

    def test_last_message_is_the_answer(self) -> None:
        """What was said before a tool ran is not repeated."""
        self.assertEqual(self._answer(_said("let me see", "toolUse"), _said("done")), "done")

    def test_each_steered_stretch_is_answered(self) -> None:
        """A follow-up inside one run does not hide the answer before it."""
        self.assertEqual(self._answer(_said("one"), None, _said("two")), "one\n\ntwo")

    def test_partial_text_of_an_abort_is_kept(self) -> None:
        """The text so far, then that it was aborted."""
        self.assertEqual(self._answer(_said("half", "aborted")), f"half\n\n{ABORTED}")

    def test_abort_in_a_tool_keeps_what_was_said(self) -> None:
        """The empty message that closes such a run does not wipe the text before it."""
        answer = self._answer(_said("looking", "toolUse"), _said("", "aborted"))
        self.assertEqual(answer, f"looking\n\n{ABORTED}")

    def test_error_is_told(self) -> None:
        """A provider's failure is the answer."""
        answer = self._answer(_said("", "error", errorMessage="500: boom"))
        self.assertEqual(answer, "⚠️ 500: boom")

    def test_retried_error_is_not_told(self) -> None:
        """An error that another attempt made good is no part of the answer."""
        self.assertEqual(self._answer(_said("", "error", errorMessage="429"), _said("ok")), "ok")

    def test_length_is_told(self) -> None:
        """An answer cut short says so."""
        self.assertEqual(self._answer(_said("long", "length")), f"long\n\n{CUT_SHORT}")

    def test_open_comment_and_code(self) -> None:
        """What was cut off swallows nothing that stands behind it."""
        answer = self._answer(_said("half\n<!-- telegram_but", "aborted"))
        self.assertEqual(read(answer).markdown, f"half\n\n{ABORTED}")
        answer = self._answer(_said("```py\nx = 1", "length"))
        self.assertEqual(answer, f"```py\nx = 1\n```\n\n{CUT_SHORT}")
        answer = self._answer(_said("<!-- a"), None, _said("two\n<!-- telegram_button: B -->"))
        self.assertEqual(answer, "two\n<!-- telegram_button: B -->")

    def test_silence_is_told(self) -> None:
        """A run without text still answers."""
        self.assertEqual(self._answer(_said("", "stop")), NO_TEXT)
        self.assertEqual(self._answer(), NO_TEXT)

    def test_empty(self) -> None:
        """Nothing happened at all: there is nothing to tell about a run nobody asked for."""
        self.assertTrue(Turn().empty)
        turn = Turn()
        turn.assistant(_said("", "error"))
        self.assertFalse(turn.empty)

    def test_abort_without_messages(self) -> None:
        """An abort that Pi only reports as such is told."""
        self.assertEqual(Turn().answer(aborted=True), ABORTED)
