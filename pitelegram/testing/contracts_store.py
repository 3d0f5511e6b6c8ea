"""What every store must do, run for each way a store can be opened.

A test class joins one of these with C{twisted.trial.unittest.TestCase} and provides
C{open(schema)}, which returns an opened database (a leader's with its epoch acquired).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.task import Clock
from zope.interface.verify import verifyObject

from pitelegram.errors import Refusal, StoreError
from pitelegram.store.bindings import Bindings
from pitelegram.store.commands import Commands
from pitelegram.store.inbox import Inbox
from pitelegram.store.interfaces import (
    IBindings,
    ICommands,
    IInbox,
    IJournal,
    ILeadership,
    IOutbox,
    ISpecs,
)
from pitelegram.store.journal import Journal
from pitelegram.store.leadership import Leadership
from pitelegram.store.outbox import Outbox
from pitelegram.store.rows import Incoming
from pitelegram.store.specs import Specs


def incoming(update_id: int, **changes: Any) -> Incoming:
    """Return an update of the owner's private chat."""
    values: dict[str, Any] = {
        "update_id": update_id,
        "kind": "message",
        "chat_id": 7,
        "thread_id": 70,
        "message_id": 1000 + update_id,
        "callback_id": None,
        "body": b'{"update_id":%d}' % update_id,
    }
    return Incoming(**{**values, **changes})


def message(text: str) -> dict[str, Any]:
    """Return one call of a delivery."""
    return {"method": "sendMessage", "params": {"text": text}}


class StoreContract:
    """What all contracts share."""

    clock: Clock
    database: Any
    schema = "leader"
    open: Callable[[str], Any]

    async def refused(self, work: Any, kind: type[Exception] = StoreError) -> Exception:
        """Await C{work}, which must fail with exactly that kind; returns the error."""
        try:
            await work
        except kind as error:
            return error
        raise AssertionError(f"no {kind.__name__} was raised")


class LeadershipContract(StoreContract):
    """L{ILeadership}."""

    async def test_interface(self) -> None:
        """The object has the interface's methods with its signatures."""
        assert verifyObject(ILeadership, Leadership(self.open("leader")))

    async def test_meta(self) -> None:
        """A fact is there after it was stored, and a second value replaces it."""
        leadership = Leadership(self.open("leader"))
        assert leadership.get_meta("host_id") is None
        await leadership.set_meta("host_id", "a")
        await leadership.set_meta("host_id", "b")
        assert leadership.get_meta("host_id") == "b"

    async def test_audit(self) -> None:
        """An audit line is appended; an actor that is not known is refused."""
        database = self.open("leader")
        leadership = Leadership(database)
        await leadership.audit("spec:x", "operator", "start", "asked")
        await self.refused(leadership.audit("spec:x", "nobody", "start", "asked"))
        rows = database.read("SELECT subject, actor, change, reason FROM audit")
        assert [tuple(row) for row in rows] == [("spec:x", "operator", "start", "asked")]


class JournalContract(StoreContract):
    """L{IJournal}."""

    def journal(self) -> Journal:
        """Return a fresh, empty journal."""
        return Journal(self.open("leader"))

    async def accepted(self, journal: Journal, *update_ids: int) -> list[int]:
        """Accept these updates; returns their sequence numbers."""
        rows = await journal.accept(1, [incoming(each) for each in update_ids], max(update_ids) + 1)
        return [row.seq for row in rows]

    async def test_interface(self) -> None:
        """The object has the interface's methods with its signatures."""
        assert verifyObject(IJournal, self.journal())

    async def test_accept(self) -> None:
        """New rows come back as they are stored, known ids are left out, the cursor moves."""
        journal = self.journal()
        assert journal.cursor(1) is None
        first = await journal.accept(1, [incoming(5), incoming(6)], 7)
        assert journal.unsettled() == first
        assert [row.update_id for row in first] == [5, 6]
        second = await journal.accept(1, [incoming(6), incoming(7), incoming(7)], 8)
        assert [row.update_id for row in second] == [7]
        assert journal.cursor(1) == 8
        assert journal.counts() == {"pending": 3, "held": 0, "retry_wait": 0, "failed": 0}

    async def test_cursor_may_go_down(self) -> None:
        """The cursor belongs to a bot and is stored as given, even when it is lower."""
        journal = self.journal()
        await journal.accept(1, [incoming(500)], 501)
        await journal.accept(1, [incoming(3)], 4)
        await journal.accept(2, [incoming(3)], 4)
        assert (journal.cursor(1), journal.cursor(2)) == (4, 4)
        assert [row.update_id for row in journal.unsettled()] == [500, 3, 3]

    async def test_pin_is_exclusive(self) -> None:
        """A pinned row can be pinned again to the same binding only, until it is released."""
        journal = self.journal()
        (seq,) = await self.accepted(journal, 1)
        await journal.pin(seq, "spec-a", "d-a")
        await journal.pin(seq, "spec-a", "d-a")
        await self.refused(journal.pin(seq, "spec-b", "d-b"))
        await journal.hold(seq)
        await self.refused(journal.pin(seq, "spec-b", "d-b"))
        assert journal.unsettled()[0].recipient == "spec-a"
        await journal.release(seq)
        await journal.pin(seq, "spec-b", "d-b")
        row = journal.unsettled()[0]
        assert (row.state, row.recipient, row.delivery_id) == ("forwarding", "spec-b", "d-b")

    async def test_retry(self) -> None:
        """A retry counts, keeps the pin unless told otherwise, and carries its time."""
        journal = self.journal()
        (seq,) = await self.accepted(journal, 1)
        await journal.pin(seq, "spec-a", "d-a")
        await journal.retry(seq, 5000, "link-lost", release=False)
        row = journal.unsettled()[0]
        assert (row.state, row.attempts, row.next_attempt_ms) == ("retry_wait", 1, 5000)
        assert row.recipient == "spec-a"
        await journal.retry(seq, 9000, "retryable", release=True)
        row = journal.unsettled()[0]
        assert (row.attempts, row.recipient, row.delivery_id) == (2, None, None)
        assert journal.counts()["retry_wait"] == 1

    async def test_settle_and_confirm(self) -> None:
        """A settled row is gone from the live ones, its body too; it is confirmed once."""
        journal = self.journal()
        first, second = await self.accepted(journal, 1, 2)
        await journal.pin(first, "spec-a", "d-1")
        await journal.settle([first, second])
        await journal.settle([first])
        assert journal.unsettled() == []
        assert journal.unconfirmed("spec-a", 10) == ["d-1"]
        assert journal.unconfirmed("spec-b", 10) == []
        await journal.confirm(["d-1", "unknown"])
        assert journal.unconfirmed("spec-a", 10) == []
        rows = self.database.read("SELECT body FROM journal")
        assert [row["body"] for row in rows] == [None, None]
        await self.refused(journal.pin(first, "spec-a", "d-1"))

    async def test_settled_is_remembered(self) -> None:
        """A settled update is known for as long as its row is kept; then its id may come again."""
        journal = self.journal()
        (first,) = await self.accepted(journal, 1)
        await journal.pin(first, "spec-a", "d-1")
        await journal.settle([first])
        assert await journal.accept(1, [incoming(1)], 2) == []
        self.clock.advance(1000)
        assert await journal.forget_settled(999_999, 10) == 0
        await journal.confirm(["d-1"])
        assert await journal.forget_settled(999_999_999, 10) == 1
        assert len(await journal.accept(1, [incoming(1)], 2)) == 1

    async def test_forget_in_batches(self) -> None:
        """No more rows go at once than asked for; rows that nobody must confirm go too."""
        journal = self.journal()
        await journal.settle(await self.accepted(journal, 1, 2, 3))
        self.clock.advance(1)
        assert await journal.forget_settled(1000, 2) == 2
        assert await journal.forget_settled(1000, 2) == 1
        assert await journal.forget_settled(1000, 2) == 0

    async def test_fail(self) -> None:
        """A failed row is counted, not offered, and does not come back by itself."""
        journal = self.journal()
        (seq,) = await self.accepted(journal, 1)
        counts = [await journal.wrong_receipt(seq) for _ in range(3)]
        assert counts == [1, 2, 3]
        await journal.fail(seq, "wrong-receipts")
        assert journal.unsettled() == []
        assert journal.counts() == {"pending": 0, "held": 0, "retry_wait": 0, "failed": 1}
        await self.refused(journal.retry(seq, 1, "no", release=False))
        await self.refused(journal.wrong_receipt(seq + 1))

    async def test_told(self) -> None:
        """That the user was told is remembered per row."""
        journal = self.journal()
        first, _ = await self.accepted(journal, 1, 2)
        await journal.hold(first)
        await journal.told([first])
        assert [row.told for row in journal.unsettled()] == [True, False]

    async def test_callback_once(self) -> None:
        """A callback may be executed exactly once."""
        journal = self.journal()
        assert await journal.claim_callback("c") is True
        assert await journal.claim_callback("c") is False
        assert await journal.claim_callback("d") is True


class SpecsContract(StoreContract):
    """L{ISpecs}."""

    async def specs(self) -> Specs:
        """Return a store with one stopped spec C{s1}."""
        specs = Specs(self.open("leader"))
        await specs.create("s1", "app", "/home/u/app")
        return specs

    async def test_interface(self) -> None:
        """The object has the interface's methods with its signatures."""
        assert verifyObject(ISpecs, await self.specs())

    async def test_create_and_find(self) -> None:
        """A spec is stopped at first and is found by id, name and directory; both are unique."""
        specs = await self.specs()
        spec = specs.get("s1")
        assert spec is not None
        assert (spec.desired, spec.trust, spec.restart) == ("stopped", "approve", "on-failure")
        assert specs.by_name("app") == specs.by_directory("/home/u/app") == spec
        assert specs.by_name("x") is None
        await self.refused(specs.create("s2", "app", "/home/u/other"))
        await self.refused(specs.create("s2", "app2", "/home/u/app"))
        await specs.create("s0", "aaa", "/home/u/aaa")
        assert [each.name for each in specs.list()] == ["aaa", "app"]

    async def test_wish_and_session(self) -> None:
        """Start, stop and session are what was stored last; an unknown spec is an error."""
        specs = await self.specs()
        await specs.want("s1", "running", "slot-1")
        await specs.set_session("s1", "sid", "/f.jsonl", 4)
        spec = specs.get("s1")
        assert spec is not None
        assert (spec.desired, spec.slot_id) == ("running", "slot-1")
        assert (spec.session_id, spec.session_file, spec.session_entries) == ("sid", "/f.jsonl", 4)
        await specs.want("s1", "stopped", None)
        assert specs.list()[0].slot_id is None
        await self.refused(specs.want("nobody", "running", "x"))

    async def test_spawn(self) -> None:
        """A spawn goes from its intent over the process and the registration to its end."""
        specs = await self.specs()
        await specs.intend("p1", "s1", b"secret")
        spawn = specs.live_spawn("s1")
        assert spawn is not None
        assert (spawn.state, spawn.pid, spawn.credential) == ("intended", None, b"secret")
        await specs.made("p1", 10, "10:start:1")
        await specs.registered("p1", 11, "11:start:1")
        await specs.made("p1", 10, "10:start:1")
        await specs.pi_seen("p1", 12, "12:start:1")
        spawn = specs.live_spawn("s1")
        assert spawn is not None
        assert (spawn.state, spawn.pid, spawn.pi_pid) == ("registered", 11, 12)
        await specs.ended("p1", "signal 9")
        await specs.ended("p1", "later news")
        assert specs.live_spawn("s1") is None
        await self.refused(specs.registered("p1", 11, "11:start:1"))
        row = self.database.read("SELECT exit, credential FROM spawns")[0]
        assert tuple(row) == ("signal 9", b"")

    async def test_newest_spawn(self) -> None:
        """The newest spawn that has not ended counts, also within one millisecond."""
        specs = await self.specs()
        await specs.intend("p1", "s1", b"1")
        await specs.intend("p2", "s1", b"2")
        assert [each.spawn_id for each in specs.live_spawns("s1")] == ["p2", "p1"]
        await specs.ended("p2", "0")
        spawn = specs.live_spawn("s1")
        assert spawn is not None and spawn.spawn_id == "p1"

    async def test_forget(self) -> None:
        """A forgotten spec takes its spawns along."""
        specs = await self.specs()
        await specs.intend("p1", "s1", b"1")
        await specs.forget("s1")
        assert (specs.list(), specs.live_spawns("s1")) == ([], [])
        await self.refused(specs.intend("p2", "s1", b"1"))


class BindingsContract(StoreContract):
    """L{IBindings}."""

    async def bindings(self) -> Bindings:
        """Return a store with the bindings C{a} and C{b}."""
        bindings = Bindings(self.open("leader"))
        await bindings.ensure("a", "managed", "/a")
        await bindings.ensure("b", "managed", "/b")
        return bindings

    async def test_interface(self) -> None:
        """The object has the interface's methods with its signatures."""
        assert verifyObject(IBindings, await self.bindings())

    async def test_ensure(self) -> None:
        """A row is made once; a second call finds it unchanged."""
        bindings = await self.bindings()
        again = await bindings.ensure("a", "attached", "/elsewhere")
        assert (again.kind, again.directory, again.target) == ("managed", "/a", None)
        assert [each.binding_key for each in bindings.list()] == ["a", "b"]
        assert bindings.get("zzz") is None

    async def test_set_target(self) -> None:
        """A target changes only from the expected one."""
        bindings = await self.bindings()
        assert await bindings.set_target("a", 7, 70, None) is True
        assert await bindings.set_target("a", 7, 71, None) is False
        assert await bindings.set_target("a", 7, 71, (7, 70)) is True
        assert await bindings.set_target("nobody", 7, 72, None) is False
        assert bindings.by_target(7, 70) is None
        found = bindings.by_target(7, 71)
        assert found is not None and found.binding_key == "a"
        assert await bindings.clear_target("a", (7, 70)) is False
        assert await bindings.clear_target("a", (7, 71)) is True
        row = bindings.get("a")
        assert row is not None and row.target is None

    async def test_target_is_taken(self) -> None:
        """A target has one owner: the last one to whom it was given (threadless ones too)."""
        bindings = await self.bindings()
        for thread in (70, None):
            first = bindings.get("a")
            assert first is not None
            assert await bindings.set_target("a", 7, thread, None)
            second = bindings.get("b")
            assert second is not None
            old = None if second.target is None else (7, second.thread_id)
            assert await bindings.set_target("b", 7, thread, old)
            first = bindings.get("a")
            assert first is not None and first.target is None
            owner = bindings.by_target(7, thread)
            assert owner is not None and owner.binding_key == "b"

    async def test_slots(self) -> None:
        """A slot belongs to one binding; refusing it leaves nothing half done."""
        bindings = await self.bindings()
        await bindings.assign_slot("a", "A", "Amber")
        await self.refused(bindings.assign_slot("b", "A", "Amber"))
        await bindings.set_title("a", "⏳ app")
        row = bindings.get("a")
        assert row is not None
        assert (row.slot, row.thread_name, row.title) == ("A", "Amber", "⏳ app")
        await bindings.forget("a")
        await bindings.assign_slot("b", "A", "Amber")
        await self.refused(bindings.set_title("a", "x"))

    async def test_worker(self) -> None:
        """The newest registration of a binding is kept."""
        bindings = await self.bindings()
        assert bindings.last_worker("a") is None
        await bindings.record_worker("a", "w1", "managed", 5, "5:start:1", "g1", "5:1")
        await bindings.record_worker("a", "w2", "managed", 6, "6:start:1", "g2", "6:1")
        worker = bindings.last_worker("a")
        assert worker is not None
        assert (worker["worker_id"], worker["pid"], worker["generation"]) == ("w2", 6, "g2")

    async def test_provision(self) -> None:
        """The intent stands until it is ended, with the Thread or without one."""
        bindings = await self.bindings()
        await bindings.begin_provision("a", 7, "app")
        await bindings.mark_ambiguous("a")
        (intent,) = bindings.provisions()
        assert (intent["binding_key"], intent["state"]) == ("a", "ambiguous")
        await bindings.end_provision("a", 70)
        row = bindings.get("a")
        assert row is not None
        assert ((row.chat_id, row.thread_id), row.title) == ((7, 70), "app")
        assert bindings.provisions() == []
        await self.refused(bindings.end_provision("a", 71))
        await bindings.begin_provision("b", 7, "b")
        await bindings.end_provision("b", None)
        other = bindings.get("b")
        assert bindings.provisions() == [] and other is not None and other.target is None

    async def test_messages(self) -> None:
        """Whose message it is is remembered until it is forgotten by age."""
        bindings = await self.bindings()
        await bindings.remember_messages(7, [1, 2], "a", True)
        await bindings.remember_messages(7, [2], "b", False)
        assert bindings.message_owner(7, 1) == ("a", True)
        assert bindings.message_owner(7, 2) == ("b", False)
        assert bindings.message_owner(8, 1) is None
        self.clock.advance(10)
        assert await bindings.forget_messages(5000, 10) == 2
        assert bindings.message_owner(7, 1) is None


class OutboxContract(StoreContract):
    """L{IOutbox}."""

    async def outbox(self, *deliveries: tuple[str, int]) -> tuple[Outbox, list[str]]:
        """Return an outbox with deliveries C{(id, parts)} of binding C{b}, and their keys."""
        outbox = Outbox(self.open("leader"))
        for delivery_id, parts in deliveries:
            calls = [message(f"{delivery_id}{part}") for part in range(parts)]
            assert await outbox.submit("b", delivery_id, "final", "digest", calls) == "accepted"
        return outbox, [item["key"] for item in outbox.items()]

    def head(self, outbox: Outbox) -> tuple[str, str] | None:
        """Return text and state of the next part."""
        part = outbox.next_part("b")
        return None if part is None else (part.call["params"]["text"], part.state)

    async def send(self, outbox: Outbox, count: int = 1) -> None:
        """Deliver the next C{count} parts."""
        for _ in range(count):
            part = outbox.next_part("b")
            assert part is not None
            await outbox.sending(part.key, part.part)
            await outbox.delivered(part.key, part.part, [part.part + 1])

    async def test_interface(self) -> None:
        """The object has the interface's methods with its signatures."""
        outbox, _ = await self.outbox()
        assert verifyObject(IOutbox, outbox)

    async def test_order(self) -> None:
        """Parts and deliveries of one binding come in the order of their submission."""
        outbox, keys = await self.outbox(("x", 2), ("a", 1))
        seen = []
        while (head := self.head(outbox)) is not None:
            seen.append(head[0])
            await self.send(outbox)
        assert seen == ["x0", "x1", "a0"]
        assert (outbox.items(), outbox.live_bindings()) == ([], [])
        assert len(set(keys)) == 2

    async def test_submission_is_idempotent(self) -> None:
        """The same id and content finds the delivery, in whatever state; other content collides."""
        outbox, (key,) = await self.outbox(("x", 1))
        calls = [message("x0")]
        assert await outbox.submit("b", "x", "final", "digest", calls) == "accepted"
        error = await self.refused(outbox.submit("b", "x", "final", "other", calls), Refusal)
        assert isinstance(error, Refusal) and error.code == "delivery-id-collision"
        assert await outbox.submit("c", "x", "final", "other", calls) == "accepted"
        await outbox.sending(key, 0)
        await outbox.park(key, 0, "cut")
        assert await outbox.submit("b", "x", "final", "digest", calls) == "uncertain"
        assert await outbox.again(key)
        await outbox.sending(key, 0)
        await outbox.dead(key, 0, "refused")
        assert await outbox.submit("b", "x", "final", "digest", calls) == "dead-letter"
        assert await outbox.again(key)
        await self.send(outbox)
        assert await outbox.submit("b", "x", "final", "digest", calls) == "delivered"
        assert outbox.find("b", "x") == ("delivered", "digest")
        assert outbox.find("b", "y") is None

    async def test_sending_blocks(self) -> None:
        """While a part is being sent nothing else of its binding is offered, and it is sent once."""
        outbox, (key, _) = await self.outbox(("x", 2), ("y", 1))
        await outbox.sending(key, 0)
        assert outbox.next_part("b") is None
        assert outbox.live_bindings() == ["b"]
        await self.refused(outbox.sending(key, 0))
        assert outbox.counts() == {"pending": 1, "sending": 1, "uncertain": 0, "dead_letter": 0}

    async def test_retry_blocks(self) -> None:
        """A part that waits is not overtaken; it is offered with its time."""
        outbox, (key, _) = await self.outbox(("x", 2), ("y", 1))
        await outbox.sending(key, 0)
        await outbox.retry(key, 0, 4000, "flood")
        part = outbox.next_part("b")
        assert part is not None
        assert (part.part, part.state, part.next_attempt_ms) == (0, "retry_wait", 4000)
        assert (part.attempts, outbox.counts()["pending"]) == (1, 2)
        assert outbox.items()[0]["reason"] == "flood"

    async def test_uncertain_is_parked(self) -> None:
        """An uncertain part blocks nothing: neither its delivery nor the next one."""
        outbox, (key, _) = await self.outbox(("x", 3), ("y", 1))
        await self.send(outbox)
        await outbox.sending(key, 1)
        await outbox.park(key, 1, "cut")
        assert self.head(outbox) == ("x2", "pending")
        await self.send(outbox)
        assert outbox.counts() == {"pending": 1, "sending": 0, "uncertain": 1, "dead_letter": 0}
        await self.send(outbox)
        (item,) = outbox.items()
        assert (item["key"], item["state"], item["reason"]) == (key, "uncertain", "cut")
        assert outbox.next_part("b") is None

    async def test_refused_ends_the_delivery(self) -> None:
        """A refused part makes its delivery a dead letter; later deliveries go on."""
        outbox, (key, _) = await self.outbox(("x", 3), ("y", 1))
        await self.send(outbox)
        await outbox.sending(key, 1)
        await outbox.dead(key, 1, "too long")
        assert self.head(outbox) == ("y0", "pending")
        item = outbox.items()[0]
        assert (item["state"], item["reason"]) == ("dead_letter", "too long")
        assert outbox.counts()["dead_letter"] == 1

    async def test_again(self) -> None:
        """Only what did not arrive is sent again, in its old place."""
        outbox, (key, _) = await self.outbox(("x", 3), ("y", 1))
        await self.send(outbox)
        await outbox.sending(key, 1)
        await outbox.dead(key, 1, "too long")
        assert await outbox.again(key) is True
        assert await outbox.again(key) is False
        seen = []
        while (head := self.head(outbox)) is not None:
            seen.append(head[0])
            await self.send(outbox)
        assert seen == ["x1", "x2", "y0"]
        assert await outbox.again(key) is False
        assert await outbox.again("unknown") is False

    async def test_replaced_once(self) -> None:
        """A part is re-rendered once, and sent again at once."""
        outbox, (key,) = await self.outbox(("x", 1))
        await outbox.sending(key, 0)
        await outbox.replace_call(key, 0, [message("plain")])
        part = outbox.next_part("b")
        assert part is not None
        assert (part.plain, part.state, part.call) == (True, "pending", message("plain"))
        await outbox.sending(key, 0)
        await self.refused(outbox.replace_call(key, 0, [message("plainer")]))

    async def test_replaced_by_many(self) -> None:
        """One part may become several; what was behind it stays behind them."""
        outbox, (key,) = await self.outbox(("x", 3))
        await self.send(outbox)
        await outbox.sending(key, 1)
        await outbox.replace_call(key, 1, [message(f"plain{number}") for number in range(3)])
        seen = []
        while (head := self.head(outbox)) is not None:
            seen.append(head[0])
            await self.send(outbox)
        assert seen == ["plain0", "plain1", "plain2", "x2"]
        assert outbox.find("b", "x") == ("delivered", "digest")

    async def test_first_attempt(self) -> None:
        """When a part was first tried is kept over retries, until the operator asks again."""
        outbox, (key,) = await self.outbox(("x", 1))
        self.clock.advance(5)
        for _ in range(2):
            await outbox.sending(key, 0)
            await outbox.retry(key, 0, 0, "away")
            self.clock.advance(5)
        part = outbox.next_part("b")
        assert part is not None and part.first_attempt_ms == 5000
        await outbox.dead(key, 0, "expired")
        await outbox.again(key)
        part = outbox.next_part("b")
        assert part is not None and part.first_attempt_ms is None

    async def test_interrupted(self) -> None:
        """What a killed leader was sending is uncertain; nothing else changes."""
        outbox, (first, second) = await self.outbox(("x", 2), ("y", 1))
        await outbox.sending(first, 0)
        assert await outbox.interrupted() == 1
        assert await outbox.interrupted() == 0
        assert self.head(outbox) == ("x1", "pending")
        await self.send(outbox)
        states = {item["key"]: (item["state"], item["reason"]) for item in outbox.items()}
        assert states == {first: ("uncertain", "interrupted"), second: ("pending", None)}

    async def test_delivered_is_final(self) -> None:
        """A delivered part cannot be sent, parked or refused any more, and its call is gone."""
        outbox, (key,) = await self.outbox(("x", 1))
        await self.send(outbox)
        for work in (
            outbox.sending(key, 0),
            outbox.park(key, 0, "x"),
            outbox.dead(key, 0, "x"),
            outbox.delivered(key, 0, []),
            outbox.retry(key, 0, 1, "x"),
        ):
            await self.refused(work)
        row = self.database.read("SELECT call, message_ids FROM outbox_parts")[0]
        assert tuple(row) == (None, "[1]")

    async def test_tombstones(self) -> None:
        """Tombstones go when they are both old and beyond the newest ones; dead letters stay."""
        outbox, keys = await self.outbox(*((f"d{number}", 1) for number in range(6)))
        await outbox.sending(keys[0], 0)
        await outbox.dead(keys[0], 0, "refused")
        for _ in range(5):
            self.clock.advance(1)
            await self.send(outbox)
        assert await outbox.forget_delivered(4000, 3, 10) == 2
        assert await outbox.forget_delivered(10_000, 3, 10) == 0
        assert await outbox.forget_delivered(10_000, 0, 2) == 2
        assert await outbox.forget_delivered(10_000, 0, 10) == 1
        assert [item["state"] for item in outbox.items()] == ["dead_letter"]
        assert len(self.database.read("SELECT 1 FROM outbox_parts")) == 1


class CommandsContract(StoreContract):
    """L{ICommands}."""

    async def test_interface(self) -> None:
        """The object has the interface's methods with its signatures."""
        assert verifyObject(ICommands, Commands(self.open("leader")))

    async def test_life(self) -> None:
        """An id is taken once, goes over C{send_started} to one outcome, and keeps it."""
        commands = Commands(self.open("leader"))
        assert commands.find("r") is None
        assert await commands.reserve("r", "f") is True
        assert await commands.reserve("r", "g") is False
        await commands.send_started("r")
        assert commands.started() == ["r"]
        await self.refused(commands.abandon("r"))
        await commands.finish("r", "accepted", {"ok": True})
        expected = {"fingerprint": "f", "state": "accepted", "envelope": {"ok": True}}
        assert commands.find("r") == expected
        await self.refused(commands.finish("r", "rejected", {"ok": False}))
        await self.refused(commands.send_started("r"))
        assert commands.started() == []

    async def test_abandon(self) -> None:
        """A reserved id that sent nothing is free again."""
        commands = Commands(self.open("leader"))
        await commands.reserve("r", "f")
        await commands.abandon("r")
        assert await commands.reserve("r", "g") is True


class InboxContract(StoreContract):
    """L{IInbox}."""

    schema = "worker"

    async def inbox(self, *delivery_ids: str) -> Inbox:
        """Return an inbox with these deliveries, held."""
        inbox = Inbox(self.open("worker"))
        for delivery_id in delivery_ids:
            await inbox.admit(delivery_id, "telegram", "message", b"{}", f"prompt {delivery_id}")
        return inbox

    async def test_interface(self) -> None:
        """The object has the interface's methods with its signatures."""
        assert verifyObject(IInbox, await self.inbox())

    async def test_admit_once(self) -> None:
        """A known id changes nothing, whatever comes with it."""
        inbox = await self.inbox()
        first = await inbox.admit("d", "telegram", "message", b"1", None, 5, 7, 70, 9, "priority")
        second = await inbox.admit("d", "control", "message", b"2", "other")
        assert (first, second) == (True, False)
        row = inbox.row("d")
        assert row is not None
        assert (row.state, row.body, row.prompt, row.lane) == ("admitted", b"1", None, "priority")
        assert (row.update_id, row.chat_id, row.thread_id, row.message_id) == (5, 7, 70, 9)
        assert inbox.row("e") is None

    async def test_hand_only_held(self) -> None:
        """A row is handed at most once: only from C{held}, with the mark that was given."""
        inbox = await self.inbox()
        await inbox.admit("d", "telegram", "message", b"{}", None)
        (row,) = inbox.rows("admitted")
        await self.refused(inbox.hand(row.seq, "rpc", "run", "/s", 10, "e"))
        await inbox.hold(row.seq, "text")
        await inbox.hold(row.seq, "edited text")
        await inbox.hand(row.seq, "rpc", "run", "/s", 10, "e")
        await self.refused(inbox.hand(row.seq, "rpc", "run", "/s", 10, "e"))
        await self.refused(inbox.hold(row.seq, "too late"))
        (row,) = inbox.rows("handed")
        assert (row.prompt, row.rpc_id, row.run_id) == ("edited text", "rpc", "run")
        assert (row.mark_file, row.mark_size, row.mark_entry) == ("/s", 10, "e")
        await inbox.unhand(row.seq)
        (row,) = inbox.rows("held")
        assert (row.rpc_id, row.mark_file, row.mark_size) == (None, None, None)

    async def test_settle_with_answers(self) -> None:
        """Rows and answers are committed together; the answers come out in order."""
        inbox = await self.inbox("a", "b", "c")
        seqs = [row.seq for row in inbox.rows("held")]
        answers = [
            {"delivery_id": f"z{number}", "kind": "final", "delivery": {"calls": [number]}}
            for number in (2, 1)
        ]
        await inbox.settle(seqs[:2], answers)
        assert [row.delivery_id for row in inbox.rows("settled")] == ["a", "b"]
        assert [row.delivery_id for row in inbox.rows("held", "handed")] == ["c"]
        assert inbox.answers() == answers
        await inbox.forget_answer("z2")
        await inbox.add_answer("z1", "notice", {"calls": ["other"]})
        assert inbox.answers() == answers[1:]

    async def test_settle_is_one_commit(self) -> None:
        """An answer that cannot be stored leaves the rows as they were."""
        inbox = await self.inbox("a")
        (row,) = inbox.rows("held")
        bad = {"delivery_id": "z", "kind": "no such kind", "delivery": {}}
        await self.refused(inbox.settle([row.seq], [bad]))
        assert [each.state for each in inbox.rows("held")] == ["held"]
        assert inbox.answers() == []

    async def test_uncertain_and_skip(self) -> None:
        """An uncertain row keeps its prompt; what is over stays over."""
        inbox = await self.inbox("a", "b")
        first, second = inbox.rows("held")
        notice = {"delivery_id": "n", "kind": "notice", "delivery": {"calls": []}}
        await inbox.hand(first.seq, "rpc", "run", None, 0, None)
        await inbox.uncertain([first.seq], [notice])
        await inbox.skip([second.seq])
        (row,) = inbox.rows("uncertain")
        assert (row.prompt, inbox.answers()) == ("prompt a", [notice])
        await inbox.settle([second.seq])
        assert [each.delivery_id for each in inbox.rows("skipped")] == ["b"]
        await inbox.settle([first.seq])
        assert [each.prompt for each in inbox.rows("settled")] == [None]

    async def test_retention(self) -> None:
        """Confirmed ids stay 48 h, prompts of the control socket and the ledger 8 days."""
        inbox = await self.inbox("a", "b")
        await inbox.admit("r", "control", "prompt", b"{}", "text")
        await inbox.ledger_start("q", "f")
        await inbox.settle([row.seq for row in inbox.rows("held")[1:]])
        await inbox.confirm(["a", "b"])
        hour = 3600
        self.clock.advance(47 * hour)
        assert await inbox.forget(self.database.now_ms()) == 0
        self.clock.advance(2 * hour)
        assert await inbox.forget(self.database.now_ms()) == 1
        assert inbox.row("b") is None
        self.clock.advance(8 * 24 * hour)
        assert await inbox.forget(self.database.now_ms()) == 2
        assert (inbox.row("r"), inbox.ledger("q")) == (None, None)
        assert [row.delivery_id for row in inbox.rows("held")] == ["a"]

    async def test_ledger(self) -> None:
        """A control request is started once and keeps its result."""
        inbox = await self.inbox()
        await inbox.ledger_start("q", "f")
        await self.refused(inbox.ledger_start("q", "g"))
        expected = {"fingerprint": "f", "state": "started", "result": None}
        assert inbox.ledger("q") == expected
        await inbox.ledger_finish("q", {"ok": True})
        expected = {"fingerprint": "f", "state": "finished", "result": {"ok": True}}
        assert inbox.ledger("q") == expected

    async def test_meta(self) -> None:
        """A fact is there after it was stored."""
        inbox = await self.inbox()
        assert inbox.get_meta("session") is None
        await inbox.set_meta("session", "s")
        assert inbox.get_meta("session") == "s"

    async def test_unknown_state(self) -> None:
        """Asking for rows in a state that does not exist is a mistake of the caller."""
        inbox = await self.inbox()
        try:
            inbox.rows("held'; DROP TABLE inbox; --")
        except ValueError:
            return
        raise AssertionError("no error")
