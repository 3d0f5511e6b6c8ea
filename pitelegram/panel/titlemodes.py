"""The display mode of Threads in C{telegram.json}."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from pitelegram.errors import Refusal
from pitelegram.kernel.deferring import deferred
from pitelegram.panel.interfaces import DISPLAY_MODES, ITitleModes
from pitelegram.settings.file import SettingsFile
from pitelegram.settings.watching import Watcher


@implementer(ITitleModes)
@attrs.define(eq=False)
class TitleModes:
    """Reads and writes C{profiles.<profile>.threadDisplayMode}; the titler follows by itself."""

    _file: SettingsFile
    _watcher: Watcher
    _clock: IReactorTime
    _profile: str

    def mode(self) -> str:
        """See L{ITitleModes.mode}."""
        return self._watcher.look().thread_display_mode

    @deferred
    async def choose(self, mode: str) -> str:
        """See L{ITitleModes.choose}."""
        if mode not in DISPLAY_MODES:
            raise Refusal("unknown-mode", "there is no such way to title Threads")

        def change(document: dict[str, Any]) -> None:
            profiles = document.setdefault("profiles", {})
            profiles.setdefault(self._profile, {})["threadDisplayMode"] = mode

        await self._file.update(self._clock, change)
        return self.mode()
