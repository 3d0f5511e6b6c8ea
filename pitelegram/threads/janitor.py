"""Notes since when Threads are inactive, and deletes them unattended where that is switched on."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IReactorTime

from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.rounds import Rounds
from pitelegram.panel.interfaces import Switches
from pitelegram.routing.interfaces import INotices
from pitelegram.store.interfaces import IBindings
from pitelegram.threads.cleanup import Cleanup
from pitelegram.threads.titles import CONTROL_KEY

PERIOD = 300.0
"""Seconds between two rounds."""

AGE_MS = 24 * 3_600_000
"""A Thread has to be inactive for so long before it is deleted unattended."""


class Janitor(Rounds):
    """Runs every five minutes.

    @param lives: whether a process of a binding lives or may come back: True, False, or None while
        that cannot be told.
    @param may_delete: reads the switches anew; all off when the file cannot be trusted.
    """

    def __init__(
        self,
        clock: IReactorTime,
        bindings: IBindings,
        cleanup: Cleanup,
        lives: Callable[[str], bool | None],
        may_delete: Callable[[], Switches],
        notices: INotices,
        now_ms: Callable[[], int],
    ) -> None:
        super().__init__(clock, PERIOD)
        self._bindings = bindings
        self._cleanup = cleanup
        self._lives = lives
        self._may_delete = may_delete
        self._notices = notices
        self._now_ms = now_ms
        self._said = ""

    @deferred
    async def round(self) -> None:
        """Note who is inactive; then, if it is switched on, delete what was so for a day."""
        await self.note()
        if not self._may_delete().unattended:
            self._said = ""
            return
        deleted, kept, young = await self._cleanup.sweep(AGE_MS)
        text = _report(deleted, kept, young)
        if text and (deleted or text != self._said):
            await self._notices.post(CONTROL_KEY, text)
        self._said = text

    async def note(self) -> None:
        """Write down since when no process of a binding lives; the first time seen counts."""
        since = self._bindings.inactive()
        for binding in self._bindings.list():
            if binding.kind == "daemon":
                continue
            key = binding.binding_key
            lives = self._lives(key)
            if lives is True and key in since:
                await self._bindings.set_inactive(key, None)
            elif lives is False and key not in since:
                await self._bindings.set_inactive(key, self._now_ms())


def _report(deleted: int, kept: int, young: int) -> str:
    parts = []
    if deleted:
        parts.append(f"🧹 {deleted} Thread(s) that were inactive for a day were deleted.")
    if kept:
        parts.append(f"{kept} inactive Thread(s) were kept: something needs them.")
    if young and not deleted and not kept:
        parts.append(f"{young} inactive Thread(s) are younger than 24 hours and stay for now.")
    return " ".join(parts)
