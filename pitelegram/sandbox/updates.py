"""The queue of updates of one bot, with the confirmation rules of C{getUpdates}."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import attrs
from twisted.internet.interfaces import IReactorTime

from pitelegram.kernel.jsonio import dumps

ALL_KINDS = (
    "message edited_message channel_post edited_channel_post business_connection business_message "
    "edited_business_message deleted_business_messages guest_message message_reaction "
    "message_reaction_count inline_query chosen_inline_result callback_query shipping_query "
    "pre_checkout_query poll poll_answer my_chat_member chat_member chat_join_request chat_boost "
    "removed_chat_boost purchased_paid_media managed_bot"
).split()
DEFAULT_KINDS = frozenset(ALL_KINDS) - {"chat_member", "message_reaction", "message_reaction_count"}
LIFETIME = 86400.0
CALLBACK_LIFETIME = 150.0
QUIET_WEEK = 7 * 86400.0
MAX_QUEUE = 100_000
MAX_BATCH_BYTES = 4 * 1024 * 1024
FUTURE_SLACK = 10


@attrs.frozen
class _Entry:
    update_id: int
    update: dict[str, Any]
    size: int
    expires: float


class UpdateQueue:
    """Updates from the oldest unconfirmed to the newest.

    @ivar dropped: how many were not taken in because their kind is not asked for or the queue full.
    @ivar pushed: called after each new update (the waiting poll listens here).
    """

    def __init__(self, clock: IReactorTime, random: Random) -> None:
        self._clock = clock
        self._random = random
        self._entries: list[_Entry] = []
        self._tail = random.randrange(1_000, 900_000_000)
        self._last_push = clock.seconds()
        self.kinds: frozenset[str] = DEFAULT_KINDS
        self.named: tuple[str, ...] | None = None
        self.dropped = 0
        self.pushed: Callable[[], None] = lambda: None

    @property
    def next_id(self) -> int:
        """The id of the next update, if it comes within a week."""
        return self._tail

    def allow(self, names: Sequence[Any]) -> None:
        """Remember which kinds are wanted from now on; what is queued stays."""
        known = tuple(name for name in names if name in ALL_KINDS)
        self.named = known or None
        self.kinds = frozenset(known) if known else DEFAULT_KINDS

    def push(self, kind: str, value: dict[str, Any]) -> int | None:
        """Queue an update; return its id, or None when its kind is not wanted."""
        if kind not in self.kinds or len(self._entries) >= MAX_QUEUE:
            self.dropped += 1
            return None
        now = self._clock.seconds()
        if now - self._last_push > QUIET_WEEK:
            self._tail = self._random.randrange(1_000, 900_000_000)
        self._last_push = now
        update = {"update_id": self._tail, kind: value}
        lifetime = CALLBACK_LIFETIME if kind == "callback_query" else LIFETIME
        self._entries.append(_Entry(self._tail, update, len(dumps(update)), now + lifetime))
        self._tail += 1
        self.pushed()
        return self._tail - 1

    def take(self, offset: int, limit: int) -> list[dict[str, Any]]:
        """Confirm what lies below C{offset} and return the next updates.

        Zero or less counts from the ends; an offset far outside the queue confirms nothing and
        starts at the oldest.
        """
        self._expire()
        start = self._tail + offset if offset < 0 else offset
        head = self._entries[0].update_id if self._entries else self._tail
        if start <= 0 or start > self._tail + FUTURE_SLACK or start < head - MAX_QUEUE:
            start = head
        self._entries = [entry for entry in self._entries if entry.update_id >= start]
        batch: list[dict[str, Any]] = []
        size = 0
        for entry in self._entries[:limit]:
            size += entry.size
            if batch and size > MAX_BATCH_BYTES:
                break
            batch.append(entry.update)
        return batch

    def pending(self) -> list[dict[str, Any]]:
        """Return everything unconfirmed, oldest first."""
        self._expire()
        return [entry.update for entry in self._entries]

    def push_again(self, update: dict[str, Any], skip: int = 0) -> None:
        """Queue an update under its old id, out of order, as a hostile server might.

        @param skip: additionally jump over that many ids for the next update.
        """
        expires = self._clock.seconds() + LIFETIME
        entry = _Entry(update["update_id"], update, len(dumps(update)), expires)
        self._entries.append(entry)
        self._tail += skip
        self.pushed()

    def renumber(self, next_id: int) -> None:
        """Go on from another id, as the service does after a quiet week."""
        self._tail = next_id

    def clear(self) -> None:
        """Forget everything unconfirmed."""
        self._entries = []

    def _expire(self) -> None:
        now = self._clock.seconds()
        self._entries = [entry for entry in self._entries if entry.expires > now]
