"""The pictures of a prompt, read from disk when it is handed over."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Callable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, execute
from twisted.logger import Logger

from pitelegram.store.rows import InboxRow
from pitelegram.worker.reading import MAX_PICTURE, MAX_PICTURES

LARGE = 1 << 20
"""Files from this size on are read in a thread."""
T = TypeVar("T")
_log = Logger()


class Pictures:
    """Reads pictures as late as possible, so that an edit or a lost file is noticed.

    @param in_thread: C{(function, *arguments) -> Deferred}, for what takes time.
    """

    def __init__(self, in_thread: Callable[..., Deferred[Any]] = execute) -> None:
        self._in_thread = in_thread

    async def of(self, row: InboxRow) -> tuple[list[dict[str, str]], int]:
        """Return a row's pictures as Pi wants them, and how many had to be left out."""
        wanted = (row.content or {}).get("images")
        images: list[dict[str, str]] = []
        room, missing = MAX_PICTURES, 0
        for each in wanted if isinstance(wanted, list) else ():
            data = await self._data(each, min(room, MAX_PICTURE))
            if data is None:
                missing += 1
                continue
            room -= len(data) // 4 * 3 - data[-2:].count("=")
            images.append({"type": "image", "data": data, "mimeType": each["mime"]})
        return images, missing

    async def _data(self, wanted: object, limit: int) -> str | None:
        if not isinstance(wanted, dict):
            return None
        path, mime = wanted.get("path"), wanted.get("mime")
        if not (isinstance(path, str) and isinstance(mime, str) and mime.startswith("image/")):
            return None
        try:
            size = os.lstat(path).st_size
            if not 0 < size <= limit:
                return None
            if size < LARGE:
                return _read(path, limit)
            return await self._in_thread(_read, path, limit)
        except (OSError, ValueError) as error:
            _log.info("a picture cannot be read: {kind}", kind=type(error).__name__)
            return None


def _read(path: str, limit: int) -> str | None:
    """Return a regular file's content as base64, None when it is none or too large."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        data = file.read(limit + 1)
    return base64.b64encode(data).decode("ascii") if 0 < len(data) <= limit else None
