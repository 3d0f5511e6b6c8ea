"""The supervisor, for parts that are made before it."""

from __future__ import annotations

from typing import Any

from zope.interface import implementer

from pitelegram.routing.interfaces import IBindingPolicy, IExpectation


@implementer(IBindingPolicy, IExpectation)
class Workers:
    """Stands for the supervisor in parts that are made before it."""

    supervisor: Any = None

    def managed(self, spec_id: str, spawn_id: str) -> str | None:
        """See L{IBindingPolicy.managed}."""
        return self.supervisor.managed(spec_id, spawn_id)  # type: ignore[no-any-return]

    def name(self, spec_id: str) -> str:
        """See L{IBindingPolicy.name}."""
        return self.supervisor.name(spec_id)  # type: ignore[no-any-return]

    def is_starting(self, binding_key: str) -> bool:
        """See L{IExpectation.is_starting}."""
        return self.supervisor.is_starting(binding_key)  # type: ignore[no-any-return]

    def is_expected(self, binding_key: str) -> bool:
        """See L{IExpectation.is_expected}."""
        return self.supervisor.is_expected(binding_key)  # type: ignore[no-any-return]
