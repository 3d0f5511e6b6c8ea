"""Answers of a worker that is gone."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.leftover import leftover
from pitelegram.errors import BusBadRequest


def raw(text: Any, **more: Any) -> dict[str, Any]:
    """Return an answer that was not rendered."""
    delivery = {"text": text, "createdAtMs": 5, "anchor": None, "footer": None, **more}
    return {"delivery_id": "final-x", "kind": "raw", "delivery": delivery}


def texts(answer: dict[str, Any]) -> list[str]:
    """Return what it comes to say."""
    return [
        call["params"]["text"] for each in leftover(answer) for call in each["delivery"]["calls"]
    ]


class LeftoverTests(SynchronousTestCase):
    """What is said, and how."""

    def test_rendered_already(self) -> None:
        """Nothing is changed."""
        answer = {"delivery_id": "x", "kind": "final", "delivery": {"kind": "final", "calls": [1]}}
        self.assertEqual(leftover(answer), [answer])

    def test_words(self) -> None:
        """Rendered with entities, anchored, with its footer, under its own id."""
        (found,) = leftover(raw("**bold** words", anchor={"messageId": 7}, footer="3 tokens"))
        self.assertEqual((found["delivery_id"], found["kind"]), ("final-x", "final"))
        self.assertEqual(found["delivery"]["createdAtMs"], 5)
        (call,) = found["delivery"]["calls"]
        self.assertEqual(call["params"]["text"], "bold words\n\n3 tokens")
        self.assertEqual(call["params"]["entities"][0]["type"], "bold")
        self.assertEqual(call["params"]["reply_parameters"]["message_id"], 7)

    def test_long(self) -> None:
        """In as many messages and deliveries as it takes, nothing left out."""
        words = " ".join(f"word{number}" for number in range(50_000))
        found = leftover(raw(words))
        self.assertEqual([each["delivery_id"] for each in found], ["final-x", "final-x.2"])
        self.assertEqual(" ".join(texts(raw(words))), words)

    def test_comments(self) -> None:
        """Hidden comments are not shown; labels and spoken words are."""
        button = '<!-- telegram_button label="Go" prompt="go on" -->'
        self.assertEqual(texts(raw(f"Done.\n\n{button}"))[0].splitlines()[0], "Done.")
        self.assertIn("☑️ Go", texts(raw(f"Done.\n\n{button}"))[0])
        self.assertNotIn("telegram_button", texts(raw(f"Done.\n\n{button}"))[0])
        self.assertEqual(texts(raw('<!-- telegram_voice text="hello" -->')), ["hello"])

    def test_nothing(self) -> None:
        """What shows nothing sends nothing."""
        self.assertEqual(leftover(raw("")), [])
        self.assertEqual(leftover(raw("<!-- x -->")), [])

    def test_no_answer(self) -> None:
        """Malformed content is refused, not dropped."""
        for answer in (raw(5), raw("x", createdAtMs=None), {**raw("x"), "delivery": {}}):
            self.assertRaises(BusBadRequest, leftover, answer)
