"""Settings that workers are told, since a worker never reads the file that holds the token."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import attrs
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.bus.interfaces import IFollowerLink
from pitelegram.errors import ConfigError, OwnershipError, Refusal, UnsafeFile
from pitelegram.kernel.deferring import deferred
from pitelegram.settings.file import SettingsFile
from pitelegram.settings.model import Settings
from pitelegram.settings.watching import Watcher


@attrs.frozen
class _Place:
    """Where a setting stands in C{telegram.json}, and what it may be.

    @ivar absent: the value that is written by taking the key away.
    """

    path: tuple[str, ...]
    values: tuple[Any, ...]
    absent: Any = None

    def takes(self, value: Any) -> bool:
        """Whether this is one of its values, of the same type: 1 is not true."""
        return any(type(value) is type(each) and value == each for each in self.values)


_SWITCH = (True, False)

WRITABLE = {
    "activity": _Place(("assistant", "activity"), ("quiet", "thinking", "tools", "verbose")),
    "automaticCleanup": _Place(("threads", "automaticCleanup"), _SWITCH),
    "footer": _Place(("assistant", "footer"), _SWITCH),
    "draftPreviews": _Place(("assistant", "draftPreviews"), _SWITCH),
    "proactivePush": _Place(("assistant", "proactivePush"), _SWITCH),
    "rendering": _Place(("assistant", "rendering"), ("rich", "html")),
    "timeInjection": _Place(("assistant", "timeInjection"), ("hidden", "always", "interval")),
    "voice.replyMode": _Place(("voice", "replyMode"), ("hidden", "mirror", "always"), "hidden"),
    "voice.sendTranscript": _Place(("voice", "sendTranscript"), _SWITCH),
}
"""What a worker may change for its operator; everything else in the file is none of its business."""


def as_told(settings: Settings, download_limit: int | None) -> dict[str, Any]:
    """Return what a worker is told; nothing in it is secret to the account it runs under."""
    return {
        "rendering": settings.assistant_rendering,
        "fileAfter": settings.assistant_file_after,
        "draftPreviews": settings.assistant_draft_previews,
        "proactivePush": settings.assistant_proactive_push,
        "activity": settings.assistant_activity,
        "footer": settings.assistant_footer,
        "timeInjection": settings.assistant_time_injection,
        "automaticCleanup": settings.threads_automatic_cleanup,
        "voice": {
            "replyMode": settings.voice_reply_mode,
            "sendTranscript": settings.voice_send_transcript,
        },
        "workspaceOnly": settings.attachments_workspace_only,
        "inboundHandlers": list(settings.inbound_handlers),
        "outboundHandlers": [dict(each) for each in settings.outbound_handlers],
        "downloadLimit": download_limit,
    }


@attrs.define(eq=False)
class WorkerSettings:
    """Tells each follower the settings when it registers and whenever they changed, and writes them.

    @param download_limit: returns how many bytes a file may have, None without a limit.
    """

    _file: SettingsFile
    _watcher: Watcher
    _clock: IReactorTime
    _download_limit: Callable[[], int | None]
    _told: WeakKeyDictionary[IFollowerLink, str] = attrs.field(
        factory=WeakKeyDictionary, init=False
    )
    _log = Logger()

    def first(self, link: IFollowerLink) -> dict[str, Any]:
        """Return the settings for the answer to a registration."""
        return self._tell(link)[0]

    def news(self, link: IFollowerLink) -> dict[str, Any] | None:
        """Return the settings if they changed since that follower was told, else None."""
        settings, new = self._tell(link)
        return settings if new else None

    def _tell(self, link: IFollowerLink) -> tuple[dict[str, Any], bool]:
        settings = as_told(self._watcher.settings, self._download_limit())
        text = json.dumps(settings, sort_keys=True)
        new = self._told.get(link) != text
        self._told[link] = text
        return settings, new

    @deferred
    async def set(self, name: str, value: Any) -> dict[str, Any]:
        """Write one setting; fires with all of them as they are in force then.

        @raise Refusal: C{unknown-setting}, C{invalid-value}, or C{unavailable} when the file cannot
            be written.
        """
        place = WRITABLE.get(name)
        if place is None:
            raise Refusal("unknown-setting", "there is no such setting")
        if not place.takes(value):
            raise Refusal("invalid-value", "that is no value of this setting")

        def change(document: dict[str, Any]) -> None:
            _write(document, place, value)

        try:
            await self._file.update(self._clock, change)
        except (ConfigError, OwnershipError, UnsafeFile, OSError) as error:
            self._log.warn("a setting was not stored: {why}", why=type(error).__name__)
            raise Refusal("unavailable", "telegram.json cannot be written just now") from None
        return as_told(self._watcher.look(), self._download_limit())


def _write(document: dict[str, Any], place: _Place, value: Any) -> None:
    """Change one key; what is there in place of an object is replaced by one."""
    *above, last = place.path
    inner = document
    for name in above:
        if not isinstance(inner.get(name), dict):
            inner[name] = {}
        inner = inner[name]
    if place.absent is not None and value == place.absent:
        inner.pop(last, None)
    else:
        inner[last] = value
