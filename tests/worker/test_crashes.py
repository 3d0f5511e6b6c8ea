"""Killed before or after any commit, again and again: each prompt runs once or is uncertain."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.bridge.buttons import keyboard
from pitelegram.bridge.outgoing import Button
from pitelegram.store.inbox import Inbox
from pitelegram.store.outgoing import Outgoing
from pitelegram.testing.leaderlink import shown
from pitelegram.testing.pihost import FakePiHost
from pitelegram.testing.worker import WorkerRig

READS = frozenset(
    {"row", "rows", "by_message", "members", "turns", "answers", "ledger", "get_meta"}
    | {"held", "held_at", "waiting", "button", "raw", "attached"}
)


class WritingPi(FakePiHost):
    """A fake Pi that keeps a session file as the real one does."""

    def __init__(self, clock: Clock, file: Path) -> None:
        super().__init__(clock, str(file))
        self._file = file
        self._entries = 0
        self.stopped = False

    def _tell(self, name: str, *arguments: Any) -> None:
        if self.stopped:
            return
        if name == "user_message":
            self._write({"role": "user", "content": arguments[0]})
        elif name == "assistant_message":
            self._write(arguments[0])
        super()._tell(name, *arguments)

    def _write(self, message: dict[str, Any]) -> None:
        if not self._file.exists():
            header = {"type": "session", "version": 3, "id": "fake-1", "cwd": "/"}
            self._file.write_text(json.dumps(header) + "\n")
        self._entries += 1
        entry = {"type": "message", "id": f"e{id(self)}-{self._entries}", "message": message}
        with self._file.open("a") as file:
            file.write(json.dumps(entry) + "\n")


class Death:
    """A process that is killed at its C{n}-th write: just before the commit, or just after.

    @ivar dead: whether that has happened; nothing is stored any more.
    """

    def __init__(self, writes: int, after: bool) -> None:
        self._left = writes
        self._after = after
        self.dead = False

    def write(self, method: Any, *arguments: Any, **options: Any) -> Deferred[Any]:
        if self.dead:
            return Deferred()
        self._left -= 1
        if self._left > 0:
            return method(*arguments, **options)
        self.dead = True
        if self._after:
            method(*arguments, **options)
        return Deferred()


class Dying:
    """An inbox, or what goes out, of a process that will be killed."""

    def __init__(self, real: Any, death: Death) -> None:
        self._real = real
        self._death = death

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._real, name)
        return method if name in READS else partial(self._death.write, method)


def _text(number: int) -> str:
    """The prompt of that number."""
    gate = ("", "[[gate a]] ", "[[gate b]] ")[number % 3]
    before = f"[[say 'comment p{number}.']][[tool bash 'echo x']]" if number % 3 else ""
    return f"p{number} {before}{gate}[[say 'done p{number}.']]"


class Crashes(SynchronousTestCase):
    """One binding through many short lives."""

    PROMPTS = 6

    def test_random_lives(self) -> None:
        """Whatever the moment of each kill."""
        outcomes = {"answered": 0, "uncertain": 0, "commented": 0}
        for seed in range(150):
            self.random = Random(seed)
            self.rig = WorkerRig(Path(self.mktemp()).resolve())
            self.unreceipted = list(range(1, self.PROMPTS + 1))
            self.outbox: dict[str, Any] = {}
            self._again = 0
            self._offer()
            try:
                for _ in range(self.random.randint(1, 6)):
                    self._life(self.random.randint(1, 14))
                self._life(10**6, last=True)
                for name, number in self._check().items():
                    outcomes[name] += number
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {error}") from error
            finally:
                self.rig.database.close()
        # Both endings must have been tried, or this test would prove nothing.
        self.assertGreater(min(outcomes.values()), 20, outcomes)

    def _offer(self) -> None:
        """An answer of an earlier life has a button for every second prompt."""
        rows = [[Button(label="b", prompt=_text(n))] for n in range(2, self.PROMPTS + 1, 2)]
        keys = (f"{n:08x}" for n in range(2, self.PROMPTS + 1, 2))
        _, stored = keyboard(rows, keys.__next__)
        self.rig.outgoing.add_buttons(stored)

    def _life(self, writes: int, last: bool = False) -> None:
        """One process, from its start to its end, with the operator's messages in between."""
        rig, random = self.rig, self.random
        death = Death(writes, random.random() < 0.5)
        rig.inbox = Dying(Inbox(rig.database), death)  # type: ignore[assignment]
        rig.outgoing = Dying(Outgoing(rig.database), death)  # type: ignore[assignment]
        pi = WritingPi(rig.clock, rig.base / "session.jsonl")
        rig.start(pi)
        for _ in range(60 if last else random.randint(1, 12)):
            self._keep()
            if death.dead:
                break
            self._act(last)
        self._keep()
        if not last and random.random() < 0.5:
            self._outlive(pi)
        pi.stopped = True
        rig.crash()

    def _act(self, last: bool) -> None:
        if self.unreceipted and (last or self.random.random() < 0.6):
            self._forward(self.unreceipted[0])
        if self.random.random() < 0.3:
            self._again += 1
            number = self.random.choice([n for n in range(1, self.PROMPTS + 1) if n % 2 == 0])
            self._press(number, 1000 + self._again)
        if last or self.random.random() < 0.4:
            for name in ("a", "b"):
                self.rig.host.open_gate(name)
        self.rig.run(self.random.choice((0.05, 0.1, 0.3)))

    def _forward(self, number: int) -> None:
        """As the leader does: the same update is offered until there is a receipt."""
        if number % 2:
            body = {"message_id": number, "chat": {"id": 100}, "text": _text(number)}
            self.rig.forward("message", body, update_id=number)
        else:
            self._press(number, number)
        if self.rig.receipt.called:
            self.assertEqual(self.successResultOf(self.rig.receipt), ("accepted", ""))
            self.unreceipted.remove(number)

    def _press(self, number: int, update_id: int) -> None:
        """The button of that number is pressed, for this or another time."""
        message = {"message_id": 50, "chat": {"id": 100}}
        body = {"id": f"cb{update_id}", "data": f"tgbtn:{number:08x}", "message": message}
        self.rig.forward("callback_query", body, update_id=update_id)

    def _outlive(self, pi: WritingPi) -> None:
        """A killed worker's Pi may still finish what it does: nobody hears of it."""
        pi._observers.clear()
        for name in ("a", "b"):
            pi.open_gate(name)
        self.rig.run(0.1)

    def _keep(self) -> None:
        """What was submitted stays in the leader's outbox; an id keeps its content."""
        for name, delivery in self.rig.link.submitted:
            known = self.outbox.setdefault(name, delivery)
            self.assertEqual(known["calls"], delivery["calls"], name)

    def _check(self) -> dict[str, int]:
        inbox = Inbox(self.rig.database)
        self.assertEqual(self.unreceipted, [])
        self.assertEqual(inbox.rows("admitted", "held", "handed"), [])
        self.assertEqual(inbox.answers(), [])
        lines = (self.rig.base / "session.jsonl").read_text().splitlines()[1:]
        messages = [json.loads(line)["message"] for line in lines]
        users = [message["content"] for message in messages if message["role"] == "user"]
        found = {"answered": 0, "uncertain": 0, "commented": 0}
        for number in range(1, self.PROMPTS + 1):
            ran = sum(f"p{number} " in text for text in users)
            answered = self._count("final-", f"done p{number}.")
            uncertain = self._count("uncertain-", f"p{number} ")
            self.assertEqual(answered + uncertain, 1, f"p{number}: {answered} answers")
            self.assertIn(ran, (1,) if answered else (0, 1), f"p{number} ran {ran} times")
            found["answered"] += answered
            found["uncertain"] += uncertain
            found["commented"] += self._commented(number, ran)
        return found

    def _commented(self, number: int, ran: int) -> int:
        """What was said before an answer comes once at most, before it, and is no part of it."""
        comment, answer = f"comment p{number}.", f"done p{number}."
        self.assertEqual(self._count("final-", comment), 0)
        told = self._count("comment-", comment)
        self.assertLessEqual(told, ran, f"p{number}: {told} comments")
        places = [
            (name.partition("-")[0], place)
            for place, (name, delivery) in enumerate(self.outbox.items())
            for call in delivery["calls"]
            if comment in shown(call) or answer in shown(call)
        ]
        kinds = [kind for kind, _ in sorted(places, key=lambda each: each[1])]
        self.assertEqual(kinds, sorted(kinds), f"p{number}")
        return told

    def _count(self, prefix: str, text: str) -> int:
        """How many deliveries with that prefix hold the text."""
        return sum(
            shown(call).count(text)
            for name, delivery in self.outbox.items()
            if name.startswith(prefix)
            for call in delivery["calls"]
        )
