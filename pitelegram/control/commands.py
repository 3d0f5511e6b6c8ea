"""Control commands: each request id is done at most once, and answered with one envelope.

The order is that of the contract: form, reads and dry runs, the known request id, reservation,
C{send_started} on disk, the effect, the answer on disk.
"""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet.defer import CancelledError, Deferred, TimeoutError, maybeDeferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pitelegram.control import envelope as envelopes
from pitelegram.control.envelope import Envelope
from pitelegram.control.interfaces import IDaemon
from pitelegram.control.requests import Invalid, Request, dry_run, validate
from pitelegram.errors import (
    LaunchFailed,
    PiCancelled,
    PiRefused,
    PiTelegramError,
    Refusal,
)
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.kernel.observers import OneShot
from pitelegram.store.interfaces import ICommands

DEADLINE = 60.0
"""Seconds until a caller is told C{in_progress}; the stop ladder's total is 30."""

_TERMINAL = ("accepted", "rejected", "uncertain")

_REJECTIONS = frozenset(
    {
        "ambiguous_backend_target",
        "backend_failed",
        "backend_unavailable",
        "backend_unsupported",
        "decision_not_pending",
        "invalid_selection",
        "stale_target",
        "unknown_worker",
        "unsupported_decision",
    }
)


@attrs.define(eq=False)
class _Running:
    """A command that is being done."""

    fingerprint: str
    done: OneShot[Envelope] = attrs.field(factory=OneShot)


@attrs.define(eq=False)
class CommandDesk:
    """Answers parsed requests.

    @ivar daemon: does the work.
    @ivar commands: the durable table of request ids.
    @ivar deadline: seconds until a caller is told C{in_progress}; the work goes on.
    """

    daemon: IDaemon
    commands: ICommands
    clock: IReactorTime
    deadline: float = DEADLINE
    _running: dict[str, _Running] = attrs.field(factory=dict, init=False)
    _log: Logger = attrs.field(factory=Logger, init=False)

    @deferred
    async def submit(self, value: dict[str, Any]) -> Envelope:
        """Answer one request with an envelope; fails only when cancelled."""
        try:
            request = validate(value)
        except Invalid as wrong:
            return envelopes.invalid(str(wrong), wrong.action, **wrong.details())
        if request.dry_run:
            return dry_run(request)
        if request.action == "noop":
            return _read(request, "noop", {})
        if request.reads:
            return await self._answer_read(request)
        return await self._answer_change(request)

    # --- reads ---------------------------------------------------------------------------------

    async def _answer_read(self, request: Request) -> Envelope:
        work = maybeDeferred(
            self.daemon.perform,
            request.action,
            request.target,
            request.args,
            request.request_id or "",
        ).addTimeout(self.deadline, self.clock)
        status = "resolved" if request.action == "resolve_target" else "snapshot"
        try:
            return _read(request, status, await work)
        except CancelledError:
            raise
        except Refusal as refusal:
            return _read_refused(request, refusal)
        except PiTelegramError as error:
            return _unavailable(request, str(error))
        except TimeoutError:
            return _unavailable(request, "the worker did not answer in time")
        except Exception:
            self._log.failure("{action} failed", action=request.action)
            return _unavailable(request, "the daemon failed; its log has the reason")

    # --- changes -------------------------------------------------------------------------------

    async def _answer_change(self, request: Request) -> Envelope:
        assert request.request_id is not None
        fingerprint = request.fingerprint()
        running = self._running.get(request.request_id)
        if running is None:
            running = _Running(fingerprint)
            self._running[request.request_id] = running
            spawn(self._log, "a control command", self._run(request, running))
        elif running.fingerprint != fingerprint:
            return _duplicate(request)
        waiting: Deferred[Envelope] = running.done.when()
        try:
            return await waiting.addTimeout(self.deadline, self.clock)
        except TimeoutError:
            return envelopes.refused(
                request.action,
                request.request_id,
                "pending",
                "in_progress",
                "it is still being done; ask again with the same request id",
            )

    async def _run(self, request: Request, running: _Running) -> None:
        try:
            answer = await self._change(request, running.fingerprint)
        except CancelledError:
            answer = _uncertain(request)
            raise
        except Exception:
            self._log.failure("{action} failed", action=request.action)
            answer = _uncertain(request)
        finally:
            del self._running[request.request_id or ""]
            running.done.fire(answer)

    async def _change(self, request: Request, fingerprint: str) -> Envelope:
        request_id = request.request_id or ""
        try:
            known = self.commands.find(request_id)
            if known is not None:
                earlier = await self._earlier(request, fingerprint, known)
                if earlier is not None:
                    return earlier
            if not await self.commands.reserve(request_id, fingerprint):
                return _uncertain(request)
        except PiTelegramError as error:
            return _unavailable(request, str(error))
        try:
            await self.commands.send_started(request_id)
        except PiTelegramError as error:
            return await self._start_failed(request, error)
        state, answer = await self._perform(request)
        return await self._finish(request, state, answer)

    async def _earlier(
        self, request: Request, fingerprint: str, known: dict[str, Any]
    ) -> Envelope | None:
        """Answer from the stored row; None when it was reserved only and may begin again."""
        if known["fingerprint"] != fingerprint:
            return _duplicate(request)
        if known["state"] in _TERMINAL:
            stored = known["envelope"]
            right = envelopes.is_legal(stored) and stored["request_id"] == request.request_id
            return stored if right else _uncertain(request)
        if known["state"] == "send_started":
            # An earlier daemon began it and ended before it knew the outcome.
            return await self._finish(request, "uncertain", _uncertain(request))
        await self.commands.abandon(request.request_id)
        return None

    async def _start_failed(self, request: Request, error: PiTelegramError) -> Envelope:
        """The commit of C{send_started} failed: only the row itself tells whether it is there."""
        known = self.commands.find(request.request_id)
        if known is None or known["state"] == "reserved":
            if known is not None:
                await self.commands.abandon(request.request_id)
            return _unavailable(request, str(error))
        return _uncertain(request)

    async def _perform(self, request: Request) -> tuple[str, Envelope]:
        try:
            result = await maybeDeferred(
                self.daemon.perform,
                request.action,
                request.target,
                request.args,
                request.request_id or "",
            )
        except CancelledError:
            raise
        except Refusal as refusal:
            return "rejected", _rejected(request, refusal.code, str(refusal))
        except (LaunchFailed, PiRefused) as error:
            return "rejected", _rejected(request, "backend_failed", str(error))
        except PiCancelled as error:
            return "rejected", _rejected(request, "cancelled", str(error))
        except PiTelegramError as error:
            return "uncertain", _uncertain(request, str(error))
        except Exception:
            self._log.failure("{action} failed", action=request.action)
            return "uncertain", _uncertain(request)
        accepted = envelopes.make(
            action=request.action,
            request_id=request.request_id,
            dry_run=False,
            status="accepted",
            disposition="terminal_accepted",
            result=result,
        )
        return "accepted", accepted

    async def _finish(self, request: Request, state: str, answer: Envelope) -> Envelope:
        try:
            await self.commands.finish(request.request_id, state, answer)
        except PiTelegramError as error:
            return _uncertain(request, str(error))
        return answer


def _read(request: Request, status: str, result: dict[str, Any]) -> Envelope:
    return envelopes.make(
        action=request.action,
        request_id=request.request_id,
        dry_run=True,
        status=status,
        disposition="no_receipt",
        result=result,
    )


def _read_refused(request: Request, refusal: Refusal) -> Envelope:
    code = "not_found" if refusal.code == "unknown_worker" else refusal.code
    status = code if code in envelopes.READ_REFUSALS else "rejected"
    return envelopes.refused(
        request.action,
        request.request_id,
        status,
        "no_receipt",
        str(refusal),
        dry_run=True,
        result={"candidates": []} if request.action == "resolve_target" else None,
        reason=refusal.code,
    )


def _unavailable(request: Request, message: str) -> Envelope:
    return envelopes.refused(
        request.action, request.request_id, "backend_unavailable", "no_receipt", message
    )


def _rejected(request: Request, code: str, message: str) -> Envelope:
    return envelopes.refused(
        request.action,
        request.request_id,
        code if code in _REJECTIONS else "rejected",
        "terminal_rejected",
        message,
        reason=code,
    )


def _duplicate(request: Request) -> Envelope:
    return envelopes.refused(
        request.action,
        request.request_id,
        "duplicate_request",
        "terminal_rejected",
        "this request id was used for another request; take a new one",
    )


def _uncertain(request: Request, message: str = "") -> Envelope:
    words = "it began, and nobody can tell how it ended; look at the worker before asking again"
    return envelopes.refused(
        request.action,
        request.request_id,
        "request_state_uncertain",
        "terminal_uncertain",
        f"{message}: {words}" if message else words,
    )
