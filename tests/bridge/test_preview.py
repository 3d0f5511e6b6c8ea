"""What a preview shows of a text that is being written."""

from __future__ import annotations

from random import Random
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.preview import Rendering, as_draft, frame
from pitelegram.bridge.rendering.prefix import ClosedPrefix, closed_prefix
from pitelegram.bridge.rendering.splitting import Measure


def of(text: str, rendering: Rendering = "rich") -> dict[str, Any] | None:
    """Return the frame of a text."""
    prefix = ClosedPrefix()
    prefix.feed(text)
    return frame(prefix, rendering)


def words(text: str, rendering: Rendering = "rich") -> str | None:
    """Return what the frame of a text says."""
    call = of(text, rendering)
    if call is None:
        return None
    params = call["params"]
    return str(params["rich_message"]["markdown"] if "rich_message" in params else params["text"])


class FrameTests(SynchronousTestCase):
    """Frames."""

    def test_forms(self) -> None:
        """A rich message or one with entities, as the answer will be; drafts take no preview options."""
        rich = of("Some **bold** words ")
        assert rich is not None
        self.assertEqual(rich["method"], "sendRichMessage")
        self.assertEqual(rich["params"]["rich_message"]["markdown"], "Some **bold** words")
        method, params = as_draft(rich, 5)
        self.assertEqual((method, params["draft_id"]), ("sendRichMessageDraft", 5))
        html = of("Some **bold** words ", "html")
        assert html is not None
        self.assertEqual(html["params"]["text"], "Some bold words")
        self.assertEqual(html["params"]["entities"], [{"type": "bold", "offset": 5, "length": 4}])
        method, params = as_draft(html, 5)
        self.assertEqual(
            (method, set(params)), ("sendMessageDraft", {"draft_id", "text", "entities"})
        )

    def test_nothing_open(self) -> None:
        """What is not closed yet is not shown: emphasis, code, links, fences, comments."""
        for text, shown in (
            ("One **two", "One"),
            ("One `two", "One"),
            ("One [two](htt", "One"),
            ("One\n\n```py\nx = 1\n", "One"),
            ("One\n\n<!-- telegram_butt", "One"),
            ("One\n<", "One"),
        ):
            for rendering in ("rich", "html"):
                self.assertEqual(words(text, rendering), shown, text)  # type: ignore[arg-type]

    def test_no_comments(self) -> None:
        """Hidden comments are not shown, whether they ended or not."""
        text = 'One\n\n<!-- telegram_button prompt="Go on" label="Go" -->\n\nTwo '
        self.assertEqual(words(text, "html"), "One\n\nTwo")
        self.assertIsNone(of('<!-- telegram_voice text="hello" -->\n'))

    def test_letters_or_digits(self) -> None:
        """A frame of syntax only is none."""
        for text in ("", "   ", "## ", "- ", "***\n\n", "> ", "…", "```\n```\n", "👍 ", "| | |\n"):
            self.assertIsNone(of(text), text)
        for text in ("1 ", "é ", "日本 ", "- x "):
            self.assertIsNotNone(of(text), text)

    def test_length(self) -> None:
        """At most 4,096 units, the end of a longer text, and nothing open at its beginning."""
        random = Random(4)
        paragraph = (
            "Some **bold** words, `code` and 👍👍 signs of [a link](https://example.org).\n\n"
        )
        for text in (paragraph * 200, "👍 x\n\n" * 3000, "word " * 3000 + "\n\nlast words "):
            prefix = ClosedPrefix()
            at = 0
            while at < len(text):
                step = random.randint(1, 700)
                prefix.feed(text[at : at + step])
                at += step
                for rendering in ("rich", "html"):
                    call = frame(prefix, rendering)  # type: ignore[arg-type]
                    if call is None:
                        continue
                    params = call["params"]
                    shown = params.get("text") or params["rich_message"]["markdown"]
                    self.assertLessEqual(Measure(shown).units(0, len(shown)), 4096)
                    if "rich_message" in params:
                        self.assertEqual(closed_prefix(shown + "\n\n"), shown + "\n\n")

    def test_large_block(self) -> None:
        """Of a block that does not fit nothing is shown: its beginning is gone, so its marks are."""
        code = "```\n" + "x = 1\n" * 1000 + "```\n"
        self.assertIsNone(of("Look:\n\n" + code))
        self.assertEqual(words("Look:\n\n" + code + "\nThat was it. ", "html"), "That was it.")
