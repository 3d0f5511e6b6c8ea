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
        await outgoing.attach(file)
        await outgoing.attach(file)
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
        """The second press is told from the first; an unknown button is neither."""
        outgoing, _ = self.both()
        await outgoing.add_buttons([a_button()])
        assert await outgoing.pressed("0123abcd")
        assert not await outgoing.pressed("0123abcd")
        assert not await outgoing.pressed("ffffffff")
        found = outgoing.button("0123abcd")
        assert found is not None and found.pressed

    async def test_a_button_lives_a_day(self) -> None:
        """An old button is not known, and forgotten."""
        outgoing, _ = self.both()
        await outgoing.add_buttons([a_button()])
        self.clock.advance(BUTTONS_KEPT_MS / 1000 - 1)
        assert outgoing.button("0123abcd") is not None
        self.clock.advance(2)
        assert outgoing.button("0123abcd") is None
        assert await outgoing.forget(int(self.clock.seconds() * 1000)) == 1
