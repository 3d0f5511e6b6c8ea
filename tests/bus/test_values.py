"""Big JSON values and the reader of boxes."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.protocols.amp import AmpBox
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bus.bigjson import BrokenPieces, Json, cut, join, parse
from pitelegram.bus.boxes import BOX_LIMIT, BoxReader, BrokenBox
from pitelegram.bus.fields import Integer
from pitelegram.kernel import jsonio
from pitelegram.testing.rawamp import packed

AROUND = st.one_of(
    st.integers(0, 50),
    st.builds(
        lambda times, off: max(0, times * 65_535 + off), st.integers(1, 4), st.integers(-3, 3)
    ),
)


class BigValueTests(SynchronousTestCase):
    """Values of any size."""

    @given(size=AROUND, character=st.sampled_from(["a", "ä", "€", "🛠"]), shift=st.integers(0, 3))
    @settings(max_examples=60, deadline=None)
    def test_round_trip(self, size: int, character: str, shift: int) -> None:
        """A text of any length, with characters cut in the middle, comes back; pieces fit AMP."""
        value = {"text": "x" * shift + character * (size // len(character.encode()))}
        argument, box, objects = Json(), AmpBox(), {}
        argument.toBox(b"update", box, {"update": value}, None)
        self.assertLessEqual(max(len(piece) for piece in box.values()), 65_535)
        box.serialize()
        argument.fromBox(b"update", box, objects, None)
        self.assertEqual(objects, {"update": value})

    @given(
        data=st.binary(max_size=300),
        cuts=st.lists(st.integers(0, 300), max_size=6),
    )
    @settings(max_examples=100, deadline=None)
    def test_joined_wherever_cut(self, data: bytes, cuts: list[int]) -> None:
        """A peer may cut anywhere, empty pieces included."""
        edges = [0, *sorted(min(edge, len(data)) for edge in cuts), len(data)]
        parts = [data[start:end] for start, end in zip(edges, edges[1:], strict=False)]
        box = {b"v" if number == 0 else b"v.%d" % number: p for number, p in enumerate(parts)}
        self.assertEqual(join(b"v", {**box, b"vv.7": b"other", b"v.x": b"other"}), data)

    def test_exact_multiple(self) -> None:
        """A value of exactly two pieces has no third, empty one."""
        self.assertEqual(sorted(cut(b"n", b"x" * 131_070)), [b"n", b"n.1"])

    def test_gap(self) -> None:
        """A missing piece is told from an absent value."""
        for box in (
            {b"v": b"1", b"v.2": b"2"},
            {b"v.1": b"2"},
            {b"v": b"1", b"v.1": b"", b"v.3": b""},
        ):
            self.assertRaises(BrokenPieces, join, b"v", box)
        self.assertIsNone(join(b"v", {b"w": b"1"}))

    def test_other_keys_are_no_pieces(self) -> None:
        """Keys that only look like pieces are unknown keys, and ignored."""
        box = {b"v": b"1", b"v.01": b"", b"v.0": b"", b"v.-1": b"", b"v.1.1": b"", b"w.5": b""}
        self.assertEqual(join(b"v", box), b"1")

    def test_ready_bytes(self) -> None:
        """Bytes are taken as JSON text that is ready."""
        box = AmpBox()
        Json().toBox(b"v", box, {"v": b'{"a": 1}'}, None)
        self.assertEqual(box, {b"v": b'{"a": 1}'})

    def test_hostile_json(self) -> None:
        """Endless nesting, broken UTF-8 and no JSON at all are plain value errors or mended."""
        deep = b"[" * 257 + b"]" * 257
        for data in (
            b"[" * 200_000,
            b"",
            b"{",
            b"nul",
            deep,
            b'{"a\\"[":' * 300 + b"1" + b"}" * 300,
        ):
            box = AmpBox(cut(b"v", data))
            self.assertRaises(ValueError, Json().fromBox, b"v", box, {}, None)

    def test_deep_enough(self) -> None:
        """Many brackets side by side, in texts, and everything that we can write ourselves pass."""
        for value in ([[]] * 5000, "[{" * 5000, ['\\"[' * 500], {"]": "}" * 900}):
            self.assertEqual(parse(jsonio.dumps(value)), value)
        self.assertEqual(len(jsonio.dumps(parse(b"[" * 250 + b"]" * 250))), 500)

    def test_lone_surrogate(self) -> None:
        """What Node writes when it cuts a string is mended, not refused."""
        objects: dict = {}
        Json().fromBox(b"v", AmpBox({b"v": b'{"a":"\\ud83d"}'}), objects, None)
        self.assertEqual(objects, {"v": {"a": "\ufffd"}})

    def test_decimal(self) -> None:
        """Only plain decimals are integers."""
        self.assertEqual(Integer().fromString(b"-17"), -17)
        for text in (b"1_0", b" 1", b"1\n", b"0x1", b"", b"9" * 5000, "١".encode()):
            self.assertRaises(ValueError, Integer().fromString, text)


class BoxReaderTests(SynchronousTestCase):
    """Cutting a stream into boxes."""

    @given(
        boxes=st.lists(
            st.dictionaries(
                st.binary(min_size=1, max_size=255), st.binary(max_size=400), min_size=1
            ),
            max_size=4,
        ),
        step=st.integers(1, 700),
    )
    @settings(max_examples=60, deadline=None)
    def test_any_chunking(self, boxes: list[dict[bytes, bytes]], step: int) -> None:
        """The same boxes come out however the stream was cut."""
        stream = b"".join(AmpBox(box).serialize() for box in boxes)
        reader = BoxReader(10**6)
        found = [
            box
            for start in range(0, len(stream), step)
            for box in reader.feed(stream[start : start + step])
        ]
        self.assertEqual(found, boxes)

    def test_limit_counts_before_the_box_is_complete(self) -> None:
        """An over-long box is refused at its first byte too many, not at its end."""
        reader = BoxReader(1000)
        list(reader.feed(packed([(b"k", b"x" * 900)])[:-2]))
        self.assertRaises(BrokenBox, lambda: list(reader.feed(b"\0\x01k\0\xff")))

    def test_limit_refuses_an_announced_value(self) -> None:
        """A value that would not fit is refused from its length alone."""
        self.assertRaises(BrokenBox, lambda: list(BoxReader(1000).feed(b"\0\x01k\xff\xff")))

    def test_exactly_the_limit(self) -> None:
        """A box of exactly the limit passes; the next starts counting from nothing."""
        box = packed([(b"k", b"x" * 100)])
        reader = BoxReader(len(box))
        self.assertEqual(len(list(reader.feed(box * 3))), 3)
        self.assertRaises(BrokenBox, lambda: list(BoxReader(len(box) - 1).feed(box)))

    def test_long_key(self) -> None:
        """A key of 256 bytes is no AMP."""
        self.assertRaises(BrokenBox, lambda: list(BoxReader().feed(b"\x01\x00")))

    def test_key_flood(self) -> None:
        """Tiny keys without end are refused although their bytes are few."""
        flood = b"".join(b"\0\x04%b\0\0" % number.to_bytes(4, "big") for number in range(65_600))
        self.assertRaises(BrokenBox, lambda: list(BoxReader(BOX_LIMIT).feed(flood)))

    def test_sixteen_mib(self) -> None:
        """A legal box of almost 16 MiB is read, in linear time."""
        value = json.dumps("y" * (16 * 1024 * 1024 - 4000)).encode()
        stream = AmpBox(cut(b"v", value)).serialize()
        reader = BoxReader(BOX_LIMIT)
        found = [
            box
            for start in range(0, len(stream), 65_536)
            for box in reader.feed(stream[start : start + 65_536])
        ]
        self.assertEqual([join(b"v", box) for box in found], [value])
