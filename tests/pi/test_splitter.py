"""Framing of Pi's output."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.pi.splitter import LineSplitter


def expected(data: bytes, limit: int) -> tuple[list[bytes], int]:
    """The whole lines of C{data} by the plain definition, and how many were too long."""
    lines = data.split(b"\n")[:-1]
    kept = [line for line in lines if len(line) <= limit]
    stripped = [line[:-1] if line.endswith(b"\r") else line for line in kept]
    return stripped, len(lines) - len(kept)


class LineSplitterTests(SynchronousTestCase):
    """L{LineSplitter}."""

    def feed(self, splitter: LineSplitter, chunks: list[bytes]) -> list[bytes]:
        """All lines that come out of C{chunks}."""
        return [line for chunk in chunks for line in splitter.feed(chunk)]

    @given(
        st.lists(st.text("ab\r\n\u2028\x0b", max_size=9).map(str.encode), max_size=12),
        st.integers(1, 12),
    )
    def test_any_chunking(self, chunks: list[bytes], limit: int) -> None:
        """However the bytes are cut, the same lines come out and the same are too long."""
        splitter = LineSplitter(limit)
        lines, oversized = expected(b"".join(chunks), limit)
        self.assertEqual(self.feed(splitter, chunks), lines)
        rest = b"".join(chunks).rpartition(b"\n")[2]
        self.assertEqual(splitter.oversized, oversized + (len(rest) > limit))

    def test_one_byte_at_a_time(self) -> None:
        """A CR and its LF may come apart; only one CR is dropped."""
        splitter = LineSplitter()
        data = b'{"a":1}\r\n\r\r\n\n'
        lines = self.feed(splitter, [data[i : i + 1] for i in range(len(data))])
        self.assertEqual(lines, [b'{"a":1}', b"\r", b""])

    def test_unicode_separators_are_no_line_ends(self) -> None:
        """U+2028, U+0085, VT and FF inside a record do not cut it."""
        text = "a\u2028b\u0085c\x0bd\x0ce".encode()
        self.assertEqual(LineSplitter().feed(text + b"\n"), [text])

    def test_after_an_oversized_line(self) -> None:
        """The rest of a line that is too long is not taken for a line, and the next one is."""
        splitter = LineSplitter(10)
        chunks = [b"x" * 8, b"x" * 8, b"tail\nnext\n"]
        self.assertEqual(self.feed(splitter, chunks), [b"next"])
        self.assertEqual(splitter.oversized, 1)
        self.assertEqual(splitter.pending, 0)

    def test_an_oversized_line_is_not_kept(self) -> None:
        """Memory does not grow with a line that never ends."""
        splitter = LineSplitter(100)
        for _ in range(50):
            splitter.feed(b"y" * 60)
        self.assertEqual((splitter.pending, splitter.oversized), (0, 1))
