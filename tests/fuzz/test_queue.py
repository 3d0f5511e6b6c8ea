"""Random lives of a queue: the order of turns holds, nothing runs twice and nothing is lost.

The rules are those of the section "The queue" in C{docs/worker.md}; the numbers here name them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.reactions import PRIORITY, SKIP
from pitelegram.errors import PiRefused
from pitelegram.ids import delivery_id
from pitelegram.store.inbox import Inbox
from pitelegram.store.outgoing import Outgoing
from pitelegram.store.rows import InboxRow
from pitelegram.testing.stores import worker_database
from pitelegram.testing.worker import BINDING, CHAT, WorkerRig
from tests.worker.test_crashes import WritingPi

EXAMPLES = 300
STEPS = 20
RANKS = {"control": 0, "priority": 1, "normal": 2}
TOTAL: Counter[str] = Counter()
NUMBERS = count(1)
BASES: list[Path] = []


@attrs.define
class Expected:
    """What a message should come to.

    @ivar place: grows with every message and every move.
    @ivar stoppable: it waited, or was with Pi, when the operator cleared the queue.
    @ivar marked: it was to be skipped at some time.
    @ivar doubtful: Pi had it when Pi or the worker was killed, or the run was aborted.
    """

    name: str
    text: str
    lane: str = "normal"
    place: int = 0
    skip: bool = False
    stoppable: bool = False
    marked: bool = False
    doubtful: bool = False
    reactions: frozenset[str] = frozenset()


class WatchedInbox:
    """The real inbox; moves and marks that were stored are told."""

    def __init__(self, real: Inbox, lives: Lives) -> None:
        self._real = real
        self._lives = lives

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def move(self, seq: int, lane: str) -> Any:
        """See L{Inbox.move}."""
        return self._real.move(seq, lane).addCallback(lambda _: self._lives.moved(seq, lane))

    def mark(self, seq: int, skip: bool) -> Any:
        """See L{Inbox.mark}."""
        return self._real.mark(seq, skip).addCallback(lambda _: self._lives.was_marked(seq, skip))


class Lives(RuleBasedStateMachine):
    """An operator, a worker with its store on disk, and a Pi."""

    def __init__(self) -> None:
        super().__init__()
        base = BASES[0] / str(next(NUMBERS))
        base.mkdir()
        self.rig = WorkerRig(base)
        self.file: Path | None = None
        self.since = 0
        self.known: dict[str, Expected] = {}
        self.places = count(1)
        self.numbers = count(1)
        self.wrong: list[str] = []
        self.flying = 0

    # --- processes ---------------------------------------------------------------------------

    def begin_process(self) -> None:
        """Open the store (anew, where it is a file) and start a worker with a new Pi."""
        rig, self.since = self.rig, 0
        if self.file is not None:
            rig.database.close()
            rig.database = worker_database(rig.clock, self.file)
            rig.outgoing = Outgoing(rig.database)
        rig.inbox = WatchedInbox(Inbox(rig.database), self)  # type: ignore[assignment]
        self.flying = 0
        self.pi = WritingPi(rig.clock, rig.base / "session.jsonl")
        self.real_prompt = self.pi.prompt
        self.pi.prompt = self.given  # type: ignore[method-assign]
        rig.start(self.pi)

    def end_process(self) -> None:
        """The worker is killed, and its Pi with it."""
        self.doubt()
        self.pi.stopped = True
        self.rig.crash()

    def doubt(self) -> None:
        """Nobody will hear what becomes of what Pi has now."""
        for row in self.rig.inbox.rows("handed"):
            self.known[row.delivery_id].doubtful = True

    # --- what is watched -----------------------------------------------------------------------

    def moved(self, seq: int, lane: str) -> None:
        """A row went to the end of a lane."""
        one = self.of(seq)
        one.lane, one.place = lane, next(self.places)
        TOTAL["moves"] += 1

    def was_marked(self, seq: int, skip: bool) -> None:
        """A row is to be skipped, or kept."""
        one = self.of(seq)
        one.skip = skip
        one.marked = one.marked or skip
        TOTAL["marks"] += 1

    def of(self, seq: int) -> Expected:
        """Return the expectation of a row."""
        rows = self.rig.inbox.rows("admitted", "held", "handed")
        return self.known[next(row.delivery_id for row in rows if row.seq == seq)]

    def given(self, rpc_id: str, message: str, lane: str, images: Sequence[Any] = ()) -> Any:
        """The worker gives a prompt to Pi: everything that must hold then is looked at."""
        rows = self.rig.inbox.rows("held", "handed")
        (row,) = (each for each in rows if each.rpc_id == rpc_id)
        one = self.known[row.delivery_id]
        state = self.pi.state
        self.check(self.flying == 0, "2: two prompts in flight")
        self.check(not state["isCompacting"], "3: given while Pi compacts")
        self.check(lane == "priority" or not state["isStreaming"], "3: given while Pi works")
        self.check(lane == "normal" or one.lane == "priority", "4: steering from another lane")
        self.check(not one.skip, "5: a skipped prompt was given")
        self.check(one.text in message, f"8: another text, {message!r}, {one.text!r}")
        self.first(one, [each for each in rows if each.state == "held"], lane == "priority")
        TOTAL["given" if lane == "normal" else "steered"] += 1
        self.flying += 1
        return self.real_prompt(rpc_id, message, lane, images).addBoth(self.landed)

    def first(self, one: Expected, others: list[InboxRow], steering: bool) -> None:
        """Nothing that waits should have gone before this one."""
        decided = {turn.seq for turn in self.rig.inbox.turns()}
        for row in others:
            other = self.known[row.delivery_id]
            if row.seq not in decided:
                continue
            if not steering or other.lane == "priority":
                mine, its = (RANKS[one.lane], one.place), (RANKS[other.lane], other.place)
                self.check(mine < its, f"1: {one} before {other}")

    def landed(self, result: Any) -> Any:
        """Pi answered."""
        self.flying -= 1
        return result

    def check(self, holds: bool, what: str) -> None:
        """Keep what went wrong: an exception here would only be logged."""
        if not holds:
            self.wrong.append(what)

    @invariant()
    def nothing_wrong(self) -> None:
        """Every rule held so far, and no prompt is in the conversation twice."""
        assert not self.wrong, self.wrong
        ran = Counter(self.conversation())
        asked = Counter(self.key(one) for one in self.known.values())
        assert ran <= asked, f"6: twice in the conversation: {ran - asked}"

    def conversation(self) -> list[str]:
        """The numbers of the prompts that Pi took, in order."""
        file = self.rig.base / "session.jsonl"
        if not file.exists():
            return []
        entries = [json.loads(line) for line in file.read_text().splitlines()[1:]]
        said = [entry["message"] for entry in entries]
        texts = [each["content"] for each in said if each["role"] == "user"]
        return [found[0] for text in texts if (found := re.search(r"\bp\d+|continue\b", text))]

    @staticmethod
    def key(one: Expected) -> str:
        """What tells a prompt from others in the conversation."""
        return one.text.split()[0]

    # --- the operator --------------------------------------------------------------------------

    @initialize(on_disk=st.sampled_from([False] * 9 + [True]))
    def first_messages(self, on_disk: bool) -> None:
        """There is work.  Some stores are files, which each process opens anew."""
        self.file = self.rig.base / "inbox.sqlite" if on_disk else None
        TOTAL["on disk"] += on_disk
        self.begin_process()
        self.send(True)
        self.send(False)

    @rule(gated=st.sampled_from([True, True, False]))
    def send(self, gated: bool) -> None:
        """A message."""
        number = next(self.numbers)
        self.say(number, f"p{number} [[gate g{number}]]" if gated else f"p{number} text")

    def say(self, number: int, text: str, prompt: str | None = None, lane: str = "normal") -> None:
        """Forward a message that becomes a prompt; it may be given before this returns."""
        name = delivery_id("message", BINDING, number)
        self.since += 1
        self.known[name] = Expected(name, prompt or text, lane, next(self.places))
        self.forward(number, text)

    def forward(self, number: int, text: str) -> None:
        """Forward a message; update and message have the same number here."""
        body = {"message_id": number, "chat": {"id": CHAT}, "text": text}
        self.rig.forward("message", body, update_id=number)

    @rule(number=st.integers(0, 99), gated=st.booleans())
    def edit(self, number: int, gated: bool) -> None:
        """Some message is edited."""
        if (chosen := self.chosen(number)) is None:
            return
        one, row = chosen
        if row.kind != "message" or self.key(one) == "continue":
            return
        text = f"{self.key(one)} edited " + (f"[[gate g{self.key(one)[1:]}]]" if gated else "now")
        if row.state == "held" and not self.rig.parts.queue.in_hand(row.seq):
            one.text = text
        self.rig.edit(text, row.message_id or 0)
        TOTAL["edits"] += 1

    @rule(number=st.integers(0, 99), emoji=st.sampled_from([*PRIORITY[:2], *SKIP[:2], "🤔"]))
    def react(self, number: int, emoji: str) -> None:
        """A reaction is added to some message, or taken away."""
        if (chosen := self.chosen(number)) is None:
            return
        one, row = chosen
        old, one.reactions = one.reactions, one.reactions ^ {emoji}
        body = {"chat": {"id": CHAT}, "message_id": row.message_id}
        for name, emojis in (("old_reaction", old), ("new_reaction", one.reactions)):
            body[name] = [{"type": "emoji", "emoji": each} for each in sorted(emojis)]
        self.rig.forward("message_reaction", body)

    @rule(position=st.integers(0, 9))
    def move(self, position: int) -> None:
        """A button of the queue's menu."""
        view = self.rig.parts.queue.view()
        if view:
            item = view[position % len(view)]
            lane = "priority" if item.lane == "normal" else "normal"
            self.rig.parts.queue.move(item.seq, lane)
            self.rig.run(0.05)

    @rule(position=st.integers(0, 9), skip=st.booleans())
    def mark(self, position: int, skip: bool) -> None:
        """Another one."""
        view = self.rig.parts.queue.view()
        if view:
            self.rig.parts.queue.mark(view[position % len(view)].seq, skip)
            self.rig.run(0.05)

    @rule(command=st.sampled_from(["/next", "/abort", "/continue", "/continue"]))
    def command(self, command: str) -> None:
        """A command that keeps the queue."""
        if command != "/continue":
            self.doubt()
        number = next(self.numbers)
        if command == "/continue":
            self.say(number, command, "continue", "control")
        else:
            self.forward(number, command)
        TOTAL[command] += 1

    @precondition(lambda self: len(self.known) > 4)
    @rule()
    def stop(self) -> None:
        """The queue is cleared."""
        self.doubt()
        for row in self.rig.inbox.rows("admitted", "held", "handed"):
            if row.delivery_id in self.known:
                self.known[row.delivery_id].stoppable = True
        self.forward(next(self.numbers), "/stop")
        TOTAL["/stop"] += 1

    def chosen(self, number: int) -> tuple[Expected, InboxRow] | None:
        """Return some message and its row, while the row has its text."""
        names = sorted(self.known)
        if not names:
            return None
        one = self.known[names[number % len(names)]]
        row = self.rig.inbox.row(one.name)
        return None if row is None else (one, row)

    # --- Pi and the world ----------------------------------------------------------------------

    @rule()
    def settle(self) -> None:
        """The run that waits at its gate goes on."""
        for name in list(self.pi._gates):
            self.pi.open_gate(name)
            del self.pi._gates[name]
        self.rig.run(0.1)

    @rule()
    def refuse(self) -> None:
        """Pi will not take the next prompt."""
        if len(self.pi.refusals) < 2:
            self.pi.refusals.append(PiRefused("Cannot submit a prompt while compaction is …"))
            TOTAL["refusals"] += 1

    @rule(begins=st.sampled_from([True, True, False]))
    def compact(self, begins: bool) -> None:
        """Pi compacts its context, or is done with that."""
        self.pi._change(isCompacting=begins)
        self.rig.run(0.1)

    @rule(seconds=st.sampled_from([0.05, 0.1, 0.5, 3.0]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.rig.run(seconds)

    @precondition(lambda self: self.since > 2)
    @rule()
    def worker_crashes(self) -> None:
        """The worker is killed; the next one opens the same file."""
        self.end_process()
        self.begin_process()
        TOTAL["crashes"] += 1

    @precondition(lambda self: self.since > 2)
    @rule()
    def pi_crashes(self) -> None:
        """Pi is killed; its worker ends, and the supervisor starts another."""
        self.doubt()
        self.pi.die()
        self.pi.stopped = True
        self.rig.run(0.5)
        self.end_process()
        self.begin_process()
        TOTAL["ends of Pi"] += 1

    def teardown(self) -> None:
        """In the end every prompt ran once, was dropped as asked, or is shown as uncertain."""
        try:
            self.drain()
            self.nothing_wrong()
            ran = Counter(self.conversation())
            for one in self.known.values():
                row = self.rig.inbox.row(one.name)
                assert row is not None
                self.judge(one, row.state, ran[self.key(one)])
        finally:
            self.pi.stopped = True
            self.rig.crash()
            self.rig.database.close()

    def drain(self) -> None:
        """Let everything come to its end."""
        rig = self.rig
        self.pi.refusals.clear()
        self.pi._change(isCompacting=False)
        for _ in range(100):
            self.settle()
            rig.run(1)
            if not rig.inbox.rows("admitted", "joined", "held", "handed"):
                return
        left = [(row.state, row.kind) for row in rig.inbox.rows("admitted", "held", "handed")]
        raise AssertionError(f"7: still not over: {left}")

    def judge(self, one: Expected, state: str, ran: int) -> None:
        """Whether a prompt came to what it may come to."""
        TOTAL[state] += 1
        if state == "skipped":
            assert one.marked or one.stoppable, f"7: {one} was dropped"
            assert ran == 0 or self.key(one) == "continue", f"7: {one} was dropped and ran"
        elif state == "uncertain":
            assert one.doubtful, f"7: nobody knows of {one}"
        else:
            assert state == "settled", f"7: {one} is {state}"
            assert ran > 0, f"7: {one} is settled and never ran"


class QueueLives(SynchronousTestCase):
    """Many of them."""

    def test_random_lives(self) -> None:
        """Whatever is sent, edited, moved, skipped, aborted, refused and killed, in any order."""
        BASES[:] = [Path(self.mktemp()).resolve()]
        BASES[0].mkdir()
        TOTAL.clear()
        run_state_machine_as_test(
            Lives,
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                deadline=None,
                derandomize=True,
                database=None,
            ),
        )
        self.flushLoggedErrors()
        tried = {"given", "steered", "moves", "marks", "edits", "refusals", "skipped", "uncertain"}
        tried |= {
            "/next",
            "/abort",
            "/stop",
            "/continue",
            "crashes",
            "ends of Pi",
            "settled",
            "on disk",
        }
        for what in sorted(tried):
            self.assertGreater(TOTAL[what], 10, f"{what} was hardly tried: {TOTAL}")

    def test_a_fault_is_seen(self) -> None:
        """The machine itself notices a prompt that goes out of its turn, and one that is lost."""
        BASES[:] = [Path(self.mktemp()).resolve()]
        BASES[0].mkdir()
        lives = Lives()
        lives.first_messages(False)
        lives.send(False)
        inbox = Inbox(lives.rig.database)
        first, _ = inbox.rows("held")
        self.successResultOf(inbox.move(first.seq, "normal"))
        lives.settle()
        self.assertRaises(AssertionError, lives.nothing_wrong)
        lives.wrong.clear()
        lives.drain()
        lives.send(True)
        lives.send(False)
        (lost,) = inbox.rows("held")
        self.successResultOf(inbox.skip([lost.seq]))
        self.assertRaises(AssertionError, lives.teardown)
