"""Files that Telegram keeps, streamed to disk."""

from __future__ import annotations

import os
from pathlib import Path

from pitelegram.botapi.exchange import Collector

PUBLIC_LIMIT = 20_000_000
"""Bytes of the largest file that the public Bot API hands out."""

_ERROR_BODY = 64 * 1024


class FileCollector(Collector):
    """Writes a body to a new private file; an error answer is collected in memory instead.

    @param destination: must not exist.
    @param limit: bytes.
    @ivar size: bytes written so far.
    """

    def __init__(self, destination: Path, limit: int) -> None:
        super().__init__(limit)
        self._destination = destination
        self._descriptor: int | None = None
        self.size = 0

    def take(self, data: bytes) -> None:
        """Write a piece."""
        if self.status != 200:
            if self._size <= _ERROR_BODY:
                super().take(data)
            return
        self._open()
        assert self._descriptor is not None
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]
        self.size += len(data)

    def _open(self) -> None:
        if self._descriptor is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(self._destination, flags, 0o600)

    def close(self, keep: bool) -> None:
        """Close the file; without C{keep} it is removed, if it is ours."""
        if keep:
            self._open()
        if self._descriptor is None:
            return
        os.close(self._descriptor)
        self._descriptor = None
        if not keep:
            os.unlink(self._destination)
