"""Every order of the operator in every state of a worker with the real Pi; the table is L{EXPECTED}."""

from __future__ import annotations

from threading import Event
from typing import Any

from twisted.internet.task import deferLater

from pitelegram.kernel.deferring import deferred
from pitelegram.store.rows import InboxRow
from pitelegram.testing.leaderlink import shown
from pitelegram.testing.realpi import RealPiCase
from pitelegram.testing.worker import CHAT
from tests.worker.grid import (
    ABORTED,
    BETWEEN,
    COMPACTING,
    CORRECTED,
    DONE,
    DROPPED,
    EXPECTED,
    FIRST,
    GRID,
    HELD,
    IDLE,
    IN_MENU,
    NEXT,
    NONE,
    ORDERS,
    OTHER,
    PREPARED,
    RANKS,
    RETRYING,
    RUNS,
    STEERS,
    STREAMING,
    TOOL,
    Cell,
    Scene,
    configure,
)
from tests.worker.slowrig import SlowRig

PATIENCE = 20.0
PAUSE_MS = 700
"""Pi's pause before it tries a failed request again."""
FORWARD = {"type": "hidden_user", "sender_user_name": "Ann", "date": 1}


class Grid(RealPiCase):
    """One Pi for each column."""

    timeout = 120

    @deferred
    async def setUp(self) -> None:
        """Start a worker whose Pi has two models, tries again soon and compacts short talks."""
        RealPiCase.setUp(self)
        configure(self.agent_dir, PAUSE_MS)
        self.rig = SlowRig(self.base / "rig", self.reactor, self.agent_dir)
        self.number = 0
        self.messages = 0
        self.rig.start(self.make_host(directory=self.rig.project))
        await self.rig.started
        self.rig.parts.preferences.take({"activity": "quiet"})  # only what answers orders counts

    @deferred
    async def tearDown(self) -> None:
        """End worker, Pi and store."""
        await self.rig.end()
        await self.rig.database.stopService()
        await RealPiCase.tearDown(self)

    async def until(self, condition: Any, what: str) -> None:
        """Wait for a condition."""
        end = self.reactor.seconds() + PATIENCE
        while not condition():
            if self.reactor.seconds() > end:
                rows = [(r.seq, r.state, r.kind, r.prompt) for r in self.unsettled()]
                self.fail(f"{self.where}: {what} did not come; {rows} {self.seen()}")
            await deferLater(self.reactor, 0.01)

    # --- what the operator does ----------------------------------------------------------------

    async def say(self, text: str, **fields: Any) -> int:
        """Send a message; returns its id."""
        self.messages += 1
        self.order = self.rig.message(text, self.messages, **fields)
        return self.messages

    async def edit(self, message_id: int, text: str) -> None:
        """Edit a message."""
        self.order = self.rig.edit(text, message_id)

    async def react(self, message_id: int, emoji: str) -> None:
        """React to a message."""
        body = {
            "chat": {"id": CHAT},
            "message_id": message_id,
            "old_reaction": [],
            "new_reaction": [{"type": "emoji", "emoji": emoji}],
        }
        self.order = self.rig.forward("message_reaction", body)

    async def tap(self, label: str) -> None:
        """Press the newest button of that label; in a queue that is empty, one of a former prompt."""
        former = f"queue:skip-set:{self.row(self.handed).seq}:skip"
        self.order = self.rig.press(self.button(label) or former)

    def button(self, label: str) -> str:
        """The data of the newest button with that label, empty when there is none."""
        for _, params, _ in reversed(self.rig.link.api_calls):
            for row in params.get("reply_markup", {}).get("inline_keyboard", ()):
                for each in row:
                    if label in each["text"]:
                        return str(each["callback_data"])
        return ""

    # --- what can be seen ----------------------------------------------------------------------

    def seen(self) -> tuple[str, ...]:
        """Toasts, first lines of menus, messages that are no answers; since the order."""
        calls = self.rig.link.api_calls[self.calls :]
        toasts = [p["text"] for m, p, _ in calls if m == "answerCallbackQuery"]
        menus = [p["text"] for m, p, _ in calls if m in ("sendMessage", "editMessageText")]
        told = [
            shown(call)
            for name, delivery in self.rig.link.submitted[self.deliveries :]
            if not name.startswith("final-")
            for call in delivery["calls"]
        ]
        lines = [text.split("\n")[0] for text in menus]
        return tuple(text for text in (*toasts, *lines, *told) if text)

    def answers(self) -> str:
        """What Pi answered since the cell began."""
        return "\n".join(
            shown(call)
            for name, delivery in self.rig.link.submitted[self.begun_deliveries :]
            if name.startswith("final-")
            for call in delivery["calls"]
        )

    def row(self, message_id: int) -> InboxRow:
        """The row of a prompt."""
        found = self.rig.inbox.by_message(CHAT, message_id)
        assert found is not None
        return found

    def unsettled(self) -> list[InboxRow]:
        """What is not over."""
        return self.rig.inbox.rows("admitted", "held", "handed")

    def quiet(self) -> bool:
        """Whether everything is over."""
        parts = self.rig.parts
        return not self.unsettled() and parts.queue.quiet() and parts.submitter.drained()

    def done(self) -> bool:
        """Whether the order is done."""
        row = self.rig.inbox.row(self.order)
        return row is not None and row.state == "settled"

    # --- one cell ------------------------------------------------------------------------------

    async def column(self, state: str) -> None:
        """Give each order in that state."""
        for order in ORDERS:
            self.number += 1
            self.where = f"{order}, {state}"
            await self.cell(order, state, EXPECTED[order, state])

    async def cell(self, order: str, state: str, expected: Cell) -> None:
        """Bring Pi into the state, give the order, see what is said and what becomes of all."""
        n = self.number
        self.calls = self.deliveries = 0
        await self.rig.host.command("set_model", provider="scripted", modelId="scripted")
        self.requests = len(self.model.requests)
        self.begun_deliveries = len(self.rig.link.submitted)
        self.names = f"first-{n}.", f"second-{n}."
        self.free: Event | None = None
        if order in PREPARED:
            await self.say(PREPARED[order])
            await self.until(self.done, "the preparation")
        await self.enter(state)
        if state == IDLE:
            await self.gathered(order)
        else:
            await self.waiting(order, state)
        self.calls = len(self.rig.link.api_calls)
        self.deliveries = len(self.rig.link.submitted)
        scene = Scene(f"{n}", self.handed, self.second, f"{self.names[1]} corrected")
        await ORDERS[order](self, scene)
        if self.free is not None:
            self.free.set()
        await self.until(self.done, "the order's end")
        await self.until(lambda: self.as_expected(expected), f"{expected}")
        if order == "model" and state != COMPACTING:
            self.assertEqual(self.rig.host.state["model"]["id"], OTHER, self.where)
        await self.release(state)
        self.finally_so(state, expected)

    async def enter(self, state: str) -> None:
        """Have something run."""
        n = self.number
        self.go = self.base / f"go-{n}"
        begun = self.base / f"begun-{n}"
        tool = f"touch {begun}; until [ -e {self.go} ]; do sleep 0.02; done; echo tool-{n}"
        texts = {
            STREAMING: f"[[gate run-{n}]]",
            BETWEEN: f"[[gate run-{n}]]",
            TOOL: f"[[tool bash '{tool}']]",
            RETRYING: f"[[error 500 times=1]] run-{n}",
        }
        self.handed = await self.say(texts.get(state, f"run-{n}"))
        if state in (IDLE, COMPACTING):
            await self.until(self.done, "the first prompt's end")
            await self.until(self.quiet, "an idle Pi")
        elif state == TOOL:
            await self.until(begun.exists, "the tool")
        elif state == RETRYING:
            await self.until(self.failed, "the failure")
        else:
            await self.until(lambda: self.asked(f"[[gate run-{n}]]"), "the run")
        if state == COMPACTING:
            self.model.summary_gate = f"summary-{n}"
            confirm = self.button("Yes, compact")
            await self.say("/compact")
            await self.until(lambda: self.button("Yes, compact") != confirm, "the question")
            await self.tap("Yes, compact")
            await self.until(lambda: self.rig.host.state.get("isCompacting"), "the compaction")
            await self.until(lambda: not self.model.requests[-1].tools, "the summary's request")

    def failed(self) -> bool:
        """Whether the model's failure was told by Pi, which tries again later."""
        run = self.rig.parts.queue.hands.book.run
        return run is not None and not run.turn.empty

    def asked(self, text: str) -> bool:
        """Whether the model was asked that since the cell began."""
        return any(text in request.text for request in self.model.requests[self.requests :])

    async def gathered(self, order: str) -> None:
        """Nothing waits but a message that is still being gathered."""
        self.first = self.handed
        self.second = await self.say(self.names[1], forward_origin=FORWARD)
        await self.until(lambda: self.rig.inbox.row(self.order), "the forward")

    async def waiting(self, order: str, state: str) -> None:
        """Two prompts wait."""
        n = self.number
        self.first = await self.say(f"[[gate wait-{n}]] {self.names[0]}")
        self.second = await self.say(self.names[1])
        await self.until(lambda: len(self.rig.inbox.rows("held")) == 2, "two held ones")
        if order in IN_MENU:
            await self.say("/queue")
            await self.until(lambda: self.button(self.names[1]), "the queue's menu")
            await self.tap(self.names[1])
            await self.until(self.done, "the prompt's menu")
        if state == BETWEEN:
            self.free = self.rig.hold_up()
            self.model.open_gate(f"run-{n}")
            await self.until(lambda: self.rig.parts.queue.state == "storing", "the settlement")

    # --- what becomes of it --------------------------------------------------------------------

    def as_expected(self, expected: Cell) -> bool:
        """Whether all is as it is to be soon after the order."""
        return (
            self.stands(self.row(self.first), expected.first)
            and self.stands(self.row(self.second), expected.second)
            and self.seen()[: len(expected.said)] == expected.said
        )

    def stands(self, row: InboxRow, fate: str) -> bool:
        """Whether a prompt stands as that fate has it."""
        if fate == DROPPED:
            return row.skip or row.state == "skipped"
        states = {
            HELD: ("held", "admitted"),
            CORRECTED: ("held", "admitted"),
            FIRST: ("held",),
            NEXT: ("handed", "settled"),
            STEERS: ("handed",),
            ABORTED: ("settled",),
            DONE: ("settled",),
        }
        ahead = fate in (STEERS, FIRST)
        return row.state in states[fate] and (row.lane == "priority" or not ahead)

    async def release(self, state: str) -> None:
        """Let everything go on, until nothing is left."""
        self.go.touch()
        self.model.summary_gate = None
        for gate in ("run", "wait", "summary"):
            self.model.open_gate(f"{gate}-{self.number}")
        await self.until(self.quiet, "the end")

    def finally_so(self, state: str, expected: Cell) -> None:
        """Everything that was said, what ran to its end, and the order in which the model was asked."""
        said = [text for text in self.seen() if text not in ENDS]
        self.assertEqual(tuple(said), tuple(t for t in expected.said if t not in ENDS), self.where)
        for text in expected.said:
            self.assertIn(text, self.seen(), self.where)
        self.running_so(state, expected)
        fates = zip(RANKS_BY, self.names, (expected.first, expected.second), strict=True)
        wanted = sorted((RANKS[fate], i, name) for i, name, fate in fates if fate in RANKS)
        asked = [
            name
            for request in self.model.requests[self.requests :]
            if request.tools and not request.results
            for name in self.names
            if name in request.text
        ]
        if expected.first == ABORTED:
            asked = [name for name in asked if name != self.names[0]]
            self.assertNotIn(f"After the gate wait-{self.number}", self.answers(), self.where)
        self.assertEqual(asked, [name for _, _, name in wanted], self.where)
        corrected = expected.second == CORRECTED
        self.assertEqual(self.asked(f"{self.names[1]} corrected"), corrected, self.where)

    def running_so(self, state: str, expected: Cell) -> None:
        """What ran came to its end, or did not."""
        n = self.number
        if state == COMPACTING:
            words = ENDS[1] if expected.running == RUNS else ENDS[0]
            self.assertIn(words, self.seen(), self.where)
            return
        ends = {
            STREAMING: f"After the gate run-{n}.",
            BETWEEN: f"After the gate run-{n}.",
            TOOL: f"The tool said: tool-{n}",
            RETRYING: "The provider works again.",
            IDLE: f"You said: run-{n}",
        }
        steered = state in (TOOL, RETRYING) and expected.second == STEERS
        # What steers is what the model answers then.
        end = f"You said: {self.names[1]}" if steered else ends[state]
        self.assertEqual(end in self.answers(), expected.running in (RUNS, NONE), self.where)
        aborted = ABORTED in (expected.running, expected.first)
        self.assertEqual("⏹ Aborted." in self.answers(), aborted, self.where)

    # --- the columns ---------------------------------------------------------------------------

    def test_table(self) -> None:
        """There is a cell for every order in every state, and no other."""
        self.assertEqual(sorted(EXPECTED), sorted(GRID))

    @deferred
    async def test_idle(self) -> None:
        """Nothing runs; a message is still being gathered."""
        await self.column(IDLE)

    @deferred
    async def test_streaming(self) -> None:
        """An answer is under way."""
        await self.column(STREAMING)

    @deferred
    async def test_tool(self) -> None:
        """A tool runs."""
        await self.column(TOOL)

    @deferred
    async def test_compacting(self) -> None:
        """Pi compacts its context."""
        await self.column(COMPACTING)

    @deferred
    async def test_retrying(self) -> None:
        """The model failed, and Pi waits before it asks again."""
        await self.column(RETRYING)

    @deferred
    async def test_between(self) -> None:
        """The run is over, its answer is not stored yet, and the next one waits."""
        await self.column(BETWEEN)


ENDS = ("Compaction cancelled.", "✅ Compaction completed.")
"""How a compaction that was under way ended."""
RANKS_BY = (0, 1)
