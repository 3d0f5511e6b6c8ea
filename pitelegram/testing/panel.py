"""Neighbours of the panel: a supervisor that does what the test says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred, fail, succeed
from zope.interface import implementer

from pitelegram.botapi.interfaces import ISendGate
from pitelegram.errors import Refusal
from pitelegram.ids import managed_binding
from pitelegram.panel.interfaces import ICleanup, IDirectories, ITitleModes, Switches
from pitelegram.supervisor.interfaces import ISupervisor, WorkerView


def a_view(name: str, state: str = "running", **changes: Any) -> WorkerView:
    """Return a worker as listings show it; its spec id is C{id-<name>}."""
    spec_id = f"id-{name}"
    facts: dict[str, Any] = {
        "spec_id": spec_id,
        "binding_key": managed_binding(spec_id),
        "name": name,
        "directory": f"/projects/{name}",
        "state": state,
        "activity": "idle",
        "queued": 0,
        "restarts": 0,
        "worker_id": f"w-{name}",
        "pid": 4711,
        "pi_pid": 4712,
        "session_file": "/sessions/one.jsonl",
        "last_error": None,
    }
    return WorkerView(**{**facts, **changes})


@implementer(IDirectories)
class FakeDirectories:
    """A tree that the test gives: each directory with what is in it.

    @ivar tree: directory to its children; the keys without a parent among them are the roots.
    @ivar used: what L{recent} returns.
    """

    def __init__(self, tree: dict[str, list[str]] | None = None) -> None:
        self.tree = tree if tree is not None else {"/projects": []}
        self.used: list[str] = []

    def roots(self) -> list[str]:
        """See L{IDirectories.roots}."""
        inside = {child for children in self.tree.values() for child in children}
        return [each for each in self.tree if each not in inside]

    def recent(self, limit: int) -> list[str]:
        """See L{IDirectories.recent}."""
        return self.used[:limit]

    def resolve(self, directory: str) -> str:
        """See L{IDirectories.resolve}."""
        known = {child for children in self.tree.values() for child in children} | set(self.tree)
        if directory not in known:
            raise Refusal("not-a-directory", "there is no such directory that can be entered")
        return directory

    def children(self, directory: str) -> list[str]:
        """See L{IDirectories.children}."""
        return list(self.tree.get(directory, ()))

    def parent(self, directory: str) -> str | None:
        """See L{IDirectories.parent}."""
        return next((key for key, inside in self.tree.items() if directory in inside), None)


@implementer(ICleanup)
class FakeCleanup:
    """Finds what the test says.

    @ivar found: names that the next review finds.
    @ivar asked: what was asked, in order.
    @ivar fails: what the next call raises, once.
    """

    def __init__(self) -> None:
        self.found: list[str] = []
        self.asked: list[str] = []
        self.fails: Exception | None = None
        self.now = Switches(on_quit=True, unattended=False)

    def review(self) -> Deferred[tuple[str, list[str]]]:
        """See L{ICleanup.review}."""
        return self._do("review", ("op1", list(self.found)))

    def delete(self, operation_id: str) -> Deferred[tuple[int, int]]:
        """See L{ICleanup.delete}."""
        return self._do(f"delete {operation_id}", (len(self.found), 0))

    def switches(self) -> Switches:
        """See L{ICleanup.switches}."""
        return self.now

    def flip(self, name: str) -> Deferred[Switches]:
        """See L{ICleanup.flip}."""
        if self.fails is None:
            self.now = attrs.evolve(self.now, **{name: not getattr(self.now, name)})
        return self._do(f"flip {name}", self.now)

    def _do(self, what: str, result: Any) -> Deferred[Any]:
        self.asked.append(what)
        fails, self.fails = self.fails, None
        return succeed(result) if fails is None else fail(fails)


@implementer(ITitleModes)
class FakeTitleModes:
    """Remembers the mode.

    @ivar fails: what the next choice raises, once.
    """

    def __init__(self) -> None:
        self.now = "letters"
        self.fails: Exception | None = None

    def mode(self) -> str:
        """See L{ITitleModes.mode}."""
        return self.now

    def choose(self, mode: str) -> Deferred[str]:
        """See L{ITitleModes.choose}."""
        fails, self.fails = self.fails, None
        if fails is not None:
            return fail(fails)
        self.now = mode
        return succeed(mode)


@implementer(ISupervisor)
class FakeSupervisor:
    """Keeps views and records what it is asked to do.

    @ivar directories: see L{FakeDirectories}.
    @ivar asked: C{(verb, what)} in order.
    @ivar short: the memory warning.
    @ivar outcome: what the next action ends with: None for the view, an exception, or a Deferred.
    @ivar no_session: why no session may be used, None while each may.
    """

    no_session: Exception | None = None

    def __init__(self, *views: WorkerView) -> None:
        self.directories = FakeDirectories()
        self.listed = list(views)
        self.asked: list[tuple[str, str]] = []
        self.outcome: Any = None
        self.short: str | None = None

    def change(self, name: str, **changes: Any) -> None:
        """A worker is in another state now."""
        self.listed = [
            attrs.evolve(view, **changes) if view.name == name else view for view in self.listed
        ]

    def start(
        self,
        directory: str,
        actor: str,
        spec_id: str | None = None,
        request_id: str | None = None,
    ) -> Deferred[WorkerView]:
        """See L{ISupervisor.start}."""
        return self._do("start", directory, self.listed[0])

    def stop(self, spec_id: str, actor: str, request_id: str | None = None) -> Deferred[WorkerView]:
        """See L{ISupervisor.stop}."""
        return self._do("stop", spec_id, self._of(spec_id))

    def restart(self, spec_id: str, actor: str, fresh: bool = False) -> Deferred[WorkerView]:
        """See L{ISupervisor.restart}."""
        return self._do("restart fresh" if fresh else "restart", spec_id, self._of(spec_id))

    def forget(self, spec_id: str, actor: str) -> Deferred[None]:
        """See L{ISupervisor.forget}."""
        return self._do("forget", spec_id, None)

    def memory_warning(self, but: str = "") -> str | None:
        """See L{ISupervisor.memory_warning}."""
        return self.short

    def keep_waiting(self, spec_id: str) -> None:
        """See L{ISupervisor.keep_waiting}."""
        self.asked.append(("keep_waiting", spec_id))

    def session_file(self, ref: str) -> str:
        """See L{ISupervisor.session_file}."""
        if self.no_session is not None:
            raise self.no_session
        return f"/sessions/{ref}"

    def views(self) -> list[WorkerView]:
        """See L{ISupervisor.views}."""
        return list(self.listed)

    def find(self, name: str | None = None, worker_id: str | None = None) -> WorkerView | None:
        """See L{ISupervisor.find}."""
        for view in self.listed:
            if (name is not None and view.name == name) or (
                worker_id is not None and view.worker_id == worker_id
            ):
                return view
        return None

    def when_settled(self, spec_id: str) -> Deferred[WorkerView]:
        """See L{ISupervisor.when_settled}."""
        return succeed(self._of(spec_id))

    def subscribe(self, observer: Callable[[WorkerView], None]) -> None:
        """Nobody is told anything."""

    def _of(self, spec_id: str) -> WorkerView:
        return next(view for view in self.listed if view.spec_id == spec_id)

    def _do(self, verb: str, what: str, result: Any) -> Deferred[Any]:
        self.asked.append((verb, what))
        outcome, self.outcome = self.outcome, None
        if isinstance(outcome, Deferred):
            return outcome
        return fail(outcome) if isinstance(outcome, Exception) else succeed(result)


@implementer(ISendGate)
class OpenGate:
    """Lets everything through.

    @ivar passed: the weight of each call that asked, by chat.
    @ivar floods: what was reported.
    """

    def __init__(self) -> None:
        self.passed: list[tuple[int, str]] = []
        self.floods: list[tuple[int, float]] = []

    def wait(self, chat_id: int, weight: str = "send") -> Deferred[None]:
        """See L{ISendGate.wait}."""
        self.passed.append((chat_id, weight))
        return succeed(None)

    def flood(self, chat_id: int, retry_after: float) -> None:
        """See L{ISendGate.flood}."""
        self.floods.append((chat_id, retry_after))

    def blocked_for(self, chat_id: int, weight: str = "send") -> float:
        """See L{ISendGate.blocked_for}."""
        return 0.0
