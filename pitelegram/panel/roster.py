"""The buttons of the roster: what each does to a worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred

from pitelegram.errors import PiTelegramError
from pitelegram.panel.paging import page_of
from pitelegram.panel.reply import Reply
from pitelegram.panel.screens import Screen, confirm, workers
from pitelegram.routing.interfaces import INotices
from pitelegram.store.interfaces import IBindings
from pitelegram.supervisor.interfaces import ISupervisor, WorkerView
from pitelegram.targets import TelegramTarget
from pitelegram.threads.interfaces import IAttaching

GONE = "That worker is gone."


@attrs.define(eq=False)
class Roster:
    """Answers the buttons of the roster; every answer leads back to it."""

    _supervisor: ISupervisor
    _bindings: IBindings
    _notices: INotices
    _attaching: IAttaching

    async def show(self, page: str) -> Reply:
        """A page of the roster."""
        return Reply("", self._screen("", page_of(page)))

    async def ask_stop(self, spec_id: str) -> Reply:
        """Ask before a stop."""
        return self._ask(spec_id, "stop")

    async def ask_restart(self, spec_id: str) -> Reply:
        """Ask before a restart."""
        return self._ask(spec_id, "restart")

    async def stop(self, spec_id: str) -> Reply:
        """Stop; the roster is shown again when the worker has gone."""
        return self._live(spec_id, "Stopping", self._supervisor.stop)

    async def restart(self, spec_id: str) -> Reply:
        """Restart or start; the roster is shown again when the new process exists."""
        return self._live(spec_id, "Restarting", self._supervisor.restart)

    async def ask_fresh(self, spec_id: str) -> Reply:
        """Ask before a start in a new session."""
        return self._ask(spec_id, "fresh")

    async def fresh(self, spec_id: str) -> Reply:
        """Start in a new session; the old one stays where it is."""

        def restart(spec_id: str, actor: str) -> Deferred[Any]:
            return self._supervisor.restart(spec_id, actor, True)

        return self._live(spec_id, "Starting", restart)

    async def keep_waiting(self, spec_id: str) -> Reply:
        """Wait on for a worker that lives and does not register."""
        if self._view(spec_id) is None:
            return Reply(GONE, self._screen())
        self._supervisor.keep_waiting(spec_id)
        return Reply("Waiting on.", self._screen())

    async def locate(self, spec_id: str) -> Reply:
        """Put a marker into the worker's Thread; the panel stays as it is."""
        view = self._view(spec_id)
        if view is None:
            return Reply(GONE, self._screen())
        binding = self._bindings.get(view.binding_key)
        if binding is None or binding.target is None:
            return Reply("This worker has no Thread yet.")
        await self._notices.post(view.binding_key, f"📍 {view.name} is here.")
        return Reply("A marker is on its way into that Thread.")

    async def serve(self, spec_id: str) -> Reply:
        """Without Threads: give the chat to a worker."""
        view = self._view(spec_id)
        if view is None:
            return Reply(GONE, self._screen())
        binding = self._bindings.get(view.binding_key)
        chat = TelegramTarget(0 if binding is None or binding.chat_id is None else binding.chat_id)
        words = await self._attaching.attach(view.binding_key, chat)
        return Reply(words, self._screen(f"✅ {view.name}: {words}"))

    def _ask(self, spec_id: str, verb: str) -> Reply:
        view = self._view(spec_id)
        if view is None:
            return Reply(GONE, self._screen())
        if verb == "stop" and view.state == "stopped":
            return Reply(f"{view.name} is stopped already.", self._screen())
        return Reply("", confirm(view, verb))

    def _live(self, spec_id: str, words: str, act: Callable[[str, str], Deferred[Any]]) -> Reply:
        view = self._view(spec_id)
        if view is None:
            return Reply(GONE, self._screen())

        async def go() -> Reply:
            try:
                await act(spec_id, "operator")
            except PiTelegramError as error:
                return Reply("", self._screen(f"⚠️ {error}"))
            return Reply("", self._screen())

        return Reply(f"{words} {view.name}…", self._screen(), later=go)

    def _screen(self, note: str = "", page: int = 0) -> Screen:
        return workers(self._supervisor.views(), page, note)

    def _view(self, spec_id: str) -> WorkerView | None:
        return next((v for v in self._supervisor.views() if v.spec_id == spec_id), None)
