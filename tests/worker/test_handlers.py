"""The operator's own programs for what comes in."""

from twisted.trial.unittest import TestCase

from pitelegram.bridge.interfaces import Processed
from pitelegram.testing.contracts_handlers import InboundHandlersContract
from pitelegram.testing.handlers import FakeInboundHandlers, file_item


class FakeTests(InboundHandlersContract, TestCase):
    """The fake keeps the contract."""

    def make_silent(self):
        """See the contract."""
        return FakeInboundHandlers()

    def make_answering(self, output):
        """See the contract."""
        return FakeInboundHandlers(lambda _, files: Processed(outputs=(output,) * len(files)))

    def make_replacing(self, text):
        """See the contract."""
        return FakeInboundHandlers(lambda *_: Processed(text=text))

    def make_failing(self):
        """See the contract."""
        return FakeInboundHandlers(lambda *_: Processed(notices=("a handler failed",)))

    def make_hanging(self):
        """See the contract."""
        handlers = FakeInboundHandlers()
        handlers.paused = True
        return handlers

    def test_paused(self):
        """Calls wait while it is paused, and are remembered; a cancelled one is counted."""
        handlers = FakeInboundHandlers(lambda text, _: Processed(text=text.upper()))
        handlers.paused = True
        item = file_item("voice")
        first, second = handlers.process("a", [item]), handlers.process("b", [])
        second.cancel()
        self.failureResultOf(second)
        self.assertEqual((handlers.waiting, handlers.cancelled), (1, 1))
        handlers.release()
        self.assertEqual(self.successResultOf(first), Processed(text="A"))
        self.assertEqual(handlers.calls, [("a", (item,)), ("b", ())])
