"""What the control socket asks of its receipts."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from zope.interface import Interface

from pitelegram.store.rows import Claim, Receipt


class ICommands(Interface):
    """Receipts of control commands (C{store.commands.Commands}); their drawing: C{docs/control.md}."""

    def find(request_id: str) -> Receipt | None:
        """The receipt of a request id."""

    def reserve(claim: Claim) -> Deferred[bool]:
        """Take the id, or take it over once its owner's lease is over; False: it is taken."""

    def send_started(request_id: str, fingerprint: str, owner_hash: str) -> Deferred[bool]:
        """False, and no change, when the row is not that owner's C{reserved} one any more."""

    def finish(request_id: str, state: str, envelope: dict[str, Any]) -> Deferred[bool]:
        """False, and no change, when there is an outcome already."""

    def abandon(request_id: str, owner_hash: str) -> Deferred[bool]:
        """That owner's reserved row, which sent nothing, goes."""

    def started(before_ms: int | None = None) -> list[Receipt]:
        """What is left in C{send_started}, oldest first."""

    def has_effect(request_id: str) -> bool:
        """Whether the daemon committed the change that this request asked of it."""

    def forget(limit: int) -> Deferred[int]:
        """Delete what is older than 30 days and beyond the newest 4,096; how many rows went."""
