"""What a binding's own store knows of its sessions."""

from __future__ import annotations

from typing import Any

import attrs

from pitelegram.kernel.jsonio import dumps, loads
from pitelegram.store.worker_interfaces import IInbox

KEPT = 50
"""How many sessions that were left are remembered."""

_KEY = "session"


@attrs.frozen(kw_only=True)
class Remembered:
    """The current session, and those before it.

    @ivar left: files of sessions that were left, the newest last.
    """

    file: str | None = None
    session_id: str | None = None
    left: tuple[str, ...] = ()


class SessionMemory:
    """Keeps it as one fact, so that file and id never disagree."""

    def __init__(self, inbox: IInbox) -> None:
        self._inbox = inbox

    def now(self) -> Remembered:
        """Return what is known."""
        stored = self._inbox.get_meta(_KEY)
        value: Any = None if stored is None else loads(stored)
        return (
            Remembered() if value is None else Remembered(**{**value, "left": tuple(value["left"])})
        )

    async def note(self, file: str, session_id: str | None) -> None:
        """Pi is in this session now."""
        before = self.now()
        if (file, session_id) == (before.file, before.session_id):
            return
        left = [each for each in before.left if each != file]
        if before.file not in (None, file):
            left.append(before.file)
        value = {"file": file, "session_id": session_id, "left": left[-KEPT:]}
        await self._inbox.set_meta(_KEY, dumps(value).decode())

    def latest(self, named: str | None) -> str | None:
        """Return the session to go on in.

        @param named: the one that the supervisor remembers.  It heard of sessions through heartbeats
            only, so one that was left here is an earlier one; one that is unknown here is a later one
            (this store was damaged and made anew).
        """
        mine = self.now()
        if named is None or mine.file is not None and named in mine.left:
            return mine.file
        return named
