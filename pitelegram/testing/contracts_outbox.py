"""What every outbox must do; see L{pitelegram.testing.contracts_store}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from pitelegram.errors import Refusal
from pitelegram.store.interfaces import IOutbox
from pitelegram.store.outbox import Outbox
from pitelegram.testing.contracts_store import StoreContract, message


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

    async def test_replaced_form_by_form(self) -> None:
        """A call that names its next form can be replaced again, and the last form cannot."""
        outbox, (key,) = await self.outbox(("x", 1))
        await outbox.sending(key, 0)
        second = {**message("entities"), "otherwise": [message("plain")]}
        await outbox.replace_call(key, 0, [second])
        await outbox.replace_call(key, 0, [message("plain")])
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

    async def test_unsent(self) -> None:
        """A part that did not get as far as being sent has had an attempt when it waits again."""
        outbox, (key,) = await self.outbox(("x", 1))
        self.clock.advance(5)
        await outbox.retry(key, 0, 6000, "away")
        self.clock.advance(5)
        await outbox.sending(key, 0)
        await outbox.retry(key, 0, 12000, "away")
        part = outbox.next_part("b")
        assert part is not None
        self.assertEqual((part.attempts, part.first_attempt_ms), (2, 5000))

    async def test_hold(self) -> None:
        """What is held back is shown, blocks nothing, and is never sent, whoever asks."""
        outbox, _ = await self.outbox()
        call = {"method": "sendMessage", "params": {}}
        state = await outbox.submit(
            "b", "held", "final", "digest", [call, call], "known-incomplete"
        )
        self.assertEqual(state, "accepted")
        (item,) = outbox.items()
        self.assertEqual((item["state"], item["reason"]), ("hold", "known-incomplete"))
        self.assertEqual(outbox.live_bindings(), [])
        self.assertIs(await outbox.again(item["key"]), False)
        self.assertEqual(await outbox.interrupted(), 0)
        self.assertEqual(sum(outbox.counts().values()), 0)
        await outbox.submit("b", "next", "final", "digest", [call])
        part = outbox.next_part("b")
        assert part is not None
        self.assertNotEqual(part.key, item["key"])
        again = await outbox.submit("b", "held", "final", "digest", [call, call])
        self.assertEqual((again, outbox.state_of(item["key"])), ("accepted", "hold"))

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
