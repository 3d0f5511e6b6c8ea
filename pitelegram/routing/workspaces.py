"""Which binding an attached worker gets: by its process, else by its exact directory.

A binding is a hint of where a workspace was before; what may be registered is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from pitelegram.store.interfaces import IBindings
from pitelegram.store.rows import Binding


@attrs.define(eq=False)
class Workspaces:
    """Looks among the bindings of attached workers; makes none."""

    _bindings: IBindings

    def find(
        self,
        directory: str,
        registration: dict[str, Any],
        with_thread: bool,
        is_free: Callable[[str], bool],
    ) -> str | None:
        """Return the key of a binding, None when there is none to come back to.

        A process that comes again keeps its binding wherever it works by now.  Of several that are
        free, it is the one that the registration remembers.

        @param directory: the real path.
        @param with_thread: only one that has a Thread will do.
        @param is_free: whether no other live worker has a binding.
        """
        attached = [each for each in self._bindings.list() if each.kind == "attached"]
        for binding in attached:
            if self._is_own(binding, registration):
                return None if with_thread and binding.target is None else binding.binding_key
        free = [
            each
            for each in attached
            if each.directory == directory
            and (each.target is not None or not with_thread)
            and is_free(each.binding_key)
        ]
        if not free:
            return None
        return min(free, key=lambda each: self._distance(each, registration)).binding_key

    def _is_own(self, binding: Binding, registration: dict[str, Any]) -> bool:
        """Whether the very same process was registered with it last."""
        last = self._bindings.last_worker(binding.binding_key)
        birth = (registration["pid"], registration["processBirthId"])
        return last is not None and (last["pid"], last["birth"]) == birth

    def _distance(self, binding: Binding, registration: dict[str, Any]) -> tuple[Any, ...]:
        """Return how far a binding is from what a registration says of the one before."""
        last = self._bindings.last_worker(binding.binding_key)
        target = None if binding.target is None else binding.target.as_json()
        return (
            last is None or last["instance_id"] != registration.get("previousInstanceId"),
            target is None or target != registration.get("target"),
            binding.slot is None or binding.slot != registration.get("slot"),
            target is None,
            binding.slot or "~",
        )
