"""What the parts of a worker promise each other."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from zope.interface import Interface

from pitelegram.store.rows import InboxRow


class IGatherer(Interface):
    """Makes prompts of admitted messages (C{worker.gathering.Gatherer}); see C{docs/intake.md}.

    An item is I{gathered} from its first message until its prompt is complete: while messages that
    belong to it may still come, while its files are fetched, while handlers run.  It can be C{held}
    already then (so that it can be seen, marked and moved), with a prompt that is not complete.
    """

    def earliest() -> int | None:
        """The lowest C{seq} of a head that is still gathered, None when there is none.

        Rows of the normal lane from there on (it included) are not handed.
        """

    def unfinished() -> int:
        """Return how many prompts are being made of messages that are not held yet."""

    def view() -> list[InboxRow]:
        """Return those as they are shown in the queue: their heads, with what is known of them."""

    def ready(row: InboxRow) -> bool:
        """Whether a held row may be handed now, whatever its lane, as far as its content goes.

        False while it is gathered, and for a row of the normal lane while an earlier one is.  False
        too when a file of it has vanished: then it begins to be gathered again.  Whenever an item is
        complete the queue is kicked.  Ask once per hand-over, immediately before it.
        """

    def flush(chat_id: int, message_id: int) -> Deferred[None]:
        """Wait for no more messages of the item that this message is part of.

        Fires when its head is C{held}, or at once when the message is not waiting.  Its files may
        still be on their way then: see L{ready}.
        """

    def drop(before: int | None) -> Deferred[int]:
        """Skip what is still gathered (heads before a C{seq}, where one is given).

        Fires with how many items that were.
        """


class IAgentTools(Interface):
    """What the agent's tools do (C{worker.agenttools.AgentTools})."""

    def call(tool: str, params: dict[str, Any]) -> Deferred[tuple[str, dict[str, Any]]]:
        """Carry out one call; fires with the text for the agent, first a line break, and details.

        @raise pitelegram.errors.ToolRefused: it is not done; the text says why.
        """
