"""An answer becomes deliveries: forms, reply, keyboard, file."""

from __future__ import annotations

from itertools import count
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.comments import HEADING, read
from pitelegram.bridge.composing import Composed, compose, named_files, plain, raw_answer
from pitelegram.bridge.rendering.records import RenderOptions
from pitelegram.bridge.turn import NO_TEXT
from pitelegram.delivery.shape import parse_delivery
from pitelegram.kernel.jsonio import dumps
from pitelegram.testing.leaderlink import shown

HTML = RenderOptions(rendering="html")


class Case(SynchronousTestCase):
    """Composes."""

    def setUp(self) -> None:
        """Nothing was kept."""
        self.kept: dict[str, bytes] = {}

    def keep(self, content: bytes, owner: str) -> str:
        """Be a directory of files."""
        self.kept[f"/files/{owner}"] = content
        return f"/files/{owner}"

    def composed(
        self, text: str, options: RenderOptions = HTML, **words: Any
    ) -> tuple[list[dict[str, Any]], Composed]:
        """Return the calls of the first delivery, each form of which a leader takes, and all."""
        keys = count(1)
        raw = raw_answer("final-1", text, 5, **words)
        made = compose(raw, read(text), options, lambda: f"{next(keys):08x}", self.keep)
        for answer in made.answers:
            parse_delivery(answer["delivery_id"], answer["delivery"])
        calls = made.answers[0]["delivery"]["calls"] if made.answers else []
        return calls, made


class Forms(Case):
    """What is sent when a form is refused."""

    def test_three_forms(self) -> None:
        """Rich, then entities, then plain text; only what may be refused has another form."""
        [rich], _ = self.composed("a **b** [c](https://d.example)", RenderOptions())
        [entities] = rich["otherwise"]
        [words] = entities["otherwise"]
        self.assertEqual(
            [rich["method"], entities["method"], words["method"]],
            ["sendRichMessage", "sendMessage", "sendMessage"],
        )
        self.assertEqual(entities["params"]["text"], "a b c")
        self.assertEqual(words["params"]["text"], "a b c (https://d.example)")
        self.assertNotIn("otherwise", words)
        [call], _ = self.composed("nothing special")
        self.assertNotIn("otherwise", call)

    def test_every_form_answers_and_has_the_keyboard(self) -> None:
        """The first call of each form is the reply, the last has the buttons."""
        text = "**x** y" * 3000 + "\n<!-- telegram_button: A -->"
        [rich], made = self.composed(text, RenderOptions(), anchor=7)
        entities = rich["otherwise"]
        self.assertGreater(len(entities), 2)
        for form in (
            [rich],
            entities,
            entities[0]["otherwise"][:1] + entities[-1]["otherwise"][-1:],
        ):
            replies = ["reply_parameters" in call["params"] for call in form]
            keyboards = ["reply_markup" in call["params"] for call in form]
            self.assertEqual(replies, [True] + [False] * (len(form) - 1))
            self.assertEqual(keyboards, [False] * (len(form) - 1) + [True])
        self.assertEqual([button.prompt for button in made.buttons], ["A"])

    def test_silent(self) -> None:
        """What is said on the way makes no sound in any form, and is a notice."""
        [rich], made = self.composed("**x**", RenderOptions(), silent=True)
        forms = [rich, *rich["otherwise"], *rich["otherwise"][0]["otherwise"]]
        self.assertEqual(len(forms), 3)
        self.assertTrue(all(each["params"]["disable_notification"] for each in forms))
        self.assertEqual(made.answers[0]["kind"], "notice")
        self.assertEqual(self.composed("<!-- x -->", silent=True)[1].answers, ())

    def test_as_it_was_written(self) -> None:
        """When everything else fails the source is shown, and it is the reply still."""
        made = plain(raw_answer("final-1", "**a**\n<!-- b -->", 5, 7))
        [call] = made.answers[0]["delivery"]["calls"]
        self.assertEqual(call["params"]["text"], "**a**\n<!-- b -->")
        self.assertEqual(call["params"]["reply_parameters"]["message_id"], 7)
        made = plain(raw_answer("comment-1", "a", 5, silent=True))
        [call] = made.answers[0]["delivery"]["calls"]
        self.assertEqual(
            (made.answers[0]["kind"], call["params"]["disable_notification"]), ("notice", True)
        )


class Sizes(Case):
    """Long answers."""

    def test_file(self) -> None:
        """Beyond the bound there is the beginning, and the source as a file of a delivery of its own."""
        text = "**word** " * 5000
        calls, made = self.composed(text)
        self.assertEqual(len(calls), 1)
        self.assertEqual(
            [each["delivery_id"] for each in made.answers], ["final-1", "final-1.file"]
        )
        self.assertEqual(self.kept, {"/files/final-1.file": text.strip().encode()})
        self.assertEqual(named_files(made.answers), {"/files/final-1.file"})

    def test_never_a_file(self) -> None:
        """Without a bound everything is in messages, in deliveries that a leader takes."""
        text = "\n".join(f"**word** {number}" for number in range(60_000))
        _, made = self.composed(text, RenderOptions(file_after=0))
        self.assertEqual(self.kept, {})
        self.assertGreater(len(made.answers), 1)
        for answer in made.answers:
            self.assertLess(len(dumps(answer["delivery"])), 5 * 1024 * 1024)

    def test_same_again(self) -> None:
        """Composed a second time it is the same delivery."""
        first, second = (self.composed("**a** " * 9000)[1].answers for _ in range(2))
        self.assertEqual(first, second)


class Shown(Case):
    """What is shown of an answer."""

    def texts(self, text: str, footer: str | None = None) -> list[str]:
        """The texts, of which the last has the keyboard where there is one."""
        calls, made = self.composed(text, footer=footer)
        keyboards = [call["params"].get("reply_markup") for call in calls]
        self.assertEqual(any(keyboards), bool(made.buttons))
        self.assertFalse(any(keyboards[:-1]))
        return [shown(call) for call in calls]

    def test_something_is_shown(self) -> None:
        """The text, else what is to be spoken, else the heading of buttons, else that there is nothing."""
        heading = HEADING.replace("*", "")
        button, voice = "<!-- telegram_button: A -->", "<!-- telegram_voice: Hello -->"
        for text, wanted in (
            (f"a\n{button}\n{voice}", "a"),
            (f"{button}\n{voice}", heading),
            (voice, "Hello"),
            (button, heading),
            (f"{button}\n\x7f\x7f", heading),
            ("\x7f\u200b", NO_TEXT),
            ("<!-- x -->", NO_TEXT),
            ("", NO_TEXT),
        ):
            self.assertEqual(self.texts(text), [wanted], text)

    def test_footer(self) -> None:
        """It stands below whatever is shown, and nothing that is open takes it."""
        for text, wanted in (("a", "a"), ("a\n<!-- b", "a"), ("```\na", "a"), ("", NO_TEXT)):
            self.assertEqual(self.texts(text, "used 5"), [f"{wanted}\n\nused 5"])
