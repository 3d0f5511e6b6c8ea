"""AMP boxes out of a stream, counted while they come.

Twisted's own reader takes any number of keys; this one knows how large a box may be before it is
complete, so that a peer cannot make us hold more than that.
"""

from __future__ import annotations

from collections.abc import Iterator

from twisted.protocols.amp import AmpBox

from pitelegram.errors import BusBadRequest

BOX_LIMIT = 16 * 1024 * 1024
"""Bytes of one box, lengths included."""

EARLY_LIMIT = 16 * 1024
"""The same before authentication."""

KEY_LIMIT = 65_536
"""Keys of one box: the table of keys must not outgrow the bytes."""


class BrokenBox(BusBadRequest):
    """The stream is no sequence of boxes within the limits; the connection ends."""


class BoxReader:
    """Cuts a stream into boxes.

    @ivar limit: bytes that one box may have; may be changed between two boxes.
    """

    def __init__(self, limit: int = EARLY_LIMIT) -> None:
        self.limit = limit
        self._buffer = b""
        self._box: AmpBox = AmpBox()
        self._key: bytes | None = None
        self._size = 0

    def feed(self, data: bytes) -> Iterator[AmpBox]:
        """Take bytes and yield each box as it becomes complete.

        A caller that stops iterating gives up the rest of the stream.

        @raise BrokenBox: an empty or over-long key, a box over its limit, or too many keys.
        """
        buffer = self._buffer + data if self._buffer else data
        offset, available = 0, len(buffer)
        while available - offset >= 2:
            length = buffer[offset] << 8 | buffer[offset + 1]
            if self._key is None and length > 255:
                raise BrokenBox("a key of a box is longer than 255 bytes")
            if self._size + 2 + length > self.limit:
                raise BrokenBox("a box is larger than its limit")
            end = offset + 2 + length
            if end > available:
                break
            complete = self._take(buffer[offset + 2 : end])
            offset = end
            if complete is not None:
                yield complete
        self._buffer = buffer[offset:]

    def _take(self, string: bytes) -> AmpBox | None:
        self._size += 2 + len(string)
        if self._key is not None:
            self._box[self._key] = string
            self._key = None
            return None
        if string:
            if len(self._box) >= KEY_LIMIT:
                raise BrokenBox("a box has too many keys")
            self._key = string
            return None
        box, self._box, self._size = self._box, AmpBox(), 0
        return box
