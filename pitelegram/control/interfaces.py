"""What the control socket asks of the daemon (the assembly provides it)."""

from __future__ import annotations

from collections.abc import Callable
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
        """The newest redacted events, oldest first."""

    def subscribe(observer: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
        """Call C{observer(event)} for each new redacted event; call the result to end that."""

    def perform(
        action: str, target: dict[str, Any], args: dict[str, Any], request_id: str
    ) -> Deferred[dict[str, Any]]:
        """Do one command; fires with its C{result}.

        Actions, targets and arguments are those of the contract's table, already validated;
        C{target} holds exactly one of C{name} and C{worker_id}, or nothing where the table has none.
        The result of C{worker.start} and C{resolve_target} has at least C{worker_id} (or None) and
        C{name}; that of C{worker.get_state} is the state document.

        An unknown worker is C{Refusal("unknown_worker", …)}.  Only L{Refusal},
        L{pitelegram.errors.LaunchFailed}, L{pitelegram.errors.PiRefused} and
        L{pitelegram.errors.PiCancelled} are taken as proof that nothing was done.

        @raise pitelegram.errors.Refusal: the state refuses it; C{code} becomes the status.
        @raise pitelegram.errors.PiTelegramError: it failed.
        """
