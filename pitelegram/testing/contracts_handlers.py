"""What every L{IInboundHandlers<pitelegram.bridge.interfaces.IInboundHandlers>} must do."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError
from zope.interface.verify import verifyObject

from pitelegram.bridge.interfaces import IInboundHandlers, Processed
from pitelegram.kernel.deferring import deferred
from pitelegram.testing.handlers import file_item


class InboundHandlersContract:
    """Mixed into a trial C{TestCase} that makes them."""

    def make_silent(self) -> Any:
        """Return handlers of which none matches anything."""
        raise NotImplementedError

    def make_answering(self, output: str) -> Any:
        """Return handlers that give C{output} for each document."""
        raise NotImplementedError

    def make_replacing(self, text: str) -> Any:
        """Return handlers that replace the prompt's text by C{text}."""
        raise NotImplementedError

    def make_failing(self) -> Any:
        """Return handlers whose only program for documents fails."""
        raise NotImplementedError

    def make_hanging(self) -> Any:
        """Return handlers whose program for documents does not end by itself."""
        raise NotImplementedError

    def test_interface(self: Any) -> None:
        """They provide what the interface says."""
        self.assertTrue(verifyObject(IInboundHandlers, self.make_silent()))

    @deferred
    async def test_nothing_matches(self: Any) -> None:
        """Without a match the text stays and nothing is added."""
        self.assertEqual(await self.make_silent().process("hello", [file_item()]), Processed())

    @deferred
    async def test_takes_text(self: Any) -> None:
        """What replaces a text says so before; what was asked once and has nothing does not."""
        self.assertTrue(self.make_replacing("x").takes_text())
        silent = self.make_silent()
        await silent.process("hello", [])
        self.assertFalse(silent.takes_text())

    @deferred
    async def test_no_files(self: Any) -> None:
        """A message of text alone is no special case."""
        self.assertEqual(await self.make_silent().process("hello", []), Processed())

    @deferred
    async def test_output(self: Any) -> None:
        """Each file's output is given, in the order of the files."""
        handlers = self.make_answering("seen")
        files = [file_item(), file_item(path="/tmp/b.bin"), file_item("photo", path="/tmp/c.jpg")]
        result = await handlers.process("hello", files)
        handled = ("/tmp/a.bin", "/tmp/b.bin")
        self.assertEqual(result, Processed(outputs=("seen", "seen"), handled=handled))

    @deferred
    async def test_replaced_text(self: Any) -> None:
        """A handler of text replaces it."""
        result = await self.make_replacing("hallo").process("hello", [])
        self.assertEqual(result, Processed(text="hallo"))

    @deferred
    async def test_failure(self: Any) -> None:
        """A program that fails is a notice, not a failure; neither path nor text are in it."""
        result = await self.make_failing().process("secret words", [file_item()])
        self.assertEqual((result.text, result.outputs, len(result.notices)), (None, (), 1))
        self.assertNotIn("/tmp", result.notices[0])
        self.assertNotIn("secret", result.notices[0])

    @deferred
    async def test_cancelled(self: Any) -> None:
        """Cancelling ends the call."""
        running = self.make_hanging().process("hello", [file_item()])
        self.assertNoResult(running)
        running.cancel()
        with self.assertRaises(CancelledError):
            await running
