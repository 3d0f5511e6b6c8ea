"""The size of a picture stands in its head."""

from __future__ import annotations

import struct
from random import Random

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.worker.picturesize import pixels

W, H = 12_345, 678


def jpeg(*segments: bytes) -> bytes:
    """Return a head with these segments before its frame."""
    frame = b"\xff\xc2" + struct.pack(">HBHH", 17, 8, H, W)
    return b"\xff\xd8" + b"".join(segments) + frame


HEADS = {
    "png": ("image/png", b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", W, H)),
    "gif": ("image/gif", b"GIF89a" + struct.pack("<HH", W, H)),
    "jpeg": ("image/jpeg", jpeg()),
    "jpeg with segments": (
        "image/jpeg",
        jpeg(b"\xff\xe1" + struct.pack(">H", 5002) + b"\xff\xc0" * 2500, b"\xff\xff\xff\x01"),
    ),
    "webp": (
        "image/webp",
        b"RIFF....WEBPVP8 " + bytes(4) + b"...\x9d\x01\x2a" + struct.pack("<HH", W, H | 0x4000),
    ),
    "webp lossless": (
        "image/webp",
        b"RIFF....WEBPVP8L" + bytes(4) + b"\x2f" + struct.pack("<I", W - 1 | (H - 1) << 14),
    ),
    "webp extended": (
        "image/webp",
        b"RIFF....WEBPVP8X"
        + bytes(8)
        + struct.pack("<I", W - 1)[:3]
        + struct.pack("<I", H - 1)[:3],
    ),
}


class SizeTests(SynchronousTestCase):
    """L{pixels}."""

    def test_each_kind(self) -> None:
        """It is found in each kind of picture."""
        for name, (mime, head) in HEADS.items():
            self.assertEqual(pixels(mime, head + bytes(50)), W * H, name)

    def test_what_is_cut_or_spoilt(self) -> None:
        """Nothing is raised for a head that is cut or spoilt, and a cut one tells nothing."""
        random = Random(5)
        for name, (mime, head) in HEADS.items():
            for end in range(len(head)):
                self.assertEqual(pixels(mime, head[:end]), 0, (name, end))
            for _ in range(200):
                spoilt = bytearray(head)
                spoilt[random.randrange(len(head))] = random.randrange(256)
                self.assertGreaterEqual(pixels(mime, bytes(spoilt)), 0)
        self.assertEqual(pixels("image/tiff", b"II*\0" * 20), 0)
        self.assertEqual(pixels("image/jpeg", b"\xff" * 100_000), 0)
