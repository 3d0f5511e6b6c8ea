"""Noticing that C{telegram.json} changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.application.service import Service
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.errors import PiTelegramError
from pitelegram.settings.file import SettingsFile
from pitelegram.settings.model import Settings

INTERVAL = 2.0


class Watcher(Service):
    """Looks at the file every two seconds and tells observers what it says now.

    Token and roots count from the next start; whoever listens takes the rest.  A file that became
    invalid or unsafe changes nothing but C{recovered}: the settings before stay in force.  A file
    that is gone counts only when it stays away for another look, since many editors save in two
    steps.

    @param settings: what was loaded at the start.
    @ivar problem: why the newest text of the file is not in force, None when it is.
    """

    _log = Logger()

    def __init__(self, file: SettingsFile, settings: Settings, clock: IReactorTime) -> None:
        self.settings = settings
        self._file = file
        self._clock = clock
        self._seen = file.signature()
        self._observers: list[Callable[[Settings], None]] = []
        self._call: Any = None
        self._gone = False
        self.problem: str | None = None

    def subscribe(self, observer: Callable[[Settings], None]) -> None:
        """Call C{observer(settings)} after each change."""
        self._observers.append(observer)

    def startService(self) -> None:
        """Begin to look."""
        super().startService()
        self._call = self._clock.callLater(INTERVAL, self._tick)

    def stopService(self) -> None:
        """Stop looking."""
        super().stopService()
        if self._call is not None and self._call.active():
            self._call.cancel()
        self._call = None

    def look(self) -> Settings:
        """Look now; returns the settings in force."""
        seen = self._file.signature()
        if seen not in (None, self._seen):
            self._seen = seen
            self._reload()
        return self.settings

    def _tick(self) -> None:
        self._call = self._clock.callLater(INTERVAL, self._tick)
        gone_before, self._gone = self._gone, self._file.signature() is None
        if gone_before and self._gone and self._seen is not None:
            self._seen = None
            self._reload()
        else:
            self.look()

    def _reload(self) -> None:
        try:
            found = self._file.load(attempts=1)
        except PiTelegramError as error:
            self.problem = str(error)
            self._log.warn("telegram.json changed and cannot be used: {reason}", reason=str(error))
            return
        self.problem = None
        if found.recovered:
            found = attrs.evolve(
                self.settings,
                recovered=True,
                threads_automatic_cleanup=False,
                threads_unattended_cleanup=False,
            )
            self._seen = self._file.signature()
        if found == self.settings:
            return
        self.settings = found
        for observer in list(self._observers):
            observer(found)
