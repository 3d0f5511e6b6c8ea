"""Parts of a text put together again are the text, with its formatting."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.cutting import utf16_length
from pitelegram.bridge.rendering.graphemes import may_part
from pitelegram.bridge.rendering.messages import entities
from pitelegram.bridge.rendering.records import Span
from pitelegram.bridge.rendering.splitting import MAX_SPANS, Measure, split

_SIGNS = [
    "a",
    "b",
    " ",
    "\n",
    "\n\n",
    "word ",
    "    ",
    "😀",
    "👩‍👩‍👧",
    "🇩🇪",
    "e\u0301",
    "שלום ",
    "한",
    "👍🏽",
]
_TEXTS = st.lists(st.sampled_from(_SIGNS), max_size=120).map("".join)
_KINDS = ("bold", "italic", "code", "pre", "text_link", "blockquote")


@st.composite
def _formatted(draw: st.DrawFn) -> tuple[str, list[Span]]:
    text = draw(_TEXTS)
    spans = []
    for _ in range(draw(st.integers(0, 12)) if text else 0):
        start = draw(st.integers(0, len(text) - 1))
        end = draw(st.integers(start + 1, len(text)))
        kind = draw(st.sampled_from(_KINDS))
        extra = draw(st.sampled_from(("x", "y"))) if kind in ("pre", "text_link") else ""
        spans.append(Span(start, end, kind, extra))
    return text, sorted(spans, key=lambda span: (span.start, -span.end))


def styles(text: str, spans: list[Span] | tuple[Span, ...]) -> list[set[tuple[str, str]]]:
    """Return for each character what lies over it."""
    result: list[set[tuple[str, str]]] = [set() for _ in text]
    for span in spans:
        for index in range(span.start, span.end):
            result[index].add((span.kind, span.extra))
    return result


class Splitting(SynchronousTestCase):
    """L{split}."""

    @settings(max_examples=300, deadline=None, derandomize=True)
    @given(_formatted(), st.integers(16, 60))
    def test_joined_parts_are_the_whole(
        self, formatted: tuple[str, list[Span]], limit: int
    ) -> None:
        """Between parts is only white space; text and formatting of each character are kept."""
        text, spans = formatted
        whole = styles(text, spans)
        at = 0
        for part in split(text, spans, limit):
            self.assertEqual(text[at : part.start].strip(), "")
            self.assertEqual(part.text, text[part.start : part.end])
            self.assertEqual(styles(part.text, part.spans), whole[part.start : part.end])
            self.assertLessEqual(utf16_length(part.text), limit)
            self.assertTrue(part.text.strip())
            at = part.end
        self.assertEqual(text[at:].strip(), "")

    @settings(max_examples=200, deadline=None, derandomize=True)
    @given(_formatted(), st.integers(24, 60))
    def test_no_visible_sign_is_torn(self, formatted: tuple[str, list[Span]], limit: int) -> None:
        """No cut inside a flag, a joined emoji, or before a combining mark."""
        text, spans = formatted
        for part in split(text, spans, limit):
            self.assertTrue(may_part(text, part.start))

    @settings(max_examples=200, deadline=None, derandomize=True)
    @given(_formatted())
    def test_offsets_are_utf16(self, formatted: tuple[str, list[Span]]) -> None:
        """What an entity names in UTF-16 is what the span named in characters."""
        for part in split(*formatted, 50):
            units = part.text.encode("utf-16-le")
            for entity, span in zip(entities(part), part.spans, strict=True):
                begin, size = 2 * entity["offset"], 2 * entity["length"]
                self.assertEqual(
                    units[begin : begin + size].decode("utf-16-le"),
                    part.text[span.start : span.end],
                )

    def test_limit_is_in_utf16_units(self) -> None:
        """Signs outside the basic plane count twice."""
        parts = split("😀" * 5000, ())
        self.assertEqual([len(part.text) for part in parts], [2048, 2048, 904])
        self.assertEqual([len(p.text) for p in split("a" * 4097, ())], [4096, 1])
        self.assertEqual([len(p.text) for p in split("a" * 4096, ())], [4096])

    def test_code_goes_on_as_code(self) -> None:
        """A block of code over a cut is one in both parts, with its language, cut at a line."""
        text = "\n".join(f"line {number}" for number in range(1000))
        parts = split(text, [Span(0, len(text), "pre", "python")])
        self.assertEqual("\n".join(part.text for part in parts), text)
        for part in parts:
            self.assertEqual(part.spans, (Span(0, len(part.text), "pre", "python"),))

    def test_too_many_spans_end_a_part_early(self) -> None:
        """The 101st span begins the next part, if the part is half full then."""
        text = "word " * 800
        spans = [Span(at, at + 4, "bold") for at in range(0, len(text), 20)]
        parts = split(text, spans)
        self.assertEqual(sum(len(part.spans) for part in parts), len(spans))
        self.assertTrue(all(len(part.spans) <= MAX_SPANS for part in parts))

    def test_decoration_is_left_out_where_it_is_dense(self) -> None:
        """Thousands of styles do not make thousands of messages; links are all kept."""
        text = "ab " * 3000
        bold = [Span(at, at + 1, "bold") for at in range(0, len(text), 3)]
        self.assertLessEqual(len(split(text, bold)), 3)
        links = [
            Span(at, at + 1, "text_link", "https://a.example") for at in range(0, len(text), 3)
        ]
        parts = split(text, links)
        self.assertEqual(sum(len(part.spans) for part in parts), 3000)
        self.assertTrue(all(len(part.spans) <= MAX_SPANS for part in parts))

    def test_a_sign_longer_than_a_message(self) -> None:
        """A letter under ten thousand accents is cut somewhere, and only there."""
        text = "e" + "\u0301" * 10_000
        parts = split(text, ())
        self.assertEqual("".join(part.text for part in parts), text)

    def test_measure(self) -> None:
        """Units of any stretch, and the longest stretch that fits."""
        measure = Measure("a😀b😀c")
        self.assertEqual(measure.units(0, 5), 7)
        self.assertEqual(measure.units(1, 2), 2)
        self.assertEqual(measure.room(0, 2), 1)
        self.assertEqual(measure.room(0, 3), 2)
        self.assertEqual(measure.room(0, 99), 5)
