"""The status document on disk, for whoever looks when nobody answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.application.service import Service
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from pitelegram.control import outward
from pitelegram.errors import UnsafeFile
from pitelegram.kernel import jsonio
from pitelegram.kernel.files import write_private

PERIOD = 30.0
"""Seconds between two snapshots."""

PROBLEM = "the snapshot of the status cannot be written"


class Snapshots(Service):
    """Writes the document at the start, every half minute and once more at the end.

    It is observational: nothing reads it back into the program.

    @param path: C{state[.<profile>].json}.
    @param status: returns the document.
    @ivar problem: the sentence for the operator while it cannot be written.
    """

    log = Logger()

    def __init__(
        self, path: Path, status: Callable[[], dict[str, Any]], clock: IReactorTime
    ) -> None:
        self.problem: str | None = None
        self._path = path
        self._status = status
        self._loop = LoopingCall(self._write)
        self._loop.clock = clock

    def startService(self) -> None:
        """Write the first and go on."""
        super().startService()
        self._loop.start(PERIOD)

    def stopService(self) -> None:
        """Write the last."""
        super().stopService()
        self._loop.stop()
        self._write()

    def _write(self) -> None:
        try:
            document = outward.status(self._status())
            snapshot = {
                "source": "snapshot",
                "writtenAtMs": document["written_at_ms"],
                "status": document,
            }
            write_private(self._path, jsonio.dumps(snapshot), durable=False)
            self.problem = None
        except UnsafeFile as error:
            if self.problem is None:
                self.log.warn("the status snapshot was not written: {why}", why=str(error))
            self.problem = PROBLEM
        except Exception:
            self.problem = PROBLEM
            self.log.failure("the status snapshot was not written")
