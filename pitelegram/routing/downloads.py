"""Files that were fetched for workers, removed when they are old."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from twisted.internet.interfaces import IReactorTime

from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.kernel.rounds import Rounds

PERIOD = 3600.0

KEPT_SECONDS = 24 * 3600.0
"""A worker that needs a file after that time fetches it again."""

BATCH = 100
PAUSE = 0.05


class Downloads(Rounds):
    """Looks at the start and hourly.

    @param directory: holds nothing but such files.
    @param now: wall clock, as the file system's, seconds since the epoch.
    """

    def __init__(self, clock: IReactorTime, directory: Path, now: Callable[[], float]) -> None:
        super().__init__(clock, PERIOD)
        self._clock = clock
        self._directory = directory
        self._now = now

    @deferred
    async def round(self) -> None:
        """Remove regular files that were written more than 24 h ago."""
        before = self._now() - KEPT_SECONDS
        for number, name in enumerate(_names(self._directory), 1):
            _remove_older(self._directory / name, before)
            if number % BATCH == 0:
                await sleep(self._clock, PAUSE)


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


def _remove_older(path: Path, before: float) -> None:
    try:
        info = os.lstat(path)
        if stat.S_ISREG(info.st_mode) and info.st_mtime < before:
            os.unlink(path)
    except FileNotFoundError:
        return
