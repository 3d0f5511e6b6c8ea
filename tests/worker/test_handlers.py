"""The operator's own programs for what comes in."""

import os
import sys
from pathlib import Path

from twisted.trial.unittest import TestCase

from pitelegram.bridge.interfaces import Processed
from pitelegram.testing.contracts_handlers import InboundHandlersContract
from pitelegram.testing.handlers import FakeInboundHandlers, file_item
from pitelegram.worker.handlers import InboundHandlers


class FakeTests(InboundHandlersContract, TestCase):
    """The fake keeps the contract."""

    def make_silent(self):
        """See the contract."""
        return FakeInboundHandlers()

    def make_answering(self, output):
        """See the contract."""

        def answer(_, files):
            paths = tuple(file.path for file in files if file.kind == "document")
            return Processed(outputs=(output,) * len(paths), handled=paths)

        return FakeInboundHandlers(answer)

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


def program(source):
    """Return the command that runs a piece of Python, quoted for a template."""
    assert "'" not in source and "{" not in source
    return f"{sys.executable} -I -S -c '{source}'"


class RealTests(InboundHandlersContract, TestCase):
    """The real ones keep the contract, with real programs."""

    def make(self, *entries):
        """Return handlers with these entries."""
        from twisted.internet import reactor

        directory = Path(self.mktemp_directory())
        handlers = InboundHandlers(reactor, directory, dict(os.environ), lambda: list(entries))
        self.addCleanup(handlers.stop)
        return handlers

    def mktemp_directory(self):
        """Return a fresh directory."""
        path = os.path.abspath(self.mktemp())
        os.mkdir(path)
        return path

    def make_silent(self):
        """See the contract."""
        return self.make({"type": "photo", "template": "false"})

    def make_answering(self, output):
        """See the contract."""
        return self.make({"type": "document", "template": f"echo {output}"})

    def make_replacing(self, text):
        """See the contract."""
        return self.make({"type": "text", "template": f"echo {text}"})

    def make_failing(self):
        """See the contract."""
        return self.make({"type": "document", "template": "false {file} {text}"})

    def make_hanging(self):
        """See the contract."""
        return self.make({"type": "document", "template": "sleep 60"})
