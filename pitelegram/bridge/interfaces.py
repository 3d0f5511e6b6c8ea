"""What the parts of the conversation side promise each other."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from twisted.internet.defer import Deferred
from zope.interface import Interface


@attrs.frozen(kw_only=True)
class FileItem:
    """A file that came with a message and is on this disk.

    @ivar kind: C{photo}, C{document}, C{video}, C{audio}, C{voice}, C{animation}, C{sticker}, …
    @ivar name: as it is shown; safe as a file name.
    @ivar mime: as Telegram says it, or guessed from the name; never empty.
    @ivar size: bytes.
    @ivar foreign: whether it was forwarded: what somebody says in it are not the operator's words.
    """

    kind: str
    path: str
    name: str
    mime: str
    size: int
    foreign: bool = False


@attrs.frozen(kw_only=True)
class Processed:
    """What the inbound handlers made of a message.

    @ivar text: replaces what the operator wrote; None keeps it.
    @ivar outputs: go into the prompt, each within the bound.
    @ivar notices: for the Thread: what did not work, and what was understood of recordings.
    @ivar handled: paths of the files that something was made of, in C{text} or C{outputs}.
    """

    text: str | None = None
    outputs: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    handled: tuple[str, ...] = ()


class IInboundHandlers(Interface):
    """The operator's own programs for what comes in (C{worker.handlers.InboundHandlers})."""

    def takes_text() -> bool:
        """Whether something may be made of a text without files; when in doubt, True."""

    def process(text: str, files: Sequence[FileItem]) -> Deferred[Processed]:
        """Run what matches, in its order.

        Never fails: a program that does is told of in C{notices}, and the next one is tried.
        Cancelling ends the programs.
        """


@attrs.frozen(kw_only=True)
class QueueItem:
    """A held prompt as the queue shows it (C{worker.queue.Queue.view}).

    @ivar position: 1 is handed next.
    @ivar seq: its row; what buttons carry.
    @ivar lane: C{control}, C{priority} or C{normal}.
    @ivar skip: it is dropped when its turn comes.
    @ivar summary: its first words, at most 40 characters.
    @ivar prompt: as Pi will get it.
    """

    position: int
    seq: int
    lane: str
    skip: bool
    summary: str
    prompt: str
