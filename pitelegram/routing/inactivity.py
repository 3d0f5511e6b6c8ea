"""Whether a binding has a living process: by proof, never by silence."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from pitelegram.errors import UnsafeFile
from pitelegram.ids import ProcessBirth
from pitelegram.kernel.flock import is_free
from pitelegram.kernel.paths import Paths
from pitelegram.routing.interfaces import IExpectation, IRegistry
from pitelegram.store.interfaces import IBindings


@attrs.define(eq=False)
class Inactivity:
    """Asks the registry, the supervisor, the binding's lock and the process itself.

    @param alive: whether exactly that process lives.
    """

    _paths: Paths
    _bindings: IBindings
    _expectation: IExpectation
    _registry: IRegistry
    _alive: Callable[[ProcessBirth], bool]

    def lives(self, binding_key: str) -> bool | None:
        """Whether a process of the binding lives or may come back; None: nobody can tell."""
        if self._registry.live(binding_key) is not None:
            return True
        if self._expectation.is_expected(binding_key):
            return True
        last = self._bindings.last_worker(binding_key)
        if last is not None and self._alive(ProcessBirth(last["pid"], last["birth"])):
            return True
        try:
            return not is_free(self._paths.worker_lock(binding_key))
        except (OSError, UnsafeFile):
            return None

    def protects(self, binding_key: str) -> str | None:
        """Why the binding's Thread must stay; None when no process of it lives."""
        lives = self.lives(binding_key)
        if lives is None:
            return "nobody can tell whether it is in use"
        return "a process of it lives" if lives else None
