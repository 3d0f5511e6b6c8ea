"""The buttons of the roster: what each does to a worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred

from pitelegram.errors import PiTelegramError
from pitelegram.panel.paging import page_of
from pitelegram.panel.reply import Reply
from pitelegram.panel.rosterscreens import Serving, confirm, workers
from pitelegram.panel.screens import Screen
from pitelegram.routing.interfaces import INotices
from pitelegram.store.interfaces import IBindings
from pitelegram.supervisor.interfaces import ISupervisor, WorkerView
from pitelegram.targets import TelegramTarget
from pitelegram.threads.interfaces import IAttaching

GONE = "That worker is gone."

NO_THREAD = "This worker has no Thread yet."

RUNS = ("running", "spawning")
"""States in which a worker lives and nothing is done to it."""


@attrs.define(eq=False)
class Roster:
    """Answers the buttons of the roster; every answer leads back to it."""

    _supervisor: ISupervisor
    _bindings: IBindings
    _notices: INotices
    _attaching: IAttaching
    _under_way: set[tuple[str, str]] = attrs.field(factory=set, init=False)

    async def show(self, page: str) -> Reply:
        """A page of the roster."""
        return Reply("", self.screen("", page_of(page)))

    async def ask_stop(self, spec_id: str) -> Reply:
        """Ask before a stop."""
        return self._ask(spec_id, "stop")

    async def ask_restart(self, spec_id: str) -> Reply:
        """Ask before a restart."""
        return self._ask(spec_id, "restart")

    async def stop(self, spec_id: str) -> Reply:
        """Stop; the roster is shown again when the worker has gone."""
        return self._live(spec_id, "Stopping", self._supervisor.stop)

    async def restart(self, life: str) -> Reply:
        """Restart or start; the roster is shown again when the new process exists.

        @param life: see L{pitelegram.panel.rosterscreens.life_of}.
        """
        return self._anew(life, "Restarting", self._supervisor.restart)

    async def ask_fresh(self, spec_id: str) -> Reply:
        """Ask before a start in a new session."""
        return self._ask(spec_id, "fresh")

    async def fresh(self, life: str) -> Reply:
        """Start in a new session; the old one stays where it is."""

        def restart(spec_id: str, actor: str) -> Deferred[Any]:
            return self._supervisor.restart(spec_id, actor, True)

        return self._anew(life, "Starting", restart)

    async def keep_waiting(self, spec_id: str) -> Reply:
        """Wait on for a worker that lives and does not register."""
        if self._view(spec_id) is None:
            return Reply(GONE, self.screen())
        self._supervisor.keep_waiting(spec_id)
        return Reply("Waiting on.", self.screen())

    async def locate(self, spec_id: str) -> Reply:
        """Put a marker into the worker's Thread; the panel stays as it is."""
        view = self._view(spec_id)
        if view is None:
            return Reply(GONE, self.screen())
        binding = self._bindings.get(view.binding_key)
        if binding is None or binding.target is None:
            classic = self._attaching.is_classic()
            return Reply("This chat talks to another worker." if classic else NO_THREAD)
        await self._notices.post(view.binding_key, f"📍 {view.name} is here.")
        return Reply("A marker is on its way into that Thread.")

    async def serve(self, spec_id: str) -> Reply:
        """Without Threads: give the chat to a worker."""
        view = self._view(spec_id)
        if view is None:
            return Reply(GONE, self.screen())
        if not self._attaching.is_classic():
            return Reply("Each worker has its own Thread.", self.screen())
        if view.state != "running":
            return Reply(f"{view.name} does not run.", self.screen())
        # Without Threads the place says nothing: there is one chat.
        words = await self._attaching.attach(view.binding_key, TelegramTarget(0))
        return Reply(words, self.screen(f"✅ {view.name}: {words}"))

    def _ask(self, spec_id: str, verb: str) -> Reply:
        view = self._view(spec_id)
        if view is None:
            return Reply(GONE, self.screen())
        if verb == "stop" and view.state == "stopped":
            return Reply(f"{view.name} is stopped already.", self.screen())
        return Reply("", confirm(view, verb))

    def _anew(self, life: str, words: str, act: Callable[[str, str], Deferred[Any]]) -> Reply:
        """Act unless the worker whose restart was meant has gone and another one lives."""
        spec_id, _, pid = life.partition(":")
        view = self._view(spec_id)
        if view is not None and pid and view.state in RUNS and pid != str(view.pid or 0):
            return Reply(f"{view.name} was started anew already.", self.screen())
        return self._live(spec_id, words, act)

    def _live(self, spec_id: str, words: str, act: Callable[[str, str], Deferred[Any]]) -> Reply:
        view = self._view(spec_id)
        if view is None:
            return Reply(GONE, self.screen())
        if words == "Stopping" and view.state == "stopped":
            return Reply(f"{view.name} is stopped already.", self.screen())
        doing = (spec_id, words)
        if doing in self._under_way:
            return Reply(f"{words} {view.name} already…", self.screen())
        self._under_way.add(doing)

        async def go() -> Reply:
            try:
                await act(spec_id, "operator")
            except PiTelegramError as error:
                return Reply("", self.screen(f"⚠️ {error}"), alert=True)
            finally:
                self._under_way.discard(doing)
            return Reply("", self.screen())

        return Reply(f"{words} {view.name}…", self.screen(), later=go)

    def screen(self, note: str = "", page: int = 0) -> Screen:
        """A page of the roster with a note above it; without Threads it says whom the chat serves."""
        serving = Serving(self._attaching.serving()) if self._attaching.is_classic() else None
        return workers(self._supervisor.views(), page, note, serving)

    def _view(self, spec_id: str) -> WorkerView | None:
        return next((v for v in self._supervisor.views() if v.spec_id == spec_id), None)
