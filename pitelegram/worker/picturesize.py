"""How many pixels a picture has, by its head: 20 kB can unpack to gigabytes."""

from __future__ import annotations

import struct
from collections.abc import Callable

HEAD = 1 << 18
"""Bytes in which the size is looked for; what stands before it in a JPEG are preview and colours."""

_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})


def sides(mime: str, head: bytes) -> tuple[int, int]:
    """Return width and height, zeros where the head does not tell; see L{pixels}."""
    try:
        return _SIZES[mime](head)
    except (KeyError, IndexError, struct.error):
        return 0, 0


def pixels(mime: str, head: bytes) -> int:
    """Return width times height, 0 where the head does not tell.

    @param mime: what the first bytes say that it is.
    @param head: the beginning of the file, L{HEAD} bytes where it has them.
    """
    width, height = sides(mime, head)
    return width * height


def _png(head: bytes) -> tuple[int, int]:
    return struct.unpack_from(">II", head, 16)  # type: ignore[return-value]


def _gif(head: bytes) -> tuple[int, int]:
    return struct.unpack_from("<HH", head, 6)  # type: ignore[return-value]


def _jpeg(head: bytes) -> tuple[int, int]:
    """Go from segment to segment to the one that begins the frame."""
    place = 2
    while True:
        if head[place] != 0xFF:
            return 0, 0
        marker = head[place + 1]
        if marker == 0xFF:
            place += 1
        elif marker in _ALONE:
            place += 2
        elif marker in _FRAMES:
            height, width = struct.unpack_from(">HH", head, place + 5)
            return width, height
        else:
            place += 2 + max(2, struct.unpack_from(">H", head, place + 2)[0])


def _webp(head: bytes) -> tuple[int, int]:
    kind = head[12:16]
    if kind == b"VP8X":
        return _three(head, 24) + 1, _three(head, 27) + 1
    if kind == b"VP8L":
        packed = struct.unpack_from("<I", head, 21)[0]
        return (packed & 0x3FFF) + 1, (packed >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", head, 26)
        return width & 0x3FFF, height & 0x3FFF
    return 0, 0


def _three(head: bytes, place: int) -> int:
    return head[place] | head[place + 1] << 8 | head[place + 2] << 16


_SIZES: dict[str, Callable[[bytes], tuple[int, int]]] = {
    "image/gif": _gif,
    "image/jpeg": _jpeg,
    "image/png": _png,
    "image/webp": _webp,
}
