"""State machines as one table.

The table is the machine: it stands as one block in the module of what it drives, a page in
C{docs/machines/} draws it, and tests compare the two.  States and events are public names (some are
part of the status document), so they are plain words and not objects.
"""

from __future__ import annotations

from collections.abc import Mapping

from pitelegram.errors import PiTelegramError

Table = Mapping[tuple[str, str], str]
"""C{(state, event) -> state}."""


class NoTransition(PiTelegramError):
    """An event that the table has no step for: a fault of the program, never of its input."""


class Machine:
    """Where something stands.

    @param start: the first state.
    @ivar now: the current state.
    """

    def __init__(self, start: str, table: Table) -> None:
        self.now = start
        self._table = table

    def can(self, event: str) -> bool:
        """Whether that event is possible now."""
        return (self.now, event) in self._table

    def feed(self, event: str) -> str:
        """Move on; returns the new state.

        @raise NoTransition: if the table has no such step.
        """
        following = self._table.get((self.now, event))
        if following is None:
            raise NoTransition(f"'{event}' is not possible while {self.now}")
        self.now = following
        return following
