"""A string that does not show itself."""

from __future__ import annotations

import hashlib


class Secret:
    """A secret whose C{repr} and C{str} hide it; L{reveal} is the only way to it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the secret itself."""
        return self._value

    def digest(self) -> str:
        """Return its SHA-256 as 64 hex digits."""
        return hashlib.sha256(self._value.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "<Secret>"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a secret is not pickled")
