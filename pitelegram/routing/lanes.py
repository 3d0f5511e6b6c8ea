"""Rows on their way, in order, one lane per destination."""

from __future__ import annotations

from bisect import insort
from collections import deque
from typing import Any

import attrs

from pitelegram.kernel import jsonio
from pitelegram.store.rows import JournalRow
from pitelegram.targets import TelegramTarget

DAEMON = "daemon"
NOBODY = "nobody"
CHOOSER = "chooser"
WORKER = "worker"


@attrs.define(eq=False)
class Entry:
    """A journal row in memory: what it was when read, and what became of it since.

    @ivar recipient: the binding it is pinned to.
    @ivar pinned: the store has it as C{forwarding} to C{recipient} already.
    @ivar not_before: monotonic seconds before which it is not tried.
    @ivar waiting_since: monotonic seconds since nobody is there for it, None while somebody is.
    """

    row: JournalRow
    recipient: str | None
    delivery_id: str | None
    attempts: int
    held: bool
    pinned: bool
    told: bool
    not_before: float
    waiting_since: float | None = None

    @classmethod
    def of(cls, row: JournalRow, now: float, now_ms: int) -> Entry:
        """Make an entry of a row; a pending back-off goes on, for a minute at most."""
        wait = 0.0
        if row.next_attempt_ms is not None:
            wait = min(60.0, max(0.0, (row.next_attempt_ms - now_ms) / 1000))
        return cls(
            row=row,
            recipient=row.recipient,
            delivery_id=row.delivery_id,
            attempts=row.attempts,
            held=row.state == "held",
            pinned=row.state == "forwarding",
            told=row.told,
            not_before=now + wait,
        )

    @property
    def seq(self) -> int:
        """The row's place in the order."""
        return self.row.seq

    def update(self) -> dict[str, Any]:
        """Parse the update."""
        parsed = jsonio.loads(self.row.body)
        assert isinstance(parsed, dict)
        return parsed


@attrs.frozen
class Destination:
    """Where a row goes: the daemon itself, a binding, nobody's Thread, or the operator's choice.

    @ivar key: a binding key for L{WORKER}, else the target's key; for the choice about one command
        also the C{seq} of its row.
    """

    kind: str
    key: str
    target: TelegramTarget | None = attrs.field(default=None, eq=False)


@attrs.define(eq=False)
class Lane:
    """The waiting rows of one destination, oldest first.

    @ivar flying: rows that are being carried, by their C{seq}.
    @ivar pinning: how many of them wait for the commit of their pin.
    """

    destination: Destination
    waiting: deque[Entry] = attrs.field(factory=deque)
    flying: dict[int, Entry] = attrs.field(factory=dict)
    pinning: int = 0

    def put(self, entry: Entry) -> None:
        """Take an entry in, in its order."""
        if not self.waiting or self.waiting[-1].seq < entry.seq:
            self.waiting.append(entry)
        else:
            ordered = list(self.waiting)
            insort(ordered, entry, key=lambda each: each.seq)
            self.waiting = deque(ordered)

    def take_unpinned(self) -> list[Entry]:
        """Take out the waiting entries that may go elsewhere."""
        free = [entry for entry in self.waiting if entry.recipient is None]
        self.waiting = deque(entry for entry in self.waiting if entry.recipient is not None)
        return free

    def start(self) -> Entry:
        """Take the oldest out, to carry it."""
        entry = self.waiting.popleft()
        self.flying[entry.seq] = entry
        return entry

    def end(self, entry: Entry) -> None:
        """It has been carried, or comes back."""
        self.flying.pop(entry.seq, None)

    @property
    def idle(self) -> bool:
        """Whether nothing waits or flies."""
        return not self.waiting and not self.flying
