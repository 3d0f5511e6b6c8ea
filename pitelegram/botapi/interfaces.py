"""What the Bot API package promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from zope.interface import Attribute, Interface


@attrs.frozen(kw_only=True)
class Upload:
    """A file of a multipart call.

    @ivar field: the name of the part (C{attach://<field>} or the parameter itself).
    """

    field: str
    path: Path
    filename: str
    mime_type: str


class IBotApi(Interface):
    """The Bot API of one bot (C{botapi.client.BotApi})."""

    download_limit = Attribute("Bytes of the largest file that its server gives out.")

    def call(
        method: str,
        params: dict[str, Any],
        files: Sequence[Upload] = (),
        timeout: float | None = None,
        ready: Callable[[], Deferred[None]] | None = None,
    ) -> Deferred[Any]:
        """Call a method once; fires with C{result}.

        C{ready} is waited for when there is a connection, before anything is written; a failure of it
        sends nothing and fails the call.  For a repeated attempt it is called again.

        C{timeout} is a deadline over headers and body in seconds (default 30; getUpdates: its poll
        time-out + 15).  Nothing is repeated here, except one immediate retry of a *repeatable*
        method whose kept-alive connection turned out dead.  C{message is not modified} and
        C{TOPIC_NOT_MODIFIED} are success (True).

        @raise pitelegram.errors.TelegramError: by class of what may be done.
        """

    def download(file_id: str, destination: Path, limit: int) -> Deferred[int]:
        """Stream a file to C{destination} (made 0600); fires with its size.

        @raise pitelegram.errors.Refusal: C{too-large} with C{limit}.
        """

    def close() -> Deferred[None]:
        """Abort what runs and drop the connections."""


class IUpdateSink(Interface):
    """Where the long poll puts what it gets."""

    def next_offset() -> int | None:
        """The cursor, None before the first batch."""

    def accept(updates: Sequence[dict[str, Any]], next_offset: int) -> Deferred[None]:
        """Store a batch durably; the next poll confirms it only after this fired."""


class IPollingView(Interface):
    """What status shows of the long poll (C{botapi.longpoll.LongPoll})."""

    def snapshot() -> dict[str, Any]:
        """C{phase}, C{last_success_ms}, C{consecutive_failures}, C{receiving}."""


class ISendGate(Interface):
    """One rate budget per chat (C{botapi.limits.SendGate})."""

    def wait(chat_id: int, weight: str = "send") -> Deferred[None]:
        """Fire when the next call to this chat may go.

        C{weight} is, the most important first: C{send}, C{edit}, C{minor} and C{minor-edit} (what
        nobody waits for, like activity), C{draft}, C{action}.
        """

    def flood(chat_id: int, retry_after: float) -> None:
        """Telegram answered 429 for this chat: nothing goes there before that many seconds."""

    def blocked_for(chat_id: int, weight: str = "send") -> float:
        """Seconds until a call may go, 0 for now (a worker's call is refused, never slept through)."""
