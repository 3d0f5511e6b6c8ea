"""What every store of choosers must do; see L{pitelegram.testing.contracts_store}."""

from __future__ import annotations

from pitelegram.store.attachments import Attachments
from pitelegram.store.bindings import Bindings
from pitelegram.store.choosers import BOUND, HOME, MAKING, WAITING, Chooser, Choosers
from pitelegram.store.journal import Journal
from pitelegram.testing.contracts_store import StoreContract, incoming

CHAT, THREAD = 1, 99


def a_chooser(**changes: object) -> Chooser:
    """Return a chooser about an unknown Thread."""
    values: dict[str, object] = {
        "chooser_id": "c1",
        "place": f"{CHAT}:{THREAD}",
        "kind": "thread",
        "chat_id": CHAT,
        "thread_id": THREAD,
        "source_seq": 1,
    }
    return Chooser(**{**values, **changes})  # type: ignore[arg-type]


class ChoosersContract(StoreContract):
    """L{Choosers}."""

    async def ready(self, *update_ids: int) -> tuple[Choosers, list[int]]:
        """Return the store with a chooser that is C{sent}, and as many waiting updates."""
        self.base = self.open("leader")
        self.journal, self.bindings = Journal(self.base), Bindings(self.base)
        choosers = Choosers(self.base)
        updates = [incoming(each, chat_id=CHAT, thread_id=THREAD) for each in update_ids]
        rows = await self.journal.accept(1, updates, 1000)
        await choosers.open(a_chooser())
        await choosers.sent("c1", 500)
        return choosers, [row.seq for row in rows]

    async def test_open_and_sent(self) -> None:
        """A place is asked about once; the message's id comes when it is known."""
        choosers = Choosers(self.open("leader"))
        chooser = a_chooser(kind="command", command="/start", expires_ms=5, thread_id=None)
        await choosers.open(chooser)
        assert choosers.all() == [chooser]
        await self.refused(choosers.open(a_chooser(chooser_id="c2")))
        await choosers.sent("c1", 500)
        await self.refused(choosers.sent("c1", 501))
        assert [(c.state, c.message_id) for c in choosers.all()] == [("sent", 500)]
        await choosers.unsent("c1")
        assert [(c.state, c.message_id) for c in choosers.all()] == [("open", None)]

    async def test_choose(self) -> None:
        """The choice and the pins of what is deferred are one commit; a second choice is refused."""
        choosers, seqs = await self.ready(5, 6, 7)
        await self.journal.pin(seqs[1], "spec-b", "d-b")
        pins = [(seq, f"d{seq}") for seq in seqs]
        assert await choosers.choose("c1", "forward", "spec-a", None, pins) == [seqs[0], seqs[2]]
        assert choosers.rows("c1") == [seqs[0], seqs[2]]
        rows = {row.seq: row for row in self.journal.unsettled()}
        assert [rows[seq].recipient for seq in seqs] == ["spec-a", "spec-b", "spec-a"]
        assert (rows[seqs[0]].state, rows[seqs[0]].delivery_id) == ("forwarding", f"d{seqs[0]}")
        await self.refused(choosers.choose("c1", "forward", "spec-b", None, pins))
        assert choosers.remaining("c1") == (2, 0)
        await self.journal.settle([seqs[0]])
        await self.journal.fail(seqs[2], "no")
        assert choosers.remaining("c1") == (0, 1)

    async def test_nothing_to_choose_for(self) -> None:
        """A choice for nothing changes nothing, and neither does one in a Thread with an owner."""
        choosers, seqs = await self.ready(5)
        await self.refused(choosers.choose("c1", "forward", "spec-a", None, []))
        await self.bindings.ensure("spec-b", "managed", "/b")
        await self.bindings.set_target("spec-b", CHAT, THREAD, None)
        pins = [(seqs[0], "d")]
        await self.refused(choosers.choose("c1", "forward", "spec-a", None, pins))
        assert [c.state for c in choosers.all()] == ["sent"]
        assert self.journal.unsettled()[0].recipient is None

    async def test_put_back(self) -> None:
        """A choice that was not carried out leaves no pin."""
        choosers, seqs = await self.ready(5)
        await choosers.choose("c1", "restore", "spec-a", 11, [(seqs[0], "d")])
        assert choosers.all()[0].old_thread_id == 11
        await choosers.put_back("c1")
        (row,) = self.journal.unsettled()
        assert (row.state, row.recipient, choosers.rows("c1")) == ("held", None, [])
        assert (choosers.all()[0].state, choosers.all()[0].recipient) == ("sent", None)

    async def test_reopen(self) -> None:
        """It is asked again from the state that was meant only; a message that is gone stays so."""
        choosers, seqs = await self.ready(5, 6)
        await self.refused(choosers.reopen("c1", "dispatching"))
        await choosers.choose("c1", "forward", "spec-a", None, [(seqs[0], "d")])
        await choosers.returned("c1", seqs[0])
        assert choosers.remaining("c1") == (0, 0)
        await choosers.reopen("c1", "dispatching")
        assert [(c.state, c.message_id, c.choice) for c in choosers.all()] == [("sent", 500, None)]

    async def test_end(self) -> None:
        """Exactly the deferred ones of the named updates settle."""
        choosers, seqs = await self.ready(5, 6, 7)
        await self.journal.pin(seqs[1], "spec-b", "d-b")
        await choosers.end("c1", seqs[:2])
        assert [row.seq for row in self.journal.unsettled()] == seqs[1:]
        assert choosers.all() == []
        await choosers.end(None, seqs[2:])
        assert [row.seq for row in self.journal.unsettled()] == [seqs[1]]

    async def test_claim(self) -> None:
        """Each reason against a deletion is found, the most lasting first."""
        choosers, seqs = await self.ready(5)
        await self.refused(choosers.claim("c1", CHAT, THREAD))
        await choosers.choose("c1", "forward", "spec-a", None, [(seqs[0], "d")])
        await choosers.handed("c1")
        await self.bindings.ensure("spec-b", "managed", "/b")
        await self.bindings.begin_provision("spec-b", CHAT, "b")
        assert await choosers.claim("c1", CHAT, THREAD) == WAITING
        await self.journal.settle(seqs)
        assert await choosers.claim("c1", CHAT, THREAD) == MAKING
        await Attachments(self.base).remember("spec-b", CHAT, THREAD)
        assert await choosers.claim("c1", CHAT, THREAD) == HOME
        await self.bindings.set_target("spec-b", CHAT, THREAD, None)
        assert await choosers.claim("c1", CHAT, THREAD) == BOUND
        await self.bindings.forget("spec-b")
        await Attachments(self.base).forget("spec-b")
        assert await choosers.claim("c1", CHAT, THREAD) is None
