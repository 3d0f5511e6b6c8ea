"""What waits for the operator's choice: one case for each Thread without an owner, or command in All.

L{TABLE} is the life of a case; it is drawn in C{docs/machines/chooser.md}.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from pitelegram.kernel.machine import Machine, Table
from pitelegram.routing.candidates import START, word_of
from pitelegram.routing.lanes import CHOOSER, Destination, Entry, Lane
from pitelegram.store.choosers import Chooser
from pitelegram.targets import TelegramTarget

UNASKED = "unasked"
"""Its messages wait; there is no chooser yet."""
OPEN = "open"
"""The chooser is committed; whether the chat shows it is not known."""
SENT = "sent"
"""The chooser's message is known."""
DISPATCHING = "dispatching"
"""A choice is committed; its updates are on their way."""
CLEANING = "cleaning"
"""They are over; Threads and messages that are no longer needed go."""
DONE = "done"

ROOM = "room"
SHOWN = "shown"
MISSED = "missed"
CHOSEN = "chosen"
RETURNED = "returned"
HANDED = "handed"
ENDED = "ended"

TABLE: Table = {
    (UNASKED, ROOM): OPEN,
    (OPEN, SHOWN): SENT,
    (SENT, MISSED): OPEN,
    (SENT, CHOSEN): DISPATCHING,
    (DISPATCHING, RETURNED): SENT,
    (DISPATCHING, HANDED): CLEANING,
    (CLEANING, RETURNED): SENT,
    (CLEANING, ENDED): DONE,
    (UNASKED, ENDED): DONE,
    (OPEN, ENDED): DONE,
    (SENT, ENDED): DONE,
}

COUNTED = frozenset({OPEN, SENT, DISPATCHING})
"""States that count for the capacity."""


@attrs.define(eq=False, kw_only=True)
class Case:
    """Messages that wait for one choice.

    @ivar destination: the lane in which they wait.
    @ivar seq: the oldest of them when the case was made.
    @ivar command: for one command in All, its exact text.
    @ivar since: monotonic seconds since it is known.
    @ivar held: a step of it is being committed: its messages stay where they are meanwhile.
    @ivar broken: the last step could not be committed: it waits for the next occasion.
    @ivar restoring: the second screen is shown.
    @ivar stuck: tidying up failed, and is offered as a button.
    @ivar shown: what its message shows now, as far as is known.
    @ivar urgent: the operator waits for another screen.
    @ivar checked: monotonic seconds when its message was last known to be there.
    @ivar not_before: monotonic seconds before which nothing is sent for it.
    @ivar tries: sends that failed in a row.
    @ivar missing: sends in a row for which there was no such Thread.
    """

    destination: Destination
    target: TelegramTarget
    seq: int
    command: str = ""
    expires_ms: int | None = None
    since: float = 0.0
    chooser: Chooser | None = None
    lane: Lane | None = None
    step: Machine = attrs.field(factory=lambda: Machine(UNASKED, TABLE))
    held: bool = False
    broken: bool = False
    restoring: bool = False
    stuck: bool = False
    shown: object = None
    urgent: bool = False
    checked: float = 0.0
    not_before: float = 0.0
    tries: int = 0
    missing: int = 0
    sources: set[tuple[int, int]] = attrs.field(factory=set)

    @property
    def key(self) -> str:
        """What it is about."""
        return self.destination.key

    @property
    def is_command(self) -> bool:
        """Whether it is about one command in All."""
        return self.target.thread_id is None

    @property
    def asking(self) -> bool:
        """Whether an answer is still wanted."""
        return self.step.now in (UNASKED, OPEN, SENT)

    def waiting(self) -> list[Entry]:
        """Return the updates that nobody was chosen for."""
        if self.lane is None:
            return []
        return [entry for entry in self.lane.waiting if entry.recipient is None]

    def is_over(self, now_ms: int) -> bool:
        """Whether its time is up."""
        return self.asking and self.expires_ms is not None and now_ms >= self.expires_ms


@attrs.define(eq=False)
class Cases:
    """All cases, found by what is asked for."""

    _by_key: dict[str, Case] = attrs.field(factory=dict, init=False)
    _by_id: dict[str, Case] = attrs.field(factory=dict, init=False)
    _by_source: dict[tuple[int, int], Case] = attrs.field(factory=dict, init=False)
    _chosen: dict[int, Case] = attrs.field(factory=dict, init=False)

    def __iter__(self) -> Iterator[Case]:
        return iter(list(self._by_key.values()))

    def __len__(self) -> int:
        return len(self._by_key)

    def get(self, key: str) -> Case | None:
        """Return the case about something."""
        return self._by_key.get(key)

    def by_id(self, chooser_id: str) -> Case | None:
        """Return the case of a chooser."""
        return self._by_id.get(chooser_id)

    def by_source(self, chat_id: int, message_id: int) -> Case | None:
        """Return the case in which a message waits."""
        return self._by_source.get((chat_id, message_id))

    def chosen(self, seq: int) -> Case | None:
        """Return the case whose choice an update goes by."""
        return self._chosen.get(seq)

    def add(self, case: Case) -> Case:
        """Take a case in."""
        self._by_key[case.key] = case
        return case

    def asked(self, case: Case, chooser: Chooser) -> None:
        """The case has a chooser now, or a changed one."""
        case.chooser = chooser
        self._by_id[chooser.chooser_id] = case

    def source(self, case: Case, chat_id: int, message_id: int) -> None:
        """A message waits in the case: its edits do, too."""
        case.sources.add((chat_id, message_id))
        self._by_source[chat_id, message_id] = case

    def choose(self, case: Case, seqs: list[int]) -> None:
        """These updates go by the case's choice."""
        self._chosen.update(dict.fromkeys(seqs, case))

    def unchoose(self, seq: int) -> Case | None:
        """An update is free again; returns the case that it went by."""
        return self._chosen.pop(seq, None)

    def clear_choice(self, case: Case) -> None:
        """No update goes by the case's choice any more."""
        for seq in [seq for seq, each in self._chosen.items() if each is case]:
            del self._chosen[seq]

    def drop(self, case: Case) -> None:
        """Forget a case."""
        self.clear_choice(case)
        if self._by_key.get(case.key) is case:
            del self._by_key[case.key]
        if case.chooser is not None:
            self._by_id.pop(case.chooser.chooser_id, None)
        for source in case.sources:
            if self._by_source.get(source) is case:
                del self._by_source[source]

    def newest_starts(self) -> dict[str, Case]:
        """Return the newest of each equal C{/start} that is still to be answered, by its text."""
        found: dict[str, Case] = {}
        for case in self._by_key.values():
            if case.asking and word_of(case.command) == START:
                if case.command not in found or found[case.command].seq < case.seq:
                    found[case.command] = case
        return found

    def room(self, most: int) -> bool:
        """Whether one more may be asked."""
        return sum(case.step.now in COUNTED for case in self._by_key.values()) < most


def case_of(chooser: Chooser, since: float) -> Case:
    """Return the case of a stored chooser."""
    target = TelegramTarget(chooser.chat_id, chooser.thread_id)
    return Case(
        destination=Destination(CHOOSER, chooser.place, target),
        target=target,
        seq=chooser.source_seq,
        command=chooser.command,
        expires_ms=chooser.expires_ms,
        since=since,
        chooser=chooser,
        step=Machine(chooser.state, TABLE),
    )
