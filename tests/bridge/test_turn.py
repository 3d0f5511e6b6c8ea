"""The final answer follows from what Pi said."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.comments import read
from pitelegram.bridge.failures import failure_text
from pitelegram.bridge.turn import ABORTED, CUT_SHORT, DONE, NO_TEXT, Turn


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

    def test_what_comes_before_the_answer(self) -> None:
        """Words before a tool, and an answer behind which the model goes on by itself, come once."""
        turn = Turn()
        turn.user()
        self.assertEqual(turn.assistant(_said("let me see", "toolUse")), ["let me see"])
        self.assertEqual(turn.assistant(_said("", "toolUse")), [])
        self.assertEqual(turn.assistant(_said("half", "length")), [])
        self.assertEqual(turn.assistant(_said("and more", "toolUse")), ["half", "and more"])
        self.assertEqual(turn.assistant(_said("one", "stop")), [])
        self.assertEqual(turn.assistant(_said("two", "stop")), ["one"])
        self.assertEqual(turn.answer(), "two")

    def test_failed_words_are_no_comment(self) -> None:
        """What a failed attempt had said is said again by the next one."""
        turn = Turn()
        turn.assistant(_said("half of it", "error", errorMessage="terminated"))
        self.assertEqual(turn.assistant(_said("all of it")), [])
        self.assertEqual(turn.answer(), "all of it")

    def test_abort_in_a_tool(self) -> None:
        """What was said before the tool stands there already; the answer is that it was aborted."""
        answer = self._answer(_said("looking", "toolUse"), _said("", "aborted"))
        self.assertEqual(answer, ABORTED)

    def test_nothing_after_comments(self) -> None:
        """Where all was said before, the answer says that it is done."""
        self.assertEqual(self._answer(_said("All is well", "toolUse"), _said("")), DONE)

    def test_error_is_told(self) -> None:
        """A provider's failure is the answer."""
        answer = self._answer(_said("", "error", errorMessage="500: boom"))
        self.assertEqual(answer, failure_text("500: boom"))
        self.assertIn("500: boom", answer)

    def test_prompts_that_fail_the_same_way(self) -> None:
        """Equal failures of one run are told once, equal answers each time."""
        error = _said("", "error", errorMessage="429: slow down")
        self.assertEqual(self._answer(error, None, error), failure_text("429: slow down"))
        self.assertEqual(self._answer(_said("ok"), None, _said("ok")), "ok\n\nok")

    def test_failure(self) -> None:
        """An answer that is nothing but a failure is known as one."""
        turn = Turn()
        turn.assistant(_said("", "error", errorMessage="boom"))
        self.assertEqual(turn.failure, failure_text("boom"))
        turn.user()
        turn.assistant(_said("fine"))
        self.assertIsNone(turn.failure)
        turn = Turn()
        turn.assistant(_said("half", "error", errorMessage="boom"))
        self.assertIsNone(turn.failure)

    def test_spent(self) -> None:
        """All messages of a run are counted, failed ones too; nonsense is not."""
        turn = Turn()
        usage = {"input": 1000, "cacheRead": 200, "output": 30, "cost": {"total": 0.02}}
        turn.assistant(_said("", "toolUse", usage=usage))
        turn.assistant(_said("x", "error", usage=usage))
        turn.assistant(_said("x", usage={"input": "many", "output": -1, "cost": {"total": "x"}}))
        turn.assistant(_said("x", usage=[1]))
        self.assertEqual(turn.spent.words(), "2.4k in · 60 out · $0.040")
        self.assertIsNone(Turn().spent.words())

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
