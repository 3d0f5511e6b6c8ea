"""Files are known by what they hold."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.interfaces import FileItem
from pitelegram.worker.reading import MAX_PICTURE, picture_type, pictures, text_of

HEADS = {
    "image/png": b"\x89PNG\r\n\x1a\n....",
    "image/jpeg": b"\xff\xd8\xff\xe0....",
    "image/gif": b"GIF89a\1\0\1\0",
    "image/webp": b"RIFF....WEBPVP8 ",
}


class ReadingCase(SynchronousTestCase):
    """A directory for files."""

    def setUp(self) -> None:
        """Make it."""
        self.directory = Path(self.mktemp())
        self.directory.mkdir()

    def file(self, data: bytes, name: str = "x.bin", kind: str = "document") -> FileItem:
        """Return a file with that content."""
        path = self.directory / f"{len(list(self.directory.iterdir()))}-{name}"
        path.write_bytes(data)
        return FileItem(
            kind=kind, path=str(path), name=name, mime="application/pdf", size=len(data)
        )


class PictureTests(ReadingCase):
    """L{pictures}."""

    def test_by_content(self) -> None:
        """The first bytes count, not name or told type."""
        for mime, head in HEADS.items():
            (found,) = pictures([self.file(head, "x.txt")])
            self.assertEqual(found["mime"], mime)
        self.assertEqual(pictures([self.file(b"%PDF", "x.png"), self.file(b"", "y.png")]), [])

    def test_bounds(self) -> None:
        """A picture over 5 MB is only a path; so is what exceeds 15 MB together."""
        png = HEADS["image/png"]
        exact = self.file(png + b"\0" * (MAX_PICTURE - len(png)))
        over = self.file(png + b"\0" * (MAX_PICTURE + 1 - len(png)))
        small = self.file(png)
        self.assertEqual(len(pictures([exact, over, small])), 2)
        self.assertEqual(len(pictures([exact] * 4)), 3)

    def test_pixels(self) -> None:
        """A small file that unpacks to a huge picture is only a path; so is what is too much together."""

        def png(width: int, height: int) -> FileItem:
            return self.file(
                HEADS["image/png"][:8] + struct.pack(">I4sII", 13, b"IHDR", width, height)
            )

        bomb, large, usual = png(12_000, 12_000), png(8_000, 5_000), png(4_000, 3_000)
        self.assertEqual([each["path"] for each in pictures([bomb, usual])], [usual.path])
        self.assertEqual(len(pictures([large])), 1)
        self.assertEqual(len(pictures([large, png(8_001, 5_000), large, large, usual])), 3)

    def test_what_is_no_file(self) -> None:
        """Links, pipes, directories and nothing: no picture, and no waiting."""
        link = self.directory / "link"
        link.symlink_to(self.file(HEADS["image/png"]).path)
        pipe = self.directory / "pipe"
        os.mkfifo(pipe)
        for path in (link, pipe, self.directory, self.directory / "none", "a\0b"):
            self.assertIsNone(picture_type(str(path)))


class TextTests(ReadingCase):
    """L{text_of}."""

    def test_text(self) -> None:
        """UTF-8, with or without its mark, tabs, escapes and any line end."""
        self.assertEqual(text_of(self.file("ä\tb\r\n".encode(), "a.md")), "[a.md]\nä\tb\r\n")
        self.assertEqual(text_of(self.file(b"\xef\xbb\xbfx", "a")), "[a]\nx")

    def test_no_text(self) -> None:
        """Control characters, other encodings, nothing, too much; only documents."""
        for data in (b"a\0", b"\x01", b"\xff\xfe", "ä".encode("latin-1"), b"", b"x" * 1_000_001):
            self.assertIsNone(text_of(self.file(data)))
        self.assertIsNone(text_of(self.file(b"x", kind="audio")))
        self.assertIsNotNone(text_of(self.file(b"x" * 1_000_000)))
