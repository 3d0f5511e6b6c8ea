"""The Threads screen: inactive Threads, and the switches of their deletion."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from pitelegram.errors import PiTelegramError
from pitelegram.panel.interfaces import ICleanup, Switches
from pitelegram.panel.reply import Reply
from pitelegram.panel.screens import MENU_BUTTON, Button, Screen

NAMES_SHOWN = 26

FLIPPED = {
    ("on_quit", True): "Tabs delete on graceful quit.",
    ("on_quit", False): "Tabs are preserved on quit.",
    ("unattended", True): "Provably inactive tabs now delete unattended.",
    ("unattended", False): "Unattended deletion is off.",
}


@attrs.define(eq=False)
class Cleaning:
    """Answers the buttons of the Threads screen."""

    _cleanup: ICleanup

    async def show(self, _: str = "") -> Reply:
        """The screen as it opens."""
        return Reply("", threads(self._cleanup.switches()))

    async def review(self, _: str) -> Reply:
        """Look for inactive Threads; deletes nothing."""
        try:
            operation, names = await self._cleanup.review()
        except PiTelegramError:
            words = "Could not safely review inactive tabs."
            return Reply(words, threads(self._cleanup.switches(), f"⚠️ {words}"), alert=True)
        if not names:
            words = "No proven inactive tabs."
            return Reply(words, threads(self._cleanup.switches(), words))
        words = f"{len(names)} inactive: {_listed(names)}"
        return Reply(f"{len(names)} inactive.", threads(self._cleanup.switches(), words, operation))

    async def ask(self, operation: str) -> Reply:
        """Ask before anything is deleted."""
        text = (
            "🗑 Delete the reviewed Threads?\n\nEach is proven inactive once more right before it"
            " is deleted. Their messages cannot be brought back."
        )
        rows = (
            (Button("🗑 Delete reviewed", f"ptd:tx:{operation}"),),
            (Button("↩️ Back", "ptd:th"),),
        )
        return Reply("", Screen(text, rows))

    async def delete(self, operation: str) -> Reply:
        """Delete what was reviewed."""

        async def go() -> Reply:
            try:
                deleted, kept = await self._cleanup.delete(operation)
                words = f"Deleted {deleted}; kept {kept}."
            except PiTelegramError as error:
                words = f"⚠️ {error}"
            return Reply("", threads(self._cleanup.switches(), words))

        return Reply("Deleting…", threads(self._cleanup.switches(), "Deleting…"), later=go)

    async def flip(self, name: str) -> Reply:
        """Flip one of the switches."""
        try:
            switches = await self._cleanup.flip(name)
        except (PiTelegramError, OSError):
            words = "Could not change the cleanup setting."
            return Reply(words, threads(self._cleanup.switches(), f"⚠️ {words}"), alert=True)
        words = FLIPPED[(name, switches.on_quit if name == "on_quit" else switches.unattended)]
        return Reply(words, threads(switches, words))


def threads(switches: Switches, note: str = "", operation: str | None = None) -> Screen:
    """The Threads screen.

    @param operation: a review that found something, which may be deleted now.
    """
    lines = [
        "🧹 Inactive Threads",
        "",
        "A Thread is inactive once the last process of its worker is proven gone.",
        "Review deletes nothing. Unattended cleanup deletes what was inactive for 24 hours.",
    ]
    if note:
        lines += ["", note]
    rows: list[tuple[Button, ...]] = [(Button("🔍 Review inactive", "ptd:tr"),)]
    if operation is not None:
        rows.append((Button("🗑 Delete reviewed", f"ptd:td:{operation}"),))
    rows.append((Button(f"{_mark(switches.on_quit)} Delete tab on quit", "ptd:tf:on_quit"),))
    rows.append((Button(f"{_mark(switches.unattended)} Unattended cleanup", "ptd:tf:unattended"),))
    rows.append((MENU_BUTTON,))
    return Screen("\n".join(lines), tuple(rows))


def _mark(on: bool) -> str:
    return "🟢" if on else "⚫"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    return f"{shown} …" if len(names) > NAMES_SHOWN else shown
