"""What the control socket asks of the daemon (the assembly provides it)."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from zope.interface import Interface


class IDaemon(Interface):
    """The running daemon behind the control socket."""

    def status() -> dict[str, Any]:
        """The public status document (contract, "Status document")."""

    def workers(private: bool) -> list[dict[str, Any]]:
        """The C{workers} list of the document; C{private} adds the local operator's fields."""

    def outbox() -> list[dict[str, Any]]:
        """C{key, state, reason, attempts, created_at_ms}."""

    def events(limit: int) -> list[dict[str, Any]]:
        """The newest redacted events."""

    def perform(
        action: str, target: dict[str, Any], args: dict[str, Any], request_id: str
    ) -> Deferred[dict[str, Any]]:
        """Do one command; fires with its C{result}.

        @raise pitelegram.errors.Refusal: the state refuses it; C{code} becomes the status.
        @raise pitelegram.errors.PiTelegramError: it failed.
        """
