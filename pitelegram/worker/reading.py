"""Looking into files that were fetched: pictures by their first bytes, and text."""

from __future__ import annotations

import os
import stat

from pitelegram.bridge.interfaces import FileItem
from pitelegram.bridge.marking import plain
from pitelegram.worker.picturesize import HEAD, pixels

MAX_PICTURE = 5_000_000
"""Bytes of a picture that Pi is shown; of a larger one it gets the path.

Pi scales larger ones for many seconds, and answers nothing meanwhile.
"""
MAX_PICTURES = 15_000_000
"""Bytes of all pictures of one prompt together."""
MAX_PIXELS = 40_000_000
"""Of a picture; Pi answers nothing for half a minute while it makes one of 144 million smaller."""
MAX_ALL_PIXELS = 100_000_000
"""Of all pictures of one prompt."""
MAX_TEXT = 1_000_000
_CONTROL = frozenset(range(32)) - {9, 10, 12, 13, 27}


def picture_type(path: str) -> str | None:
    """Return the MIME type of a picture by what it holds; None for everything else."""
    head = _read(path, 16)
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def pictures(files: list[FileItem]) -> list[dict[str, str]]:
    """Return C{path} and C{mime} of what Pi can be shown, within the bounds."""
    found, room, area = [], MAX_PICTURES, MAX_ALL_PIXELS
    for file in files:
        mime = picture_type(file.path)
        if mime is None or not 0 < file.size <= min(room, MAX_PICTURE):
            continue
        size = pixels(mime, _read(file.path, HEAD))
        if size <= min(area, MAX_PIXELS):
            room, area = room - file.size, area - size
            found.append({"path": file.path, "mime": mime})
    return found


def text_of(file: FileItem) -> str | None:
    """Return a text file's name and content; None when it is none, or too large."""
    if file.kind != "document" or file.size > MAX_TEXT:
        return None
    data = _read(file.path, MAX_TEXT + 1)
    if not data or len(data) > MAX_TEXT or not _CONTROL.isdisjoint(data):
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return f"[{plain(file.name, 'file')}]\n{text}"


def _read(path: str, size: int) -> bytes:
    """Return the beginning of a regular file, nothing when there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(size)
    finally:
        os.close(descriptor)
