"""Random orders of operations: the states of journal and outbox hold what they promise."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.errors import StoreError
from pitelegram.store.journal import Journal
from pitelegram.store.outbox import Outbox
from pitelegram.testing.contracts_store import incoming, message
from pitelegram.testing.stores import leader_database

SETTINGS = settings(
    deadline=None,
    derandomize=True,
    max_examples=60,
    stateful_step_count=30,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def outcome(work: Any) -> Any:
    """Return an inline write's result, or its StoreError."""
    found: list[Any] = []
    work.addCallbacks(found.append, lambda failure: found.append(failure.trap(StoreError)))
    return found[0]


class JournalMachine(RuleBasedStateMachine):
    """A model of the journal: which rows are over, and to whom the others are pinned."""

    @initialize()
    def begin(self) -> None:
        """Open an empty journal."""
        self.database = leader_database(Clock())
        self.journal = Journal(self.database)
        self.open: dict[int, str | None] = {}
        self.over: dict[int, str] = {}
        self.known: set[int] = set()

    def teardown(self) -> None:
        """Close it."""
        if hasattr(self, "database"):
            self.database.stopService()

    @rule(ids=st.lists(st.integers(1, 12), max_size=4))
    def accept(self, ids: list[int]) -> None:
        """New ids give new rows, known ones none."""
        rows = outcome(self.journal.accept(1, [incoming(each) for each in ids], 1))
        assert {row.update_id for row in rows} == set(ids) - self.known
        self.known |= set(ids)
        self.open.update({row.seq: None for row in rows})

    @rule(seq=st.integers(1, 14), who=st.sampled_from("ab"))
    def pin(self, seq: int, who: str) -> None:
        """A pin succeeds on an open row that is not another's."""
        result = outcome(self.journal.pin(seq, who, f"{who}{seq}"))
        if seq in self.open and self.open[seq] in (None, who):
            self.open[seq] = who
            assert result is None
        else:
            assert result is StoreError

    @rule(seq=st.integers(1, 14), release=st.booleans())
    def retry(self, seq: int, release: bool) -> None:
        """A retry keeps or takes the pin."""
        result = outcome(self.journal.retry(seq, 5, "x", release))
        assert (result is None) == (seq in self.open)
        if seq in self.open and release:
            self.open[seq] = None

    @rule(seq=st.integers(1, 14))
    def hold(self, seq: int) -> None:
        """Holding keeps the pin."""
        assert (outcome(self.journal.hold(seq)) is None) == (seq in self.open)

    @rule(seq=st.integers(1, 14))
    def release(self, seq: int) -> None:
        """A release takes the pin."""
        assert (outcome(self.journal.release(seq)) is None) == (seq in self.open)
        if seq in self.open:
            self.open[seq] = None

    @rule(seqs=st.lists(st.integers(1, 14), max_size=3))
    def settle(self, seqs: list[int]) -> None:
        """Settling ends rows, failed ones too."""
        assert outcome(self.journal.settle(seqs)) is None
        for seq in seqs:
            if self.open.pop(seq, "") != "" or seq in self.over:
                self.over[seq] = "settled"

    @rule(seq=st.integers(1, 14))
    def fail(self, seq: int) -> None:
        """Failing ends an open row."""
        assert (outcome(self.journal.fail(seq, "x")) is None) == (seq in self.open)
        if self.open.pop(seq, "") != "":
            self.over[seq] = "failed"

    @invariant()
    def agrees(self) -> None:
        """The journal shows exactly the open rows, in order, with their pins."""
        if not hasattr(self, "journal"):
            return
        rows = self.journal.unsettled()
        assert [row.seq for row in rows] == sorted(self.open)
        assert {row.seq: row.recipient for row in rows} == self.open
        counts = self.journal.counts()
        assert counts.pop("failed") == list(self.over.values()).count("failed")
        assert sum(counts.values()) == len(self.open)


class OutboxMachine(RuleBasedStateMachine):
    """A model of one binding's outbox: a list of deliveries with their parts' states."""

    @initialize()
    def begin(self) -> None:
        """Open an empty outbox."""
        self.database = leader_database(Clock())
        self.outbox = Outbox(self.database)
        self.model: dict[str, list[str]] = {}
        self.sent: list[tuple[str, int]] = []

    def teardown(self) -> None:
        """Close it."""
        if hasattr(self, "database"):
            self.database.stopService()

    def sendable(self) -> tuple[str, int, str] | None:
        """Return key, part and state of what the model would send."""
        for key, states in self.model.items():
            for part, state in enumerate(states):
                if state in ("pending", "retry_wait", "sending"):
                    return key, part, state
        return None

    @rule(number=st.integers(1, 6), parts=st.integers(1, 3))
    def submit(self, number: int, parts: int) -> None:
        """A delivery is stored once, whatever is submitted again."""
        before = set(self.model)
        calls = [message("x")] * parts
        assert isinstance(
            outcome(self.outbox.submit("b", str(number), "final", "same", calls)), str
        )
        for item in self.outbox.items():
            if item["key"] not in self.model:
                self.model[item["key"]] = ["pending"] * parts
        assert len(set(self.model) - before) <= 1

    @rule()
    def send(self) -> None:
        """The next part is begun, if none is under way."""
        part, expected = self.outbox.next_part("b"), self.sendable()
        if part is None:
            assert expected is None or expected[2] == "sending"
            return
        assert (part.key, part.part, part.state) == expected
        assert outcome(self.outbox.sending(part.key, part.part)) is None
        self.model[part.key][part.part] = "sending"

    @rule(how=st.sampled_from(["delivered", "retry_wait", "uncertain", "dead_letter"]))
    def answer(self, how: str) -> None:
        """An answer comes to what is being sent."""
        found = self.sendable()
        if found is None or found[2] != "sending":
            return
        key, part, _ = found
        states = self.model[key]
        states[part] = how
        if how == "delivered":
            assert (key, part) not in self.sent
            self.sent.append((key, part))
            result = outcome(self.outbox.delivered(key, part, [1]))
        elif how == "retry_wait":
            result = outcome(self.outbox.retry(key, part, 9, "x"))
        elif how == "uncertain":
            result = outcome(self.outbox.park(key, part, "x"))
        else:
            dead = {"pending": "dead_letter", "retry_wait": "dead_letter"}
            states[:] = [dead.get(state, state) for state in states]
            result = outcome(self.outbox.dead(key, part, "x"))
        assert result is None

    @rule(index=st.integers(0, 5))
    def again(self, index: int) -> None:
        """The operator asks for one delivery once more."""
        if index >= len(self.model):
            return
        key = list(self.model)[index]
        states = self.model[key]
        parked = any(state in ("uncertain", "dead_letter") for state in states)
        assert outcome(self.outbox.again(key)) is parked
        fresh = {"uncertain": "pending", "dead_letter": "pending"}
        states[:] = [fresh.get(state, state) for state in states]

    @rule()
    def killed(self) -> None:
        """The leader is killed and starts again."""
        sending = sum(states.count("sending") for states in self.model.values())
        assert outcome(self.outbox.interrupted()) == sending
        for states in self.model.values():
            states[:] = ["uncertain" if state == "sending" else state for state in states]

    @invariant()
    def agrees(self) -> None:
        """Every delivery is listed until all of it arrived, with the state of its parts."""
        if not hasattr(self, "outbox"):
            return
        listed = {item["key"]: item["state"] for item in self.outbox.items()}
        expected = {}
        for key, states in self.model.items():
            order = [s for s in states if s in ("pending", "sending", "retry_wait")]
            order += [s for s in ("uncertain", "dead_letter") if s in states]
            if order:
                expected[key] = order[0]
        assert listed == expected
        assert sum(self.outbox.counts().values()) == len(expected)


class StateTests(SynchronousTestCase):
    """Runs the machines."""

    def test_journal(self) -> None:
        """No order of operations moves a pinned row to another binding or brings one back."""
        run_state_machine_as_test(JournalMachine, settings=SETTINGS)

    def test_outbox(self) -> None:
        """No order of operations sends a part twice by itself, skips one or loses a delivery."""
        run_state_machine_as_test(OutboxMachine, settings=SETTINGS)
