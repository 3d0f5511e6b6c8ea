"""From Telegram's batch to committed rows: the owner's only, with the cursor, in one commit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

import attrs
from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from twisted.logger import Logger
from zope.interface import implementer

from pitelegram.botapi.interfaces import IUpdateSink
from pitelegram.ids import delivery_id
from pitelegram.kernel import jsonio
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.routing.gate import Seen, Sort, look
from pitelegram.routing.interfaces import IRouter
from pitelegram.routing.pairing import Pairing
from pitelegram.store.interfaces import IJournal
from pitelegram.store.rows import Incoming

_START = re.compile(r"/start(?:@\w+)?(?:\s+(\S+))?\s*")


class Ownership(Protocol):
    """What admission asks about the owner, and what it reports.

    L{pitelegram.routing.paired.Owner} provides it from the settings.
    """

    def owner(self) -> int | None:
        """The paired owner's user id (his private chat has the same), None while unpaired."""

    def first_contact(self) -> bool:
        """Whether the first person who writes becomes the owner (a setting, off by default)."""

    def reload(self) -> Deferred[None] | None:
        """Read the settings again; called at each C{/start}."""

    def paired(self, user_id: int, chat_id: int) -> Deferred[None] | None:
        """A new owner has proven himself; L{owner} names him once this fired."""

    def blocked(self, blocked: bool) -> None:
        """The owner blocked the bot, or let it back in."""

    def service(self, message: dict[str, Any]) -> Deferred[None] | None:
        """A service message of the owner or the bot itself, in the owner's chat."""


@implementer(IUpdateSink)
@attrs.define(eq=False)
class Admission:
    """The sink of the long poll.

    What is not the owner's is counted in L{counters} and dropped: it is not stored, downloaded,
    answered or shown to anybody.

    @ivar counters: updates dropped so far: C{strangers}, C{service}, C{malformed}, C{unknown}.
    """

    bot_id: int
    journal: IJournal
    router: IRouter
    ownership: Ownership
    pairing: Pairing
    counters: dict[str, int] = attrs.field(init=False)
    _log = Logger()

    @counters.default
    def _no_counts(self) -> dict[str, int]:
        return {"strangers": 0, "service": 0, "malformed": 0, "unknown": 0}

    def next_offset(self) -> int | None:
        """See L{IUpdateSink.next_offset}."""
        return self.journal.cursor(self.bot_id)

    @deferred
    async def accept(self, updates: Sequence[dict[str, Any]], next_offset: int) -> None:
        """See L{IUpdateSink.accept}.

        @raise pitelegram.errors.StoreError: nothing was stored and the cursor stands where it was.
        """
        admitted: list[Incoming] = []
        members: list[Seen] = []
        for update in updates:
            seen = look(update, self.ownership.owner(), self.bot_id)
            if seen.private and seen.kind == "message":
                seen = await self._greet(update, seen)
            row = None if seen.row is None else self._complete(seen.row, update)
            if row is not None:
                admitted.append(row)
            elif seen.row is not None:
                self._drop(attrs.evolve(seen, sort=Sort.MALFORMED))
            elif seen.sort is Sort.MEMBER:
                members.append(seen)
            elif seen.sort is not Sort.PAIRED:
                self._drop(seen)
        rows = await self.journal.accept(self.bot_id, admitted, next_offset)
        self.router.take(rows)
        for seen in members:
            self._member(seen.content)

    def _complete(self, row: Incoming, update: dict[str, Any]) -> Incoming | None:
        """Fill in what is stored; None for an update that no store could ever take."""
        try:
            body = jsonio.dumps(update)
        except ValueError as error:
            self._log.error("an update cannot be stored: {reason}", reason=str(error))
            return None
        recipient = self.router.plan(row, update)
        return attrs.evolve(
            row,
            body=body,
            recipient=recipient,
            delivery_id=(
                None if recipient is None else delivery_id(row.kind, recipient, row.update_id)
            ),
        )

    def _drop(self, seen: Seen) -> None:
        self.counters[seen.sort.value] += 1
        if seen.sort is Sort.SERVICE and seen.kind == "message":
            spawn(
                self._log,
                "a service message",
                maybeDeferred(self.ownership.service, seen.content),
            )

    async def _greet(self, update: dict[str, Any], seen: Seen) -> Seen:
        """Look for C{/start} and pairing in a private message; returns the verdict after that."""
        text = seen.content.get("text")
        start = _START.fullmatch(text) if isinstance(text, str) and len(text) < 200 else None
        if start is not None:
            await spawn(self._log, "reading the settings", maybeDeferred(self.ownership.reload))
            seen = look(update, self.ownership.owner(), self.bot_id)
        assert seen.sender is not None
        if start is not None and start[1] and self.pairing.attempt(seen.sender, start[1]):
            if await self._pair(seen.sender):
                self.pairing.close()
                # The message has said all it had to say.
                return attrs.evolve(seen, sort=Sort.PAIRED, row=None)
        elif self.ownership.owner() is None and self.ownership.first_contact():
            await self._pair(seen.sender)
            return look(update, self.ownership.owner(), self.bot_id)
        return seen

    async def _pair(self, sender: int) -> bool:
        try:
            await maybeDeferred(self.ownership.paired, sender, sender)
        except CancelledError:
            raise
        except Exception:
            self._log.failure("the new owner could not be stored")
            return False
        return True

    def _member(self, change: dict[str, Any]) -> None:
        member = change.get("new_chat_member")
        status = member.get("status") if isinstance(member, dict) else None
        self.ownership.blocked(status in ("kicked", "left"))
