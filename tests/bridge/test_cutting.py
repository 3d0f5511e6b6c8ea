"""Long text arrives whole, in order, within Telegram's limits."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.cutting import LIMIT, clean, pieces, utf16_length

_TEXT = st.text(
    st.one_of(st.sampled_from(" \n\t\r\u200d🇩🇪👍🏽e\u0301ab\u2028\x00"), st.characters()),
    max_size=400,
)


def _as_telegram(text: str) -> str:
    """Trim a message as the server does."""
    return text.strip(" \n\t\r")


class Cutting(SynchronousTestCase):
    """L{pieces}."""

    def test_short_text_is_one_piece(self) -> None:
        """Text within the limit is not touched, inner blanks included."""
        self.assertEqual(pieces("a\n\n    b  c"), ["a\n\n    b  c"])

    def test_blank_text_has_no_pieces(self) -> None:
        """Nothing that Telegram would refuse as empty is made."""
        for text in ("", " ", "\n\n \t\n", "\x00\x01"):
            self.assertEqual(pieces(text), [])

    def test_limit_counts_utf16_units(self) -> None:
        """Signs outside the basic plane count twice, and none is torn."""
        result = pieces("😀" * 5000)
        self.assertEqual("".join(result), "😀" * 5000)
        self.assertEqual([utf16_length(piece) for piece in result], [4096, 4096, 1808])

    def test_paragraphs_are_kept_together(self) -> None:
        """The cut is at the last paragraph break that fits."""
        first, second = "a" * 3000, "b" * 2000
        self.assertEqual(pieces(f"{first}\n\n{second}"), [first, second])

    def test_indented_lines_do_not_begin_a_piece(self) -> None:
        """Telegram would trim the indentation: a cut there would change code."""
        lines = [f"line {number}\n        indented {number}" for number in range(500)]
        text = "\n".join(lines)
        result = pieces(text)
        self.assertGreater(len(result), 2)
        self.assertEqual("\n".join(_as_telegram(piece) for piece in result), text)

    def test_thirty_thousand_characters(self) -> None:
        """Numbered lines come back whole when the messages are put together again."""
        text = "\n".join(f"{number:06d} word word word" for number in range(1400))
        result = pieces(text)
        self.assertEqual("\n".join(result), text)
        self.assertTrue(all(utf16_length(piece) <= LIMIT for piece in result))

    def test_one_long_word(self) -> None:
        """Without any break the cut is between two signs."""
        self.assertEqual("".join(pieces("x" * 10_000)), "x" * 10_000)

    def test_families_are_not_parted(self) -> None:
        """A sign made of several characters stays in one piece."""
        family = "👨‍👩‍👧‍👦"
        for piece in pieces(family * 900, 100):
            self.assertEqual(piece.replace(family, ""), "")

    @settings(max_examples=200, deadline=None, derandomize=True)
    @given(_TEXT, st.integers(8, 60))
    def test_nothing_visible_is_lost(self, text: str, limit: int) -> None:
        """Every sign that is not blank arrives once, in order, within the limit."""
        result = pieces(text, limit)
        self.assertEqual(
            "".join("".join(piece.split()) for piece in result), "".join(clean(text).split())
        )
        for piece in result:
            self.assertLessEqual(utf16_length(piece), limit)
            self.assertTrue(piece.strip())

    def test_lone_surrogates_are_replaced(self) -> None:
        """A half sign, as Node writes it, does not stop the answer."""
        self.assertEqual(pieces("a\ud83db"), ["a\ufffdb"])
