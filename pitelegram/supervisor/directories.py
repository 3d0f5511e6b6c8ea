"""The directories that a picker may show."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from zope.interface import implementer

from pitelegram.panel.interfaces import IDirectories
from pitelegram.supervisor.roots import Roots


@implementer(IDirectories)
class Directories:
    """See L{IDirectories}.

    @param used: returns directories of workers that may be started, the last used first.
    """

    def __init__(self, roots: Roots, used: Callable[[], Sequence[str]]) -> None:
        self._roots = roots
        self._used = used

    def roots(self) -> list[str]:
        """See L{IDirectories.roots}."""
        return list(dict.fromkeys(str(root) for root in self._roots.real))

    def recent(self, limit: int) -> list[str]:
        """See L{IDirectories.recent}."""
        found = (each for each in self._used() if self._roots.contains(Path(each)))
        return [each for each in found if os.path.isdir(each)][:limit]

    def resolve(self, directory: str) -> str:
        """See L{IDirectories.resolve}."""
        return str(self._roots.resolve(directory))

    def children(self, directory: str) -> list[str]:
        """See L{IDirectories.children}."""
        return [str(child) for child in self._roots.children(Path(directory))]

    def parent(self, directory: str) -> str | None:
        """See L{IDirectories.parent}."""
        real = Path(directory)
        above = real.parent
        if real in self._roots.real or above == real or not self._roots.contains(above):
            return None
        return str(above)
