"""Whose Thread is whose, without asking the database for every update."""

from __future__ import annotations

import attrs

from pitelegram.store.interfaces import IBindings
from pitelegram.store.rows import Binding
from pitelegram.targets import TelegramTarget

_MOST = 10_000


@attrs.define(eq=False)
class Places:
    """A picture of the bindings, thrown away whenever one of them changes.

    Whoever changes a binding's target calls L{forget} after the commit (the Threads' observers do).
    """

    _bindings: IBindings
    _by_target: dict[TelegramTarget, Binding | None] = attrs.field(factory=dict, init=False)
    _by_key: dict[str, Binding | None] = attrs.field(factory=dict, init=False)

    def owner_of(self, target: TelegramTarget) -> Binding | None:
        """Return the binding whose target this is."""
        if target not in self._by_target:
            if len(self._by_target) >= _MOST:
                self._by_target.clear()
            self._by_target[target] = self._bindings.by_target(target.chat_id, target.thread_id)
        return self._by_target[target]

    def get(self, binding_key: str) -> Binding | None:
        """Return a binding by its key."""
        if binding_key not in self._by_key:
            found = self._bindings.get(binding_key)
            if found is None:
                # It may be made at any moment, and nobody tells of that.
                return None
            self._by_key[binding_key] = found
        return self._by_key[binding_key]

    def target_of(self, binding_key: str) -> TelegramTarget | None:
        """Return the target of a binding, None while it has none."""
        binding = self.get(binding_key)
        return None if binding is None else binding.target

    def forget(self) -> None:
        """Something changed: look again."""
        self._by_target.clear()
        self._by_key.clear()
