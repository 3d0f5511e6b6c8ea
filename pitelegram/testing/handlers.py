"""Inbound handlers in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.defer import Deferred
from zope.interface import implementer
from zope.interface.verify import verifyClass

from pitelegram.bridge.interfaces import FileItem, IInboundHandlers, Processed

Answer = Callable[[str, tuple[FileItem, ...]], Processed]


@implementer(IInboundHandlers)
class FakeInboundHandlers:
    """Answers what a test tells it.

    @param answer: makes the result; without it nothing matches and everything stays as it is.
    @ivar calls: the texts and files of each call, oldest first.
    @ivar paused: while set, calls wait for L{release}.
    @ivar cancelled: how many waiting calls were cancelled.
    """

    def __init__(self, answer: Answer | None = None) -> None:
        self.answer = answer
        self.calls: list[tuple[str, tuple[FileItem, ...]]] = []
        self.paused = False
        self.cancelled = 0
        self._waiting: list[tuple[Deferred[Processed], str, tuple[FileItem, ...]]] = []

    @property
    def waiting(self) -> int:
        """How many calls wait."""
        return len(self._waiting)

    def takes_text(self) -> bool:
        """See L{IInboundHandlers}."""
        return self.answer is not None or self.paused

    def process(self, text: str, files: Sequence[FileItem]) -> Deferred[Processed]:
        """See L{IInboundHandlers}."""
        items = tuple(files)
        self.calls.append((text, items))
        result: Deferred[Processed] = Deferred(self._cancel)
        if self.paused:
            self._waiting.append((result, text, items))
        else:
            result.callback(self._made(text, items))
        return result

    def release(self) -> None:
        """Let everything that waits go on, and what comes later not wait."""
        self.paused = False
        waiting, self._waiting = self._waiting, []
        for result, text, items in waiting:
            result.callback(self._made(text, items))

    def _made(self, text: str, items: tuple[FileItem, ...]) -> Processed:
        return Processed() if self.answer is None else self.answer(text, items)

    def _cancel(self, result: Deferred[Processed]) -> None:
        self._waiting = [entry for entry in self._waiting if entry[0] is not result]
        self.cancelled += 1


def file_item(kind: str = "document", **changes: Any) -> FileItem:
    """Return a small file of that kind."""
    values = {"path": "/tmp/a.bin", "name": "a.bin", "mime": "application/octet-stream", "size": 3}
    return FileItem(kind=kind, **{**values, **changes})


verifyClass(IInboundHandlers, FakeInboundHandlers)
