"""What every L{IWorkerControlPort<pitelegram.pi.port.IWorkerControlPort>} must do."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from twisted.internet.defer import Deferred
from zope.interface.verify import verifyObject

from pitelegram.errors import Refusal
from pitelegram.kernel.deferring import deferred
from pitelegram.pi.port import IWorkerControlPort

BUS_LACKS = ("fork", "clone")


class PortContract:
    """Mixed into a trial C{TestCase} that has a port.

    @cvar over_bus: what the wire does not offer is C{unsupported}.
    """

    over_bus = False

    def make_port(self) -> Awaitable[Any]:
        """Return a port whose Pi is ready and idle, with one finished turn."""
        raise NotImplementedError

    def a_session(self) -> str:
        """The file of another session, which may be switched to."""
        raise NotImplementedError

    def an_entry(self) -> Awaitable[str]:
        """The id of a user entry of the current session."""
        raise NotImplementedError

    def ask(self) -> str:
        """Have an extension ask a C{confirm}; its reference."""
        raise NotImplementedError

    def refuse_next(self, kind: str) -> None:
        """Have an extension say no to the next command of that kind."""
        raise NotImplementedError

    def done(self, work: Deferred[Any]) -> Awaitable[Any]:
        """Let time pass until C{work} is done."""
        return work

    async def code(self, work: Deferred[Any]) -> str:
        """The code with which something is refused."""
        try:
            result = await self.done(work)
        except Refusal as refusal:
            return refusal.code
        raise AssertionError(f"it was not refused: {result}")

    @deferred
    async def test_interface(self: Any) -> None:
        """It is what it says."""
        self.assertTrue(verifyObject(IWorkerControlPort, await self.make_port()))

    @deferred
    async def test_messages(self: Any) -> None:
        """Prompt, steering and follow-up are queued once per request id."""
        port = await self.make_port()
        for kind in ("prompt", "steer", "follow_up"):
            send = getattr(port, kind)
            first = await self.done(send(kind, "hello"))
            self.assertIsInstance(first["deliveryId"], str)
            self.assertEqual(await self.done(send(kind, "hello")), first)
            self.assertEqual(await self.code(send(kind, "other")), "request-id-collision")
            self.assertEqual(await self.code(port.abort(kind)), "request-id-collision")

    @deferred
    async def test_messages_that_are_none(self: Any) -> None:
        """Empty ones, slash commands and too long ones are refused; the longest passes."""
        port = await self.make_port()
        for kind in ("prompt", "steer", "follow_up"):
            send = getattr(port, kind)
            for message in ("", " \n", "/new", "  /compact now"):
                self.assertEqual(await self.code(send("x", message)), "invalid-command")
            self.assertEqual(await self.code(send("x", "y" * 200_001)), "command-too-large")
        await self.done(port.prompt("longest", "y" * 200_000))

    @deferred
    async def test_idle(self: Any) -> None:
        """With nothing running there is nothing to end and nothing to clear."""
        port = await self.make_port()
        self.assertEqual(await self.done(port.abort("a")), {"aborted": False})
        self.assertEqual(await self.done(port.abort("a")), {"aborted": False})
        self.assertEqual(await self.done(port.clear_queue("c")), {"cleared": 0})
        self.assertEqual(await self.code(port.clear_queue("a")), "request-id-collision")

    @deferred
    async def test_model(self: Any) -> None:
        """A model that exists is set; one that does not, or is not named, is refused."""
        port = await self.make_port()
        right = {"provider": "scripted", "modelId": "scripted"}
        self.assertEqual(await self.done(port.set_model("m", "scripted", "scripted")), right)
        self.assertEqual(await self.done(port.set_model("m", "scripted", "scripted")), right)
        self.assertEqual(await self.code(port.set_model("n", "nobody", "x")), "execution-failed")
        self.assertEqual(await self.code(port.set_model("n", "nobody", "x")), "execution-failed")
        self.assertEqual(await self.code(port.set_model("o", "", "x")), "invalid-command")

    @deferred
    async def test_thinking_level(self: Any) -> None:
        """Only a level that exists gets to Pi, which would take any other for none."""
        port = await self.make_port()
        self.assertEqual(await self.done(port.set_thinking_level("t", "off")), {"level": "off"})
        self.assertEqual(await self.code(port.set_thinking_level("u", "bogus")), "invalid-command")

    @deferred
    async def test_sessions(self: Any) -> None:
        """A new session, and another one by its file; both are remembered by their request."""
        port = await self.make_port()
        first = await self.done(port.new_session("n"))
        self.assertTrue(first["sessionId"])
        self.assertEqual(await self.done(port.new_session("n")), first)
        self.assertNotEqual(await self.done(port.new_session("o")), first)
        path = self.a_session()
        switched = await self.done(port.switch_session("s", path))
        self.assertEqual(switched, await self.done(port.switch_session("s", path)))
        for wrong in ("a.jsonl", "/etc/passwd", f"{path}.gone"):
            self.assertEqual(await self.code(port.switch_session(wrong, wrong)), "invalid-command")

    @deferred
    async def test_branches(self: Any) -> None:
        """A fork and a clone are sessions of their own, where they can be had."""
        port = await self.make_port()
        if self.over_bus:
            self.assertEqual(await self.code(port.fork("f", "e1")), "unsupported")
            self.assertEqual(await self.code(port.clone("c")), "unsupported")
            return
        cloned = await self.done(port.clone("c"))
        self.assertTrue(cloned["sessionId"])
        self.assertEqual(await self.done(port.clone("c")), cloned)
        forked = await self.done(port.fork("f", await self.an_entry()))
        self.assertNotEqual(forked["sessionId"], cloned["sessionId"])

    @deferred
    async def test_cancelled(self: Any) -> None:
        """What an extension says no to is C{cancelled}, not done."""
        port = await self.make_port()
        self.refuse_next("new_session")
        self.assertEqual(await self.code(port.new_session("n")), "cancelled")
        self.assertEqual(await self.code(port.new_session("n")), "cancelled")

    @deferred
    async def test_dialog(self: Any) -> None:
        """An open dialog takes one answer of the right form."""
        port = await self.make_port()
        ref = self.ask()
        state = await self.done(port.get_state())
        self.assertEqual([each["dialogRef"] for each in state["dialogs"]], [ref])
        both = {"confirmed": True, "cancelled": True}
        self.assertEqual(await self.code(port.answer("x", ref, both)), "invalid-command")
        self.assertEqual(await self.code(port.answer("y", ref, {})), "invalid-command")
        self.assertEqual(await self.done(port.answer("a", ref, {"confirmed": True})), {})
        self.assertEqual(await self.done(port.answer("a", ref, {"confirmed": True})), {})
        late = port.answer("b", ref, {"confirmed": False})
        self.assertEqual(await self.code(late), "execution-failed")

    @deferred
    async def test_state(self: Any) -> None:
        """The state is asked anew each time."""
        port = await self.make_port()
        before = await self.done(port.get_state())
        self.assertEqual((before["activity"], before["streaming"]), ("idle", False))
        await self.done(port.new_session("n"))
        after = await self.done(port.get_state())
        self.assertNotEqual(after["sessionId"], before["sessionId"])
