"""The cleanup switches in C{telegram.json}."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import IReactorTime

from pitelegram.errors import Refusal
from pitelegram.kernel.deferring import deferred
from pitelegram.panel.interfaces import Switches
from pitelegram.settings.file import SettingsFile
from pitelegram.settings.watching import Watcher

KEYS = {"on_quit": "automaticCleanup", "unattended": "unattendedCleanup"}


@attrs.define(eq=False)
class CleanupSwitches:
    """Reads and flips them; other programs may change the file too."""

    _file: SettingsFile
    _watcher: Watcher
    _clock: IReactorTime

    def read(self) -> Switches:
        """Return the switches as the file has them now."""
        settings = self._watcher.look()
        return Switches(
            on_quit=settings.threads_automatic_cleanup,
            unattended=settings.threads_unattended_cleanup,
        )

    def trusted(self) -> Switches:
        """Return them for a deletion: all off while the file cannot be understood."""
        switches = self.read()
        if self._watcher.problem is not None or self._watcher.settings.recovered:
            return Switches(on_quit=False, unattended=False)
        return switches

    def flip(self, name: str) -> Deferred[Switches]:
        """Flip one in the file; fires with what is in force then.

        @raise pitelegram.errors.ConfigError: the file is not valid JSON.
        @raise pitelegram.errors.Refusal: there is no such switch.
        """
        if name not in KEYS:
            return fail(Refusal("unknown-setting", "there is no such switch"))
        return self._flip(name, KEYS[name])

    @deferred
    async def _flip(self, name: str, key: str) -> Switches:
        wanted = not getattr(self.read(), name)

        def change(document: dict[str, Any]) -> None:
            document.setdefault("threads", {})[key] = wanted

        await self._file.update(self._clock, change)
        return self.read()
