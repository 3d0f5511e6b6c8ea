"""What every inbox must do; see L{pitelegram.testing.contracts_store}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from pitelegram.store.inbox import Inbox
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.testing.contracts_store import StoreContract


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

    async def test_group(self) -> None:
        """Several messages make one prompt: they are handed and settled as the first of them."""
        inbox = await self.inbox()
        for number, name in enumerate("abc"):
            await inbox.admit(name, "telegram", "message", b"{}", None, number, 7, None, number)
        first, second, third = (row.seq for row in inbox.rows("admitted"))
        await inbox.hold_group([first, second, third], "a b c", {"images": [1]})
        (row,) = inbox.rows("held")
        assert (row.prompt, row.content) == ("a b c", {"images": [1]})
        assert [each.delivery_id for each in inbox.members(first)] == ["b", "c"]
        assert [each.head for each in inbox.rows("joined")] == [first, first]
        found = inbox.by_message(7, 2)
        assert found is not None and (found.seq, found.head) == (third, first)
        await inbox.change_body(third, b"new")
        await inbox.hold_group([first, second, third], "a b new", {})
        await inbox.hand(first, "rpc", "run", None, 0, None)
        await self.refused(inbox.change_body(first, b"too late"))
        await self.refused(inbox.hold_group([first, second], "too late", {}))
        await inbox.settle([first])
        assert [each.delivery_id for each in inbox.rows("settled")] == ["a", "b", "c"]
        assert inbox.rows("joined") == []

    async def test_group_is_one_commit(self) -> None:
        """A group with a row that cannot join changes nothing."""
        inbox = await self.inbox("a", "b", "c")
        first, second, third = (row.seq for row in inbox.rows("held"))
        await inbox.settle([third])
        await self.refused(inbox.hold_group([first, second, third], "all", {}))
        assert [row.prompt for row in inbox.rows("held")] == ["prompt a", "prompt b"]

    async def test_move_and_mark(self) -> None:
        """A moved row goes to its lane's end and stays before whatever comes later."""
        inbox = await self.inbox("a", "b", "c")
        first, second, third = (row.seq for row in inbox.rows("held"))

        def order() -> list[str]:
            rows = sorted(inbox.rows("held"), key=lambda row: row.order)
            return [row.delivery_id for row in rows]

        assert order() == ["a", "b", "c"]
        await inbox.move(first, "priority")
        await inbox.move(first, "normal")
        await inbox.admit("d", "telegram", "message", b"{}", "prompt d")
        assert order() == ["b", "c", "a", "d"]
        await inbox.move(second, "normal")
        assert order() == ["c", "a", "d", "b"]
        await inbox.mark(third, True)
        assert [row.delivery_id for row in inbox.rows("held") if row.skip] == ["c"]
        await inbox.mark(third, False)
        assert not any(row.skip for row in inbox.rows("held"))
        await inbox.hand(third, "rpc", "run", None, 0, None)
        await self.refused(inbox.move(third, "normal"))
        await self.refused(inbox.mark(third, True))

    async def test_group_inherits(self) -> None:
        """What was asked for one message while they were being gathered holds for the prompt."""
        inbox = await self.inbox()
        for number, name in enumerate("abcdefg"):
            await inbox.admit(name, "telegram", "message", b"{}", None, number, 7, None, number)
        rows = [row.seq for row in inbox.rows("admitted")]
        first, second, third, fourth, *both = rows
        await inbox.move(both[1], "priority")
        await inbox.mark(both[2], True)
        await inbox.hold_group(both, "e f g", {})
        (group,) = inbox.rows("held")
        assert (group.seq, group.lane, group.skip) == (both[0], "priority", True)
        await inbox.settle([group.seq])
        await inbox.move(second, "priority")
        await inbox.hold_group([first, second], "a b", {})
        await inbox.mark(fourth, True)
        await inbox.hold_group([third, fourth], "c d", {})
        held = {row.seq: (row.lane, row.skip) for row in inbox.rows("held")}
        assert held == {first: ("priority", False), third: ("normal", True)}
        await inbox.move(first, "normal")
        await inbox.mark(third, False)
        await inbox.hold_group([first, second], "a b, edited", {})
        await inbox.hold_group([third, fourth], "c d, edited", {})
        held = {row.seq: (row.lane, row.skip) for row in inbox.rows("held")}
        assert held == {first: ("normal", False), third: ("normal", False)}

    async def test_turns(self) -> None:
        """Held rows by lane and place, without those that an edit or a reaction is about."""
        inbox = await self.inbox()
        kinds = ("message", "edited_message", "message_reaction", "message_reaction", "message")
        for number, kind in enumerate(kinds):
            await inbox.admit(f"d{number}", "telegram", kind, b"{}", None, number, 7, None, number)
        await inbox.admit("e", "telegram", "message_reaction", b"{}", None, 9, None, None, None)
        for number in (2, 3, 5):
            await inbox.admit(f"p{number}", "telegram", "message", b"{}", "p", 9, 7, None, number)
        await inbox.admit("other", "telegram", "message", b"{}", "p", 9, 8, None, 2)
        await inbox.admit("shown", "telegram", "callback_query", b"{}", "p", 9, 7, None, 3)
        await inbox.admit("desk", "control", "message", b"{}", "p", lane="priority")
        await inbox.admit("next", "control", "message", b"{}", "p", lane="control")
        names = {row.seq: row.delivery_id for row in inbox.rows("held")}
        seqs = {name: seq for seq, name in names.items()}

        def turns(lane: str | None = None) -> list[str]:
            return [names[turn.seq] for turn in inbox.turns(lane)]

        assert turns() == ["next", "desk", "p5", "other", "shown"]
        assert turns("priority") == ["desk"]
        await inbox.move(seqs["p5"], "priority")
        assert turns("priority") == ["desk", "p5"]
        assert [turn.lane for turn in inbox.turns()] == [
            "control",
            *["priority"] * 2,
            *["normal"] * 2,
        ]
        rows = {row.seq: row.order for row in inbox.rows("held")}
        assert all(turn.place == rows[turn.seq] for turn in inbox.turns())
        await inbox.hold_group([seqs["p5"], seqs["p3"]], "both", {})
        assert turns() == ["next", "desk", "other", "shown"]
        await inbox.settle([row.seq for row in inbox.rows("admitted")])
        assert turns() == ["next", "desk", "p5", "p2", "other", "shown"]

    async def test_single_rows(self) -> None:
        """What waits is found by its number, and by its message while it is held."""
        inbox = await self.inbox()
        await inbox.admit("a", "telegram", "message", b"{}", None, 1, 7, None, 70)
        await inbox.admit("b", "again", "message", b"{}", "p", 2, 7, None, 70, "priority")
        await inbox.admit("c", "telegram", "message", b"{}", "p", 3, 7, None, 71)
        first, second, third = (row.seq for row in inbox.rows("admitted", "held"))
        assert inbox.waiting(first) == inbox.row("a")
        assert inbox.waiting(second) == inbox.row("b") == inbox.held_at(7, 70)
        assert inbox.held() == 2
        await inbox.skip([second])
        assert inbox.waiting(second) is None is inbox.held_at(7, 70)
        assert inbox.waiting(third + 1) is None
        assert inbox.held() == 1

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
