"""How dialogs look, and what their buttons and replies say."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge import dialogs
from pitelegram.bridge.cutting import shorten, utf16_length
from pitelegram.bridge.incoming import Origin, read_update
from pitelegram.bridge.questions import (
    DialogPress,
    Question,
    answer_of,
    key_of_markup,
    notice_text,
    option_of,
    read_press,
    read_question,
)

KEY = "0123456789ab"


def question(method: str = "select", **fields: Any) -> Question:
    """A question as an extension asks it."""
    if method == "select":
        fields.setdefault("options", ["red", "green"])
    return read_question({"id": "d", "method": method, "title": "Which?", **fields})


def labels(markup: dict[str, Any]) -> list[list[str]]:
    """The labels of a keyboard."""
    return [[button["text"] for button in row] for row in markup["inline_keyboard"]]


def data(markup: dict[str, Any]) -> list[str]:
    """The callback data of a keyboard."""
    return [button["callback_data"] for row in markup["inline_keyboard"] for button in row]


class Texts(SynchronousTestCase):
    """The message."""

    def test_each_kind(self) -> None:
        """Title, detail, how to answer, and for how long."""
        for asked, text in (
            (question(), "❔ Which?\n\n⏳ 2 minutes, then it is cancelled."),
            (
                question("confirm", message="All of it?", timeout=30_000),
                "❔ Which?\n\nAll of it?\n\n⏳ 30 s, then it is cancelled.",
            ),
            (
                question("input", placeholder="a name"),
                "❔ Which?\n\nFor example: a name\n\n✍️ Reply to this message with your input.\n"
                "⏳ 2 minutes, then it is cancelled.",
            ),
            (
                question("editor", prefill="one\ntwo"),
                "❔ Which?\n\nThe text now:\none\ntwo\n\n✍️ Reply to this message with your input.\n"
                "⏳ 2 minutes, then it is cancelled.",
            ),
        ):
            self.assertEqual(dialogs.shown(asked).text, text)
            self.assertIsNone(dialogs.shown(asked).attachment)

    def test_long_texts_are_attached(self) -> None:
        """What is shown keeps within Telegram's limit, however it is counted; the whole is attached."""
        for method, field, text in (
            ("confirm", "message", "word " * 2000),
            ("confirm", "title", "word " * 2000),
            ("editor", "prefill", "😀" * 10_000),
            ("input", "placeholder", "x" * 10_000),
        ):
            shown = dialogs.shown(question(method, **{field: text}))
            self.assertLessEqual(utf16_length(shown.text), 4096)
            self.assertIn("attached", shown.body)
            assert shown.attachment is not None
            self.assertIn(text.strip(), shown.attachment[1])
        shown = dialogs.shown(question("editor", prefill="x" * 10_000))
        self.assertEqual(shown.attachment, ("text.txt", "x" * 10_000))

    def test_four_thousand_fit(self) -> None:
        """Nothing is attached as long as the question has at most 4,000 characters."""
        shown = dialogs.shown(question("input", title="t" * 3980))
        self.assertIsNone(shown.attachment)
        self.assertLessEqual(utf16_length(shown.text), 4096)

    def test_no_title(self) -> None:
        """There is always something to read, whatever the fields hold."""
        for title in (None, "", " \n", 7, ["x"]):
            asked = read_question({"id": "d", "method": "input", "title": title, "placeholder": 3})
            self.assertIn("Pi needs an answer", dialogs.shown(asked).text)

    def test_options_that_labels_cannot_show(self) -> None:
        """They are listed in full above the buttons."""
        long = "x" * 100
        shown = dialogs.shown(question(options=[long, "short"]))
        self.assertIn(f"1. {long}\n2. short", shown.text)

    def test_closed(self) -> None:
        """What a message becomes keeps the question and fits."""
        text = dialogs.closed("❔ " + "y" * 4090, dialogs.ANSWERED)
        self.assertLessEqual(utf16_length(text), 4096)
        self.assertTrue(text.endswith("\n\n✅ Answered."))
        self.assertEqual(dialogs.chosen(" a\n"), "✅ Answered: a")
        self.assertEqual(dialogs.chosen(""), "✅ Answered: (empty)")

    def test_durations(self) -> None:
        """Times are said as people say them."""
        said = [dialogs.duration(s) for s in (0.7, 30, 60, 90, 120, 3600, 7200, 1e9)]
        self.assertEqual(
            said,
            [
                "1 s",
                "30 s",
                "1 minute",
                "90 s",
                "2 minutes",
                "60 minutes",
                "2 hours",
                "277778 hours",
            ],
        )

    def test_shorten(self) -> None:
        """A cut text is within its limit and tears no character apart."""
        self.assertEqual(shorten("abc", 3), "abc")
        self.assertEqual(shorten("abcd", 3), "ab…")
        self.assertEqual(shorten("😀😀😀", 5), "😀😀…")


class Buttons(SynchronousTestCase):
    """The keyboard."""

    def test_each_kind(self) -> None:
        """Cancel is always there."""
        cancel = [dialogs.CANCEL_LABEL]
        for asked, rows in (
            (question(), [["red"], ["green"], cancel]),
            (question("confirm"), [["Yes"], ["No"], cancel]),
            (question("input"), [cancel]),
            (question("editor"), [cancel]),
        ):
            self.assertEqual(labels(dialogs.keyboard(asked, KEY)), rows)

    def test_a_hundred_options(self) -> None:
        """Sixty have buttons, eight a page in a ring; the text says so and lists all."""
        asked = question(options=[f"option {n}" for n in range(100)])
        self.assertEqual(dialogs.pages(asked), 8)
        seen = []
        for page in range(8):
            markup = dialogs.keyboard(asked, KEY, page)
            rows = labels(markup)
            seen += [row[0] for row in rows[:-2]]
            self.assertLessEqual(len(rows), 10)
            self.assertEqual(rows[-1], [dialogs.CANCEL_LABEL])
            self.assertTrue(all(len(each.encode()) <= 64 for each in data(markup)))
        self.assertEqual(seen, [f"option {n}" for n in range(60)])
        self.assertEqual(labels(dialogs.keyboard(asked, KEY))[-2], ["⬅️ 8/8", "➡️ 2/8"])
        self.assertEqual(dialogs.keyboard(asked, KEY, 999), dialogs.keyboard(asked, KEY, 7))
        text = dialogs.shown(asked).text
        self.assertIn("60 of 100 have buttons; reply with a number for any.", text)
        self.assertIn("100. option 99", text)

    def test_labels(self) -> None:
        """Never empty, one line, at most 64 units."""
        asked = question(options=["", " \n", "a\nb", "😀" * 50])
        found = [row[0] for row in labels(dialogs.keyboard(asked, KEY))[:-1]]
        self.assertEqual(found[:3], ["Option 1", "Option 2", "a b"])
        self.assertLessEqual(utf16_length(found[3]), 64)

    def test_data_is_read_back(self) -> None:
        """Each button gives its own answer; forged data gives none."""
        asked = question(options=[f"o{n}" for n in range(70)])
        presses = [read_press(each) for each in data(dialogs.keyboard(asked, KEY, 7))]
        assert presses[0] is not None
        self.assertEqual(presses[0], DialogPress(KEY, "o", 56))
        self.assertEqual(answer_of(asked, presses[0]), ({"value": "o56"}, "o56"))
        self.assertEqual(presses[-1], DialogPress(KEY, "x"))
        self.assertEqual(answer_of(asked, DialogPress(KEY, "x")), ({"cancelled": True}, ""))
        self.assertIsNone(answer_of(asked, DialogPress(KEY, "o", 60)))
        self.assertIsNone(answer_of(asked, DialogPress(KEY, "y")))
        self.assertIsNone(answer_of(question("input"), DialogPress(KEY, "o", 0)))
        confirm = question("confirm")
        self.assertEqual(answer_of(confirm, DialogPress(KEY, "n")), ({"confirmed": False}, "No"))
        for forged in ("", "dlg:", f"dlg:{KEY}", f"dlg:{KEY}:o", f"dlg:{KEY}:o99999", "dlg:x:y",
                       f"dlg:{KEY}:o1\n", f"dlg:{KEY.upper()}:x", f"ptd:{KEY}:x"):  # fmt: skip
            self.assertIsNone(read_press(forged), forged)

    def test_written_numbers(self) -> None:
        """A number or the option's own words mean an option; the words go first."""
        asked = question(options=["10", "b", "c "])
        self.assertEqual(option_of(asked, "10"), "10")
        self.assertEqual(option_of(asked, " 2."), "b")
        self.assertEqual(option_of(asked, "c"), "c ")
        for text in ("0", "4", "-1", "9999999999", "why?", "²"):
            self.assertIsNone(option_of(asked, text))

    def test_key_of_markup(self) -> None:
        """The key is found among any buttons, and in nothing else."""
        self.assertEqual(key_of_markup(dialogs.keyboard(question("input"), KEY)), KEY)
        for markup in (None, [], {}, {"inline_keyboard": 3}, {"inline_keyboard": [3, [4, {}]]}):
            self.assertIsNone(key_of_markup(markup))


class Reading(SynchronousTestCase):
    """Requests, notices and updates."""

    def test_timeouts(self) -> None:
        """Only a positive number is a time-out of its own."""
        for timeout in (None, 0, -1, True, "5", float("inf"), float("nan")):
            asked = question(timeout=timeout)
            self.assertEqual((asked.own, asked.seconds), (False, 120.0), timeout)
        self.assertEqual(question(timeout=700).seconds, 0.7)

    def test_notices(self) -> None:
        """The level is a mark; an empty one is none; a long one says what is missing."""
        self.assertEqual(notice_text({"message": "hi"}), "ℹ️ hi")
        self.assertEqual(notice_text({"message": "hi", "notifyType": "warning"}), "⚠️ hi")
        self.assertEqual(notice_text({"message": "hi", "notifyType": "error"}), "❌ hi")
        for message in (None, "", " \n", 3):
            self.assertIsNone(notice_text({"message": message}))
        self.assertIn("6000 more characters", str(notice_text({"message": "x" * 10_000})))

    def test_replies(self) -> None:
        """An update says which message it is a reply to, and whose buttons that has."""
        markup = dialogs.keyboard(question("input"), KEY)
        body = {
            "message_id": 5,
            "chat": {"id": 1},
            "text": "x",
            "reply_to_message": {"message_id": 4, "reply_markup": markup},
        }
        _, origin = read_update("message", {"message": body})
        self.assertEqual(origin, Origin(chat_id=1, message_id=5, reply_to=4, reply_key=KEY))
        _, origin = read_update("message", {"message": {**body, "reply_to_message": 7}})
        self.assertEqual(origin, Origin(chat_id=1, message_id=5))
