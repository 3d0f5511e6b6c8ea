"""What no model should write does no harm: no failure, nothing lost, time grows with the length."""

from __future__ import annotations

import time
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.rendering.records import Rendered, RenderOptions
from pitelegram.bridge.rendering.render import render
from tests.bridge.rendering.checks import check_message, check_rich, letters, shown

RICH = RenderOptions(file_after=0)
HTML = RenderOptions(rendering="html", file_after=0)

_PATTERNS: dict[str, Callable[[int], str]] = {
    "brackets": lambda n: "[" * n,
    "nested brackets": lambda n: "[" * (n // 2) + "]" * (n // 2),
    "open links": lambda n: "[a](" * (n // 4),
    "nested images": lambda n: "![" * (n // 6) + "x" + "](u)" * (n // 6),
    "quotes": lambda n: "> " * (n // 2) + "x",
    "lists": lambda n: "- " * (n // 2) + "x",
    "emphasis": lambda n: "*_" * (n // 2),
    "bold": lambda n: "**a " * (n // 4),
    "code marks": lambda n: "".join("`" * i + " " for i in range(1, int((2 * n) ** 0.5))),
    "tags": lambda n: "<a " * (n // 3),
    "dollars": lambda n: "$a " * (n // 3),
    "spoilers": lambda n: "||a|| " * (n // 6),
    "latex": lambda n: "\\[x\\]" * (n // 5) + "\\(" * (n // 10),
    "definitions": lambda n: "[a]: b\n" * (n // 7),
    "fences": lambda n: "```\n" * (n // 4),
    "tables": lambda n: "a|b\n-|-\n" * (n // 8),
    "one table": lambda n: "|a|b|\n|-|-|\n" + "|xxxx|yyyy|\n" * (n // 12),
    "items": lambda n: "- a\n" * (n // 4),
    "one line": lambda n: "lorem ipsum " * (n // 12),
    "one word": lambda n: "x" * n,
    "blanks in code": lambda n: "```\n" + " " * n + "x\n```",
    "accents": lambda n: "e" + "\u0301" * n,
    "families": lambda n: "👩‍👩‍👧‍👦" * (n // 7),
    "surrogates": lambda n: "\ud800" * n,
    "overrides": lambda n: "\u202e" * n + "x",
}


def _seconds(markdown: str) -> float:
    begin = time.process_time()
    render(markdown, RICH)
    return time.process_time() - begin


class Hostile(SynchronousTestCase):
    """L{render} of nonsense."""

    def _check(self, rendered: Rendered) -> None:
        for step in (*rendered.steps[:2], *rendered.steps[-2:]):
            for call in (*step.entities[:3], *step.plain[:3]):
                check_message(call)
            for call in step.rich:
                check_rich(call)

    def test_patterns_are_sent_whole(self) -> None:
        """Twenty-five shapes of 20,000 signs: good calls, every letter."""
        for name, make in _PATTERNS.items():
            markdown = make(20_000)
            for options in (RICH, HTML):
                rendered = render(markdown, options)
                self._check(rendered)
                self.assertTrue(rendered.steps, name)
                if name not in ("definitions", "nested images", "one table", "tables"):
                    text = letters(shown(rendered.calls("entities"), markdown))
                    self.assertEqual(text == letters(markdown), True, name)

    def test_time_grows_with_the_length(self) -> None:
        """Four times the length takes about four times as long, not sixteen times."""
        for name, make in _PATTERNS.items():
            short, long = make(10_000), make(40_000)
            allowed = 9 * min(_seconds(short) for _ in range(2)) + 0.15
            self.assertLess(min(_seconds(long) for _ in range(2)), allowed, name)

    def test_a_megabyte_in_one_line(self) -> None:
        """A line of a megabyte is cut between words, and nothing of it is missing."""
        words = " ".join(f"word{number}" for number in range(110_000))
        rendered = render(words, HTML)
        texts = [call["params"]["text"] for call in rendered.calls("entities")]
        self.assertEqual(" ".join(texts), words)
        self._check(rendered)

    def test_a_hundred_thousand_brackets(self) -> None:
        """They come back as they are."""
        rendered = render("[" * 100_000, HTML)
        texts = [call["params"]["text"] for call in rendered.calls("entities")]
        self.assertEqual("".join(texts), "[" * 100_000)

    def test_nesting_beyond_reason_stays_source(self) -> None:
        """A thousand quotes in each other are no quote: the text is sent as it is written."""
        markdown = "> " * 1000 + "x"
        (step,) = render(markdown, RICH).steps
        self.assertEqual(step.rich, ())
        self.assertEqual(step.entities[0]["params"]["text"], markdown)
        self.assertNotIn("entities", step.entities[0]["params"])

    def test_nothing_visible_makes_no_calls(self) -> None:
        """Blanks, controls and invisible signs are nothing to send."""
        for text in ("", " \n\t ", "\u200b\u2060", "\x00\x01", "\u202e\ufeff", "\u3164\u2800"):
            self.assertEqual(render(text).steps, (), repr(text))
            self.assertIsNone(render(text).file)

    def test_marks_only_are_shown(self) -> None:
        """Markup around nothing is sent as it was written: Telegram takes no empty message."""
        for text in ("```\n```", ">", "[](x)", "#"):
            (step,) = render(text).steps
            check_message(step.entities[0])
            self.assertTrue(step.entities[0]["params"]["text"].strip())

    @settings(max_examples=250, deadline=None, derandomize=True)
    @given(
        st.lists(
            st.sampled_from(
                "a b1 * ** _ ` ``` ~~ [ ]( ) ![ > - 1. # | || \\ < <b> & $ $$ \n \n\n \t   é 😀 "
                "👩‍👩‍👧 שלום \u202e \ud800 \x00 https://x.org [x](https://x.org) |-|-| --- [a]: b".split(
                    " "
                )
                + [" ", "\n", "\n\n", "    ", "\n- ", "\n> ", "\n```\n"]
            ),
            max_size=60,
        ).map("".join),
        st.sampled_from((RICH, HTML, RenderOptions(file_after=40, columns=8))),
    )
    def test_any_markup(self, markdown: str, options: RenderOptions) -> None:
        """Whatever the marks are, the calls are ones Telegram takes unchanged."""
        rendered = render(markdown, options)
        for step in rendered.steps:
            for call in (*step.entities, *step.plain):
                check_message(call)
            for call in step.rich:
                check_rich(call)
