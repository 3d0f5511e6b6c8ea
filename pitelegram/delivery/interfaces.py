"""What delivery promises to its neighbours."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from zope.interface import Interface


class IDelivery(Interface):
    """Takes deliveries and sends them (C{delivery.intake.Intake} over C{delivery.sender.Sender})."""

    def submit(
        binding_key: str, delivery_id: str, delivery: dict[str, Any], uploads: Any | None
    ) -> Deferred[str]:
        """Check, spool and store a delivery; fires with the receipt's state after the commit.

        @param uploads: the directory that C{files} of the calls must lie in, None for none.
        @raise pitelegram.errors.Refusal: C{delivery-id-collision}, C{not-allowed}.
        """

    def kick(binding_key: str | None = None) -> None:
        """A target, a flood limit or a block changed: look again."""

    def reopened(binding_key: str) -> Deferred[None]:
        """The user opened a binding's Thread again: what waited for it goes out."""

    def again(key: str) -> Deferred[bool]:
        """The operator asked: send parked or dead parts once more, after re-checking the target."""

    def blocked(blocked: bool) -> None:
        """C{my_chat_member} said the owner blocked or unblocked the bot."""


class IThreadLoss(Interface):
    """Asked when a send found no Thread (C{threads.loss.ThreadLoss}; rule D29)."""

    def examine(binding_key: str) -> Deferred[str]:
        """C{alive}, C{unknown} (try later) or C{lost} (the binding's target has been cleared)."""
