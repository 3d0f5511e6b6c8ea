"""What every journal must do; see L{pitelegram.testing.contracts_store}."""

from __future__ import annotations

import attrs
from zope.interface.verify import verifyObject

from pitelegram.store.interfaces import IJournal
from pitelegram.store.journal import Journal
from pitelegram.testing.contracts_store import StoreContract, incoming


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

    async def test_cursor_of_a_refused_batch(self) -> None:
        """A batch that cannot be stored leaves rows and cursor as they were."""
        journal = self.journal()
        await journal.accept(1, [incoming(5)], 6)
        broken = attrs.evolve(incoming(7), kind=None)
        await self.refused(journal.accept(1, [incoming(6), broken], 8))
        assert journal.cursor(1) == 6
        assert [row.update_id for row in journal.unsettled()] == [5]

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
