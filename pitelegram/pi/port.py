"""What can be asked of a worker, whoever carries the question to it."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from zope.interface import Interface


class IWorkerControlPort(Interface):
    """Every operation on one worker.

    Providers: C{worker.port.HostPort} beside Pi, C{daemon.workerport.BusPort} over the bus,
    C{testing.controlport.FakePort}; all pass C{testing.contracts_port}.

    Each method but L{get_state} takes a request id first.  The same id with the same operation and
    arguments gives the same result, refusals included, and is executed once, by a successor of the
    worker too; with others it is C{Refusal("request-id-collision")}.  Without a refusal a failure
    proves nothing: the operation may have been done.

    Every method fires with a dict.  It fails with L{pitelegram.errors.Refusal}, C{code} one of
    C{invalid-command}, C{command-too-large}, C{unsupported}, C{cancelled} (Pi or an extension said
    no), C{execution-failed}, C{request-id-collision}, C{backend-unavailable} (nobody could be asked;
    nothing was done), or with another L{pitelegram.errors.PiTelegramError} when nobody can tell.  Beside
    Pi, and on the wire, that last one is C{execution-failed} with the field C{uncertain}.
    """

    def prompt(request_id: str, message: str) -> Deferred[dict[str, Any]]:
        """Queue a prompt; fires with C{{"deliveryId"}} once it is on disk.

        C{message}: 1 to 200,000 characters, not a slash command.
        """

    def steer(request_id: str, message: str) -> Deferred[dict[str, Any]]:
        """As L{prompt}, for the run in progress, where there is one."""

    def follow_up(request_id: str, message: str) -> Deferred[dict[str, Any]]:
        """As L{prompt}, after the run in progress."""

    def abort(request_id: str) -> Deferred[dict[str, Any]]:
        """End the run; C{{"aborted": bool}}."""

    def clear_queue(request_id: str) -> Deferred[dict[str, Any]]:
        """Forget what waits, here and in Pi; C{{"cleared": int}}."""

    def compact(request_id: str, instructions: str | None = None) -> Deferred[dict[str, Any]]:
        """Compact the session; C{{"tokensBefore"?, "estimatedTokensAfter"?}}."""

    def set_model(request_id: str, provider: str, model: str) -> Deferred[dict[str, Any]]:
        """Change the model; C{{"provider", "modelId"}}."""

    def set_thinking_level(request_id: str, level: str) -> Deferred[dict[str, Any]]:
        """Change the thinking level; C{{"level"}}."""

    def new_session(request_id: str) -> Deferred[dict[str, Any]]:
        """Begin a new session; fires with the current session."""

    def switch_session(request_id: str, path: str) -> Deferred[dict[str, Any]]:
        """Change to a session by its absolute file, checked as rule D7 says."""

    def fork(request_id: str, entry_id: str) -> Deferred[dict[str, Any]]:
        """Begin a session that branches off before a user entry of the current one."""

    def clone(request_id: str) -> Deferred[dict[str, Any]]:
        """Go on in a copy of the current session."""

    def answer(
        request_id: str, dialog_ref: str, answer: dict[str, Any]
    ) -> Deferred[dict[str, Any]]:
        """Answer an open dialog with exactly one of C{value}, C{confirmed} and C{cancelled}."""

    def get_state() -> Deferred[dict[str, Any]]:
        """The worker's state as its heartbeats have it, asked of Pi just now."""
