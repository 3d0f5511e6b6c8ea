"""Files that Telegram keeps, streamed to disk, or copied from a local server's."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from twisted.internet.interfaces import IReactorTime

from pitelegram.botapi.exchange import Collector
from pitelegram.errors import Refusal
from pitelegram.kernel.deferring import deferred, sleep

PUBLIC_LIMIT = 20_000_000
"""Bytes of the largest file that the public Bot API hands out."""

LOCAL_LIMIT = 2_000_000_000
"""The same for a Bot API server of one's own."""

PUBLIC_ROOT = "https://api.telegram.org"
_PIECE = 1 << 20

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


def download_limit(api_root: str) -> int:
    """Return how large a file may be that a server gives to a bot."""
    return PUBLIC_LIMIT if api_root.rstrip("/").lower() == PUBLIC_ROOT else LOCAL_LIMIT


def too_large(limit: int) -> Refusal:
    """Return the refusal of a file over the limit."""
    return Refusal("too-large", f"the file is larger than {limit} bytes", limit=limit)


@deferred
async def copy_local(clock: IReactorTime, source: str, destination: Path, limit: int) -> int:
    """Copy a file that a server on this machine keeps; fires with its size.

    A server that was started with C{--local} names the files themselves.

    @raise Refusal: C{too-large}.
    @raise OSError: one of the two cannot be used.
    """
    reading = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(reading, "rb") as found:
        about = os.fstat(reading)
        if not stat.S_ISREG(about.st_mode):
            raise OSError("that is no regular file")
        if about.st_size > limit:
            raise too_large(limit)
        collector = FileCollector(destination, limit)
        collector.status, whole = 200, False
        try:
            while data := found.read(_PIECE):
                if collector.size + len(data) > limit:
                    raise too_large(limit)
                collector.take(data)
                await sleep(clock, 0)
            whole = True
        finally:
            collector.close(keep=whole)
    return collector.size
