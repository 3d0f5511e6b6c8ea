"""What the control socket asks of the daemon (the assembly provides it)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from zope.interface import Interface

from pitelegram.store.rows import Receipt


@attrs.frozen(kw_only=True)
class Subject:
    """What a command is about, once its selector is resolved.

    @ivar key: C{spec:<specId>} for a worker and for a start, else the empty string; equal for every
        selector that means the same worker, over its restarts too.
    @ivar name: the worker's name, None where it has none yet.
    @ivar worker_id: the live worker, None while there is none.
    """

    key: str = ""
    name: str | None = None
    worker_id: str | None = None


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

    def resolve(action: str, target: dict[str, Any], args: dict[str, Any]) -> Subject:
        """Find out what a command is about, without changing anything.

        A start of a directory without a spec gets a fresh spec id, which L{perform} then uses; the
        directory itself is checked by L{perform}.

        @raise pitelegram.errors.Refusal: C{unknown_worker}.
        """

    def check(action: str, subject: Subject) -> None:
        """Look whether a command could be passed on now.

        @raise pitelegram.errors.Refusal: nobody could take it; nothing is begun, and the request id
            stays free.
        """

    def perform(
        action: str, subject: Subject, args: dict[str, Any], request_id: str
    ) -> Deferred[dict[str, Any]]:
        """Do one command; fires with its C{result}.

        Actions and arguments are those of the contract's table, already validated.
        The result of C{worker.start} and C{resolve_target} has at least C{worker_id} (or None) and
        C{name}; that of C{worker.get_state} is the state document.

        An unknown worker is C{Refusal("unknown_worker", …)}.  Only L{Refusal},
        L{pitelegram.errors.LaunchFailed}, L{pitelegram.errors.PiRefused} and
        L{pitelegram.errors.PiCancelled} are taken as proof that nothing was done.

        @raise pitelegram.errors.Refusal: the state refuses it; C{code} becomes the status.
        @raise pitelegram.errors.PiTelegramError: it failed.
        """

    def settle(
        action: str, subject: Subject, args: dict[str, Any], receipt: Receipt
    ) -> Deferred[dict[str, Any]]:
        """Find out what became of a command that an earlier daemon began; fires as L{perform}.

        C{args} are empty for a start.

        The worker, or its successor, is asked with the same request id, which executes nothing
        twice; what the daemon does itself is read from its own store.

        @raise pitelegram.errors.Refusal: it is proven that it was refused.
        @raise pitelegram.errors.PiTelegramError: nobody can answer for it.
        """
