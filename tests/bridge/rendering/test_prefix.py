"""What a preview may show of a text that is still being written."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.rendering.prefix import ClosedPrefix, closed_prefix
from tests.bridge.rendering.documents import exact


class Prefix(SynchronousTestCase):
    """L{closed_prefix} and L{ClosedPrefix}."""

    def test_what_is_open_is_held_back(self) -> None:
        """The text ends before code, emphasis, a link or a comment that has no end yet."""
        for text, wanted in (
            ("plain words", "plain words"),
            ("a **bold", "a "),
            ("a **bold** b", "a **bold** b"),
            ("a `code", "a "),
            ("a `code` b", "a `code` b"),
            ("see [the link](https://exam", "see "),
            ("see [the link](https://example.org) ok", "see [the link](https://example.org) ok"),
            ("text\n\n```py\nx = 1\n", "text\n\n"),
            ("text\n\n```py\nx = 1\n```\nend", "text\n\n```py\nx = 1\n```\nend"),
            ("text\n<!-- telegram_voice", "text\n"),
            ("2 * 3 and snake_case_name", "2 * 3 and snake_case_name"),
            ("* item\n* other", "* item\n* other"),
            ("a ~~gone", "a "),
            ("half a mark *", "half a mark "),
            ("esc \\*not open", "esc \\*not open"),
            ("lost **bold\n\nnext one", "lost **bold\n\nnext one"),
        ):
            self.assertEqual(closed_prefix(text), wanted, text)

    def test_pieces_give_what_the_whole_gives(self) -> None:
        """The result does not depend on how the stream is cut."""
        for name, text in exact().items():
            if len(text) > 3000:
                continue
            scanner = ClosedPrefix()
            for character in text:
                scanner.feed(character)
            self.assertEqual(text[: scanner.length], closed_prefix(text), name)

    @settings(max_examples=200, deadline=None, derandomize=True)
    @given(
        st.lists(st.sampled_from("a * ** ` ``` [ ]( ) ~~ \n \n\n <!-- --> _ \\".split(" ") + [" "]))
    )
    def test_prefixes_only_grow(self, pieces: list[str]) -> None:
        """A frame never takes back what an earlier one showed; it is always a beginning."""
        scanner, text, length = ClosedPrefix(), "", 0
        for piece in pieces:
            scanner.feed(piece)
            text += piece
            self.assertGreaterEqual(scanner.length, length)
            self.assertLessEqual(scanner.length, len(text))
            length = scanner.length
            self.assertEqual(scanner.text(), text[:length])

    def test_a_long_text_shows_its_last_blocks(self) -> None:
        """Beyond the limit a frame begins with a whole block, and memory does not grow."""
        scanner, paragraph = ClosedPrefix(), "word " * 19 + "end\n\n"
        for _ in range(2000):
            scanner.feed(paragraph)
        shown = scanner.text(1000)
        self.assertEqual(scanner.length, 2000 * len(paragraph))
        self.assertEqual(shown, paragraph * (1000 // len(paragraph)))

    def test_cost_is_linear(self) -> None:
        """Eight times the text takes about eight times as long."""

        def seconds(size: int) -> float:
            scanner = ClosedPrefix()
            begin = time.process_time()
            for _ in range(size):
                scanner.feed("word *it* ")
            return time.process_time() - begin

        self.assertLess(seconds(16_000), 20 * min(seconds(2000), seconds(2000)) + 0.1)
