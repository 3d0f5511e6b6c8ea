"""Commands that are written: C{/workers …}, C{/attach NAME}, C{/detach}."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import attrs

from pitelegram.errors import PiTelegramError
from pitelegram.panel.picking import Picker
from pitelegram.panel.reply import Reply
from pitelegram.panel.rosterscreens import confirm
from pitelegram.panel.screens import Screen, closing, menu
from pitelegram.supervisor.interfaces import ISupervisor, WorkerView
from pitelegram.targets import TelegramTarget
from pitelegram.threads.interfaces import IAttaching

USAGE = (
    "/workers start DIRECTORY · stop NAME · restart NAME · logs NAME · attach NAME · detach ·"
    ' browse [DIRECTORY]\nNames and directories with spaces stand in quotes: "my project".'
)

_SAME = {"new": "start", "spawn": "start", "daemon": "menu"}


@attrs.define(eq=False)
class Texts:
    """Answers written commands with a screen.

    @param roster: the roster with a note above it.
    """

    _supervisor: ISupervisor
    _picker: Picker
    _attaching: IAttaching
    _roster: Callable[[str], Screen]

    async def workers(self, text: str, place: TelegramTarget) -> Screen:
        """C{/workers} with its words."""
        try:
            words = shlex.split(text)[1:]
        except ValueError:
            return self._roster("⚠️ A quote is not closed.\n\n" + USAGE)
        if not words:
            return self._roster("")
        verb, rest = _SAME.get(words[0].lower(), words[0].lower()), words[1:]
        if verb == "menu" and not rest:
            return menu()
        if verb == "browse" and len(rest) < 2:
            return _screen(await (self._picker.show(rest[0]) if rest else self._picker.begin()))
        if verb == "detach" and not rest:
            return await self.detach(place)
        if len(rest) != 1:
            return self._roster(USAGE)
        if verb == "start":
            return _screen(await self._picker.confirm(rest[0]))
        if verb in ("stop", "restart", "logs", "attach"):
            return await self._named(verb, rest[0], place)
        return self._roster(USAGE)

    async def attach(self, text: str, place: TelegramTarget) -> Screen:
        """C{/attach NAME}."""
        try:
            words = shlex.split(text)[1:]
        except ValueError:
            words = []
        if len(words) != 1:
            return closing("⚠️ /attach NAME gives this Thread to the worker of that name.")
        return await self._named("attach", words[0], place)

    async def detach(self, place: TelegramTarget) -> Screen:
        """C{/detach}."""
        try:
            return closing(f"✅ {await self._attaching.detach(place)}")
        except PiTelegramError as error:
            return closing(f"⚠️ {error}")

    async def _named(self, verb: str, name: str, place: TelegramTarget) -> Screen:
        view = self._find(name)
        if view is None:
            return self._roster("⚠️ Unknown Pi worker.")
        if verb == "attach":
            return await self._attach(view, place)
        if verb == "logs":
            return closing(f"{view.name}: {view.last_error or 'no error is known.'}")
        if verb == "stop" and view.state == "stopped":
            return self._roster(f"{view.name} is stopped already.")
        return confirm(view, verb)

    async def _attach(self, view: WorkerView, place: TelegramTarget) -> Screen:
        try:
            words = await self._attaching.attach(view.binding_key, place)
        except PiTelegramError as error:
            return closing(f"⚠️ {error}")
        return closing(f"✅ {view.name}: {words}")

    def _find(self, name: str) -> WorkerView | None:
        wanted = name.removeprefix("worker:").lower()
        found: Any = self._supervisor.find(name=wanted)
        return found  # type: ignore[no-any-return]


def _screen(reply: Reply) -> Screen:
    assert reply.screen is not None
    return reply.screen
