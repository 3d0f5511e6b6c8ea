"""Which directory a binding works in, and who else does."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from pitelegram.kernel.deferring import deferred
from pitelegram.store.interfaces import IBindings


@attrs.define(eq=False)
class Dwellings:
    """Keeps directories, and who shared one.

    @param running: keys of the bindings whose workers run.
    @param changed: called after each stored change.
    """

    _bindings: IBindings
    _running: Callable[[], Iterable[str]]
    _changed: Callable[[], None]

    @deferred
    async def moved(self, binding_key: str, directory: str) -> bool:
        """A worker works in another directory now; fires with whether that is news."""
        binding = self._bindings.get(binding_key)
        if binding is None or binding.directory == directory:
            return False
        if not await self._bindings.set_directory(binding_key, binding.directory, directory):
            return False
        await self.living(binding_key)
        self._changed()
        return True

    @deferred
    async def living(self, binding_key: str) -> None:
        """A binding lives: where two of one directory do, their titles show letters for good."""
        binding = self._bindings.get(binding_key)
        if binding is None or not binding.directory or binding.kind == "daemon":
            return
        live = {binding_key, *self._running()}
        twins = [
            each
            for each in self._bindings.list()
            if each.directory == binding.directory and each.binding_key in live
        ]
        if len(twins) > 1 and not all(each.suffixed for each in twins):
            await self._bindings.set_suffixed([each.binding_key for each in twins])
            self._changed()
