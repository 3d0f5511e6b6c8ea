"""The contract of what a worker has not rendered yet."""

from __future__ import annotations

from typing import Any

from zope.interface.verify import verifyObject

from pitelegram.errors import StoreError
from pitelegram.store.inbox import Inbox
from pitelegram.store.outgoing import BUTTONS_KEPT_MS, Outgoing
from pitelegram.store.rows import AttachedFile, ButtonRow
from pitelegram.store.worker_interfaces import IOutgoing

KEYBOARD = [[{"text": "Yes", "callback_data": "tgbtn:0123abcd"}]]


def an_answer(delivery_id: str, kind: str = "raw") -> dict[str, Any]:
    """Return an answer for the store."""
    return {"delivery_id": delivery_id, "kind": kind, "delivery": {"text": delivery_id}}


def a_button(key: str = "0123abcd") -> ButtonRow:
    """Return a button."""
    return ButtonRow(key=key, label="Yes", prompt="go on", style="success", keyboard=KEYBOARD)


class OutgoingContract:
    """To be mixed with a test case that has C{open} and C{clock}."""

    open: Any
    clock: Any

    def both(self) -> tuple[Outgoing, Inbox]:
        """Return both views of one store."""
        database = self.open("worker")
        return Outgoing(database), Inbox(database)

    async def test_interface(self) -> None:
        """The implementation provides what is promised."""
        assert verifyObject(IOutgoing, self.both()[0])

    async def test_composed_takes_the_place(self) -> None:
        """Deliveries stand where the raw answer stood, buttons with them, files gone."""
        outgoing, inbox = self.both()
        await inbox.settle([], [an_answer("first", "notice"), an_answer("words")])
        await inbox.add_answer("last", "notice", {})
        file = AttachedFile(path="/copy", name="a.txt", mime="text/plain", size=1, caption="c")
        await outgoing.attach([file, file])
        raw = outgoing.raw()
        assert raw is not None and raw["delivery"] == {"text": "words"}
        [one, two] = outgoing.attached()
        assert (one.path, one.name, one.mime, one.size, one.caption) == (
            file.path,
            file.name,
            file.mime,
            file.size,
            file.caption,
        )
        made = [an_answer("words", "final"), an_answer("words.2", "final")]
        await outgoing.composed("words", made, [a_button()], [one.seq])
        order = [each["delivery_id"] for each in inbox.answers()]
        assert order == ["first", "words", "words.2", "last"]
        assert outgoing.raw() is None
        assert [each.seq for each in outgoing.attached()] == [two.seq]
        found = outgoing.button("0123abcd")
        assert found is not None and (found.prompt, found.keyboard) == ("go on", KEYBOARD)

    async def test_composed_once(self) -> None:
        """What is no raw answer stays as it is, and no button is left behind."""
        outgoing, inbox = self.both()
        await inbox.add_answer("done", "final", {"text": "kept"})
        try:
            await outgoing.composed("done", [an_answer("other", "final")], [a_button()])
        except StoreError:
            pass
        else:
            raise AssertionError("it was taken")
        assert [each["delivery_id"] for each in inbox.answers()] == ["done"]
        assert outgoing.button("0123abcd") is None

    async def test_one_press(self) -> None:
        """The first press becomes a prompt with its mark; the second changes nothing."""
        outgoing, inbox = self.both()
        await outgoing.add_buttons([a_button()])
        for name in ("first", "second"):
            await inbox.admit(name, "telegram", "callback_query", b"{}", None, lane="control")
        first, second = inbox.rows("admitted")
        assert await outgoing.press("0123abcd", first.seq, "go on", {"summary": "Yes"})
        assert not await outgoing.press("0123abcd", second.seq, "go on", {})
        assert not await outgoing.press("ffffffff", second.seq, "go on", {})
        (held,) = inbox.rows("held")
        told = held.seq, held.prompt, held.lane, held.content
        assert told == (first.seq, "go on", "priority", {"summary": "Yes"})
        assert [row.seq for row in inbox.rows("admitted")] == [second.seq]
        found = outgoing.button("0123abcd")
        assert found is not None and found.pressed

    async def test_press_that_is_over(self) -> None:
        """A press that became something else, or nothing, does not use up the button."""
        outgoing, inbox = self.both()
        await outgoing.add_buttons([a_button()])
        await inbox.admit("over", "telegram", "callback_query", b"{}", None)
        (row,) = inbox.rows("admitted")
        await inbox.settle([row.seq])
        for seq in (row.seq, row.seq + 1):
            try:
                await outgoing.press("0123abcd", seq, "go on", {})
            except StoreError:
                pass
            else:
                raise AssertionError("it was taken")
        found = outgoing.button("0123abcd")
        assert found is not None and not found.pressed
        assert inbox.rows("held") == []

    async def test_a_button_lives_a_day(self) -> None:
        """An old button is not known, and forgotten."""
        outgoing, _ = self.both()
        await outgoing.add_buttons([a_button()])
        self.clock.advance(BUTTONS_KEPT_MS / 1000 - 1)
        assert outgoing.button("0123abcd") is not None
        self.clock.advance(2)
        assert outgoing.button("0123abcd") is None
        assert await outgoing.forget(int(self.clock.seconds() * 1000)) == 1
