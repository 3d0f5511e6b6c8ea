"""Orders of the operator while a worker or the daemon is down, by the table of L{tests.worker.grid};
and many messages at once."""

from __future__ import annotations

import json
import re
import secrets
import shlex
import signal
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
from twisted.internet.defer import TimeoutError, gatherResults
from twisted.internet.threads import deferToThread

from pitelegram.commands.client import ControlClient
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.jsonio import dumps
from pitelegram.kernel.paths import Paths
from pitelegram.sandbox.records import Message
from pitelegram.testing.leaderlink import shown
from pitelegram.testing.pienv import pi_command
from tests.system import SystemCase
from tests.worker.grid import (
    CORRECTED,
    DAEMON,
    DROPPED,
    EXPECTED,
    FIRST,
    HELD,
    IN_MENU,
    NEXT,
    ORDERS,
    PREPARED,
    RANKS,
    RUNS,
    STEERS,
    UNKNOWN,
    WORKER,
    Cell,
    Scene,
    configure,
)

BURST = 50
FORMER = {"menu skip": "queue:skip-set:{}:skip", "menu move": "queue:prio-set:{}:priority"}
STANDS = {
    HELD: ("held",),
    CORRECTED: ("held",),
    FIRST: ("held",),
    NEXT: ("handed", "settled"),
    STEERS: ("handed",),
}


@attrs.define(eq=False)
class Place:
    """One worker, and the cell that is tried in it; the operator of that cell, too.

    @ivar said: what was given to the leader to be said there since the order.  Telegram lets only one
        message a second through, so that it is not waited for.
    @ivar former: the data of a button that a menu of a former life has.
    @ivar press: the id of the press that was made last.
    """

    system: Any
    order: str
    thread: int
    store: str
    number: int = 0
    handed: int = 0
    first: int = 0
    second: int = 0
    said: Callable[[], list[str]] = list
    press: str = ""
    menu: Any = None
    former: str = ""

    @property
    def names(self) -> tuple[str, str]:
        """The words of the prompts that wait."""
        return f"first-{self.number}.", f"second-{self.number}."

    def messages(self) -> list[Message]:
        """What the bot wrote there."""
        return list(self.system.telegram.chat.from_bot(self.thread))

    def button(self, words: str) -> tuple[Message, str] | None:
        """The newest button whose label has these words, and its message."""
        for message in reversed(self.messages()):
            for row in message.keyboard:
                for each in row:
                    if words in each["text"]:
                        return message, each["text"]
        return None

    async def say(self, words: str) -> int:
        """Write."""
        return int(self.system.say(words, self.thread).message_id)

    async def edit(self, message_id: int, words: str) -> None:
        """Edit."""
        self.system.telegram.chat.user_edits(message_id, words)

    async def react(self, message_id: int, emoji: str) -> None:
        """React."""
        self.system.telegram.chat.user_reacts(message_id, emoji)

    async def tap(self, words: str) -> None:
        """Press the newest button that has these words, or a menu of a former life."""
        chat = self.system.telegram.chat
        if self.former:
            self.press = chat.user_presses(self.menu.message_id, data=self.former)
            return
        found = self.button(words)
        assert found is not None, (self.order, words)
        self.menu, label = found
        self.press = chat.user_presses(self.menu.message_id, label=label)

    def query(self, query: str, *values: Any) -> list[Any]:
        """Ask the worker's store."""
        with sqlite3.connect(f"file:{self.store}?mode=ro", uri=True) as connection:
            found = connection.execute(query, values).fetchall()
        connection.close()
        return found

    def rows(self) -> dict[int, tuple[str, str, int]]:
        """State, lane and mark of every message."""
        found = self.query("SELECT message_id, state, lane, skip FROM inbox WHERE kind = 'message'")
        return {message: (state, lane, skip) for message, state, lane, skip in found}

    def count(self) -> int:
        """How many updates it got."""
        return int(self.query("SELECT count(*) FROM inbox")[0][0])

    def seq(self, message_id: int) -> int:
        """The number of a prompt in the inbox."""
        query = "SELECT seq FROM inbox WHERE kind = 'message' AND message_id = ?"
        return int(self.query(query, message_id)[0][0])

    def waiting(self) -> bool:
        """Whether two prompts wait."""
        rows = self.rows()
        return all(rows.get(each, ("",))[0] == "held" for each in (self.first, self.second))

    def stands(self, message_id: int, fate: str) -> bool:
        """Whether a prompt stands as that fate has it."""
        state, _, skip = self.rows()[message_id]
        if fate == DROPPED:
            return state == "skipped" or (state == "held" and bool(skip))
        return state in STANDS[fate] and not skip

    def told(self, expected: Cell) -> bool:
        """Whether the operator sees what he is to see."""
        if self.press:
            answer = self.system.telegram.chat.world.presses.get(self.press).answer or {}
            return answer.get("text") == expected.said[0]
        new = self.said()
        return all(any(text.startswith(each) for text in new) for each in expected.said)

    def shown(self, expected: Cell) -> bool:
        """Whether the menu that was pressed shows what came of it."""
        return not expected.said[1:] or self.menu.text.startswith(expected.said[1])

    def fates(self) -> list[object]:
        """How both prompts stand, and what a press was answered."""
        answer = self.press and self.system.telegram.chat.world.presses.get(self.press).answer
        menu = self.menu and self.menu.text
        return [self.rows().get(each) for each in (self.first, self.second)] + [answer, menu]

    def as_expected(self, expected: Cell) -> bool:
        """Whether all is as it is to be soon after the order."""
        if not (self.told(expected) and self.stands(self.second, expected.second)):
            return False
        # The second is over soon where it has its turn; the first waits at a gate.
        return expected.second == NEXT or self.stands(self.first, expected.first)

    def quiet(self) -> bool:
        """Whether nothing waits or runs."""
        return not {"admitted", "held", "handed"} & {state for state, _, _ in self.rows().values()}


class Restarts(SystemCase):
    """A worker for each order; all are in the same state at the same time."""

    @deferred
    async def setUp(self) -> None:
        """Start them."""
        SystemCase.setUp(self)
        configure(self.system.agent_dir)
        self.late_pi()
        await self.system.start_daemon()
        names = [order.replace(" ", "-") for order in ORDERS]
        await gatherResults([self.begin(name) for name in names])
        threads = await gatherResults([self.system.thread_of(name) for name in names])
        self.places = [
            Place(
                self.system,
                order,
                thread,
                self.store(name),
                said=partial(self.said, self.key(name)),
            )
            for order, name, thread in zip(ORDERS, names, threads, strict=True)
        ]

    def late_pi(self) -> None:
        """Have every Pi start when C{go} is there, and not before."""
        self.go = self.base / "go"
        self.go.touch()
        script = self.base / "late-pi"
        pi = shlex.join(pi_command())
        wait = f"until [ -e {self.go} ]; do sleep 0.05; done"
        script.write_text(
            f'#!/bin/sh\ncase "$*" in *--version*) ;; *) {wait} ;; esac\nexec {pi} "$@"\n'
        )
        script.chmod(0o700)
        path = self.system.agent_dir / "telegram.json"
        settings = json.loads(path.read_text())
        settings["workers"]["command"] = str(script)
        path.write_text(json.dumps(settings))

    @deferred
    async def begin(self, name: str) -> None:
        """Start a worker."""
        request_id = secrets.token_hex(8)
        request = {
            "schema_version": 1,
            "action": "worker.start",
            "request_id": request_id,
            "target": {},
            "args": {"directory": str(self.system.project(name))},
        }
        client = ControlClient(Paths(self.system.agent_dir).control_socket)
        await deferToThread(client.command, dumps(request), "worker.start", request_id)

    def key(self, name: str) -> str:
        """A worker's binding."""
        (spec,) = self.rows("SELECT spec_id FROM specs WHERE name = ?", name)
        return f"spec-{spec}"

    def store(self, name: str) -> str:
        """Where a worker keeps its inbox."""
        return str(Paths(self.system.agent_dir).worker_database(self.key(name)))

    def said(self, key: str) -> list[str]:
        """What a worker wants to be said, whether it was already or not, since the orders."""
        found = self.rows(
            "SELECT p.call, p.message_ids FROM outbox AS o JOIN outbox_parts AS p USING (key)"
            " WHERE o.binding_key = ? AND o.seq > ? ORDER BY o.seq, p.part",
            key,
            self.since,
        )
        messages = self.system.telegram.chat.chat.messages
        return [
            str(messages[json.loads(ids)[0]].text or messages[json.loads(ids)[0]].content)
            if call is None
            else shown(json.loads(call)).replace("\\", "")
            for call, ids in found
        ]

    @deferred
    async def test_orders_and_many_messages(self) -> None:
        """Each order comes to what the table says, once; then fifty messages in one second."""
        await self.column(DAEMON, 100)
        await self.column(WORKER, 200)
        await self.burst("one", self.places[:1])
        await self.burst("ten", self.places[:10])

    # --- orders --------------------------------------------------------------------------------

    @deferred
    async def column(self, state: str, number: int) -> None:
        """Give every order while that process is down."""
        self.requests = len(self.system.model.requests)
        for n, place in enumerate(self.places):
            place.number = number + n
            await self.prepare(place)
        for place in self.places:
            place.handed = await place.say(f"[[gate run-{place.number}]]")
        await self.all(lambda p: self.asked(f"[[gate run-{p.number}]]"), "every run")
        for place in self.places:
            place.first = await place.say(f"[[gate wait-{place.number}]] {place.names[0]}")
            place.second = await place.say(place.names[1])
        await self.all(Place.waiting, "what waits")
        for place in self.places:
            if place.order in IN_MENU and state == DAEMON:
                await self.open_menu(place)
            elif place.order in IN_MENU:
                place.former = FORMER[place.order].format(place.seq(place.second))
        await self.give(state)
        for place in self.places:
            expected = EXPECTED[place.order, state]
            try:
                await self.system.until(lambda p=place, e=expected: p.as_expected(e), timeout=20)
            except TimeoutError:
                self.fail(f"{place.order}, {state}: {place.said()} {place.fates()}")
        if state == DAEMON:
            # After the other, edits of messages wait for dozens of notices.
            await self.all(lambda p: p.shown(EXPECTED[p.order, state]), "the menu")
        for place in self.places:
            for gate in ("run", "wait"):
                self.system.model.open_gate(f"{gate}-{place.number}")
        await self.all(Place.quiet, "the end")
        await self.all(self.delivered, "the answer")
        for place in self.places:
            self.finally_so(place, EXPECTED[place.order, state], f"{place.order}, {state}")

    @deferred
    async def give(self, state: str) -> None:
        """Kill, give the orders, and have the process come again."""
        (self.since,) = self.rows("SELECT coalesce(max(seq), 0) FROM outbox")
        for place in self.places:
            place.press = ""
        if state == DAEMON:
            await self.system.daemon.kill(signal.SIGKILL)
        else:
            self.go.unlink()
            for process in self.system.workers():
                process.kill()
        known = {place.order: place.count() for place in self.places}
        for place in self.places:
            corrected = f"{place.names[1]} corrected"
            scene = Scene(f"{place.number}", place.handed, place.second, corrected)
            await ORDERS[place.order](place, scene)
        if state == DAEMON:
            await self.system.start_daemon()
        await self.all(lambda p: p.count() > known[p.order], "the order")
        self.go.touch()

    @deferred
    async def prepare(self, place: Place) -> None:
        """What is asked for before anything runs."""
        if place.order in PREPARED and place.button("Yes, compact") is None:
            before = len(place.messages())
            await place.say(PREPARED[place.order])
            await self.system.until(lambda: len(place.messages()) > before, "the question")

    @deferred
    async def open_menu(self, place: Place) -> None:
        """Show the second prompt in the queue's menu."""
        await place.say("/queue")
        await self.system.until(lambda: place.button(place.names[1]), "the queue's menu")
        await place.tap(place.names[1])
        await self.system.until(lambda: place.button("Skip"), "the prompt's menu")

    def asked(self, text: str) -> bool:
        """Whether the model was asked that in this column."""
        return any(text in each.text for each in self.system.model.requests[self.requests :])

    @deferred
    async def all(self, condition: Any, what: str) -> None:
        """Wait until it is so everywhere."""
        for place in self.places:
            await self.system.until(lambda p=place: condition(p), f"{what} of {place.order}")

    def delivered(self, place: Place) -> bool:
        """Whether the leader has the answer of what was asked last."""
        asked = [e.text for e in self.system.model.requests[self.requests :] if not e.results]
        last = next(
            (name for text in reversed(asked) for name in place.names if name in text), None
        )
        return last is None or any(last in t or "After the gate" in t for t in place.said())

    def finally_so(self, place: Place, expected: Cell, where: str) -> None:
        """What ran to its end, and what the model was asked, in which order, each once."""
        n, new = place.number, place.said()
        for each in expected.said if not place.press else ():
            self.assertEqual(sum(text.startswith(each) for text in new), 1, (where, each, new))
        fates = zip(place.names, (expected.first, expected.second), strict=True)
        wanted = sorted(
            (RANKS[fate], i, name) for i, (name, fate) in enumerate(fates) if fate in RANKS
        )
        asked = [
            name
            for request in self.system.model.requests[self.requests :]
            if request.tools and not request.results
            for name in place.names
            if name in request.text
        ]
        if expected.first == "aborted":
            asked.remove(place.names[0])
        self.assertEqual(asked, [name for _, _, name in wanted], where)
        self.assertEqual(
            self.asked(f"{place.names[1]} corrected"), expected.second == CORRECTED, where
        )
        self.assertEqual(len(self.system.prompts(f"[[gate run-{n}]]")), 1, where)
        lost = [text for text in new if "It was not repeated." in text]
        self.assertEqual(bool(lost), expected.running == UNKNOWN, (where, new))
        if expected.running == RUNS and expected.second != STEERS:
            self.assertTrue(any(f"After the gate run-{n}." in text for text in new), (where, new))

    # --- many messages -------------------------------------------------------------------------

    @deferred
    async def burst(self, name: str, places: list[Place]) -> None:
        """Fifty messages at once: each is a prompt once, in their order, and is answered."""
        requests = len(self.system.model.requests)
        (before,) = self.rows("SELECT count(*) FROM outbox WHERE kind = 'final'")
        for number in range(BURST):
            await places[number % len(places)].say(f"{name}-{number}-end")
        wanted = [
            [f"{name}-{number}-end" for number in range(i, BURST, len(places))]
            for i in range(len(places))
        ]

        def found() -> list[list[str]]:
            """The prompts by worker, as the model was asked."""
            new = self.system.model.requests[requests:]
            asked = [text for each in new for text in re.findall(rf"{name}-\d+-end", each.text)]
            return [[text for text in asked if text in mine] for mine in wanted]

        await self.system.until(lambda: sum(map(len, found())) >= BURST, "every prompt")
        await self.system.until(lambda: all(place.quiet() for place in places), "every answer")
        self.assertEqual(found(), wanted)
        for each in (text for mine in wanted for text in mine):
            self.assertLessEqual(len(self.system.answers(f"You said: {each}")), 1, each)
        answered = "SELECT count(*) FROM outbox WHERE kind = 'final' AND state IN (?, ?, ?)"
        states = ("pending", "sending", "delivered")
        await self.system.until(
            lambda: self.rows(answered, *states)[0] - before >= BURST, "every answer"
        )
        self.assertEqual(self.rows(answered, *states)[0] - before, BURST)
