"""The Threads screen: inactive Threads, the switches of their deletion, and how Threads are titled."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from pitelegram.errors import PiTelegramError
from pitelegram.panel.interfaces import DISPLAY_MODES, ICleanup, ITitleModes, Switches
from pitelegram.panel.reply import Reply
from pitelegram.panel.screens import MENU_BUTTON, Button, Screen, noted

NAMES_SHOWN = 26

FLIPPED = {
    ("on_quit", True): "Tabs delete on graceful quit.",
    ("on_quit", False): "Tabs are preserved on quit.",
    ("unattended", True): "Provably inactive tabs now delete unattended.",
    ("unattended", False): "Unattended deletion is off.",
}

TITLES = {
    "letters": "A, B, C …",
    "names": "the worker's name in words, like Atlas",
    "directory-snake": "my_project",
    "directory-title": "My Project",
    "state": "🟢 or ⏳ and the name",
}
"""What each display mode looks like."""


@attrs.define(eq=False)
class Cleaning:
    """Answers the buttons of the Threads screen."""

    _cleanup: ICleanup
    _titles: ITitleModes

    async def show(self, _: str = "") -> Reply:
        """The screen as it opens."""
        return Reply("", self._screen())

    async def review(self, _: str) -> Reply:
        """Look for inactive Threads; deletes nothing."""
        try:
            operation, names = await self._cleanup.review()
        except PiTelegramError:
            words = "Could not safely review inactive tabs."
            return Reply(words, self._screen(f"⚠️ {words}"), alert=True)
        if not names:
            words = "No proven inactive tabs."
            return Reply(words, self._screen(words))
        words = f"{len(names)} inactive: {_listed(names)}"
        return Reply(f"{len(names)} inactive.", self._screen(words, operation))

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
                return Reply("", self._screen(f"⚠️ {error}"), alert=True)
            return Reply("", self._screen(words))

        return Reply("Deleting…", self._screen("Deleting…"), later=go)

    async def flip(self, name: str) -> Reply:
        """Flip one of the switches."""
        try:
            switches = await self._cleanup.flip(name)
        except (PiTelegramError, OSError):
            words = "Could not change the cleanup setting."
            return Reply(words, self._screen(f"⚠️ {words}"), alert=True)
        words = FLIPPED[(name, switches.on_quit if name == "on_quit" else switches.unattended)]
        return Reply(words, self._screen(words))

    async def titles(self, _: str = "") -> Reply:
        """The screen with the ways to title Threads."""
        return Reply("", titling(self._titles.mode()))

    async def retitle(self, mode: str) -> Reply:
        """Title Threads that way from now on."""
        if mode not in DISPLAY_MODES:
            return Reply("There is no such way to title Threads.", titling(self._titles.mode()))
        try:
            now = await self._titles.choose(mode)
        except (PiTelegramError, OSError):
            words = "Could not change how Threads are titled."
            return Reply(words, titling(self._titles.mode(), f"⚠️ {words}"), alert=True)
        return Reply(f"Titles: {now}", titling(now))

    def _screen(self, note: str = "", operation: str | None = None) -> Screen:
        return threads(self._cleanup.switches(), self._titles.mode(), note, operation)


def threads(switches: Switches, mode: str, note: str = "", operation: str | None = None) -> Screen:
    """The Threads screen.

    @param mode: how Threads are titled.
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
    rows.append((Button(f"🏷 Titles: {mode}", "ptd:tt"),))
    rows.append((MENU_BUTTON,))
    return Screen("\n".join(lines), tuple(rows), "threads")


def titling(mode: str, note: str = "") -> Screen:
    """The screen with the ways to title Threads; the one in force is marked."""
    lines = ["🏷 Titles of Threads", "", *(f"{each}: {TITLES[each]}" for each in DISPLAY_MODES)]
    lines += ["", "A Thread that you named yourself keeps its name."]
    rows = [(Button(f"{_mark(each == mode)} {each}", f"ptd:ts:{each}"),) for each in DISPLAY_MODES]
    back = (Button("↩️ Back", "ptd:th"), MENU_BUTTON)
    return Screen(noted("\n".join(lines), note), (*rows, back))


def _mark(on: bool) -> str:
    return "🟢" if on else "⚫"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    return f"{shown} …" if len(names) > NAMES_SHOWN else shown
