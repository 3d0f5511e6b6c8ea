"""The envelopes that the command desk gives."""

from __future__ import annotations

from typing import Any

from pitelegram.control import envelope as envelopes
from pitelegram.control.envelope import Envelope
from pitelegram.control.requests import Request
from pitelegram.errors import Refusal

REJECTIONS = frozenset(
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


def read(request: Request, status: str, result: dict[str, Any]) -> Envelope:
    """What was read."""
    return envelopes.make(
        action=request.action,
        request_id=request.request_id,
        dry_run=True,
        status=status,
        disposition="no_receipt",
        result=result,
    )


def read_refused(request: Request, refusal: Refusal) -> Envelope:
    """What cannot be read."""
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


def unavailable(request: Request, message: str, code: str = "backend_unavailable") -> Envelope:
    """Nothing was begun, and the request id is free."""
    status = code if code in REJECTIONS else "rejected"
    return envelopes.refused(request.action, request.request_id, status, "no_receipt", message)


def accepted(request: Request, result: dict[str, Any]) -> Envelope:
    """It was done."""
    warnings = result.pop("warnings", ())
    return envelopes.make(
        action=request.action,
        request_id=request.request_id,
        dry_run=False,
        status="accepted",
        disposition="terminal_accepted",
        result=result,
        warnings=warnings,
    )


def rejected(request: Request, code: str, message: str) -> Envelope:
    """It was certainly not done."""
    return envelopes.refused(
        request.action,
        request.request_id,
        code if code in REJECTIONS else "rejected",
        "terminal_rejected",
        message,
        reason=code,
    )


def pending(request: Request) -> Envelope:
    """It is being done."""
    return envelopes.refused(
        request.action,
        request.request_id,
        "pending",
        "in_progress",
        "it is still being done; ask again with the same request id",
    )


def duplicate(request: Request) -> Envelope:
    """Another command has the request id."""
    return envelopes.refused(
        request.action,
        request.request_id,
        "duplicate_request",
        "terminal_rejected",
        "this request id was used for another request; take a new one",
    )


def uncertain(request: Request, message: str = "") -> Envelope:
    """It began, and nobody can tell how it ended."""
    words = "it began, and nobody can tell how it ended; look at the worker before asking again"
    return envelopes.refused(
        request.action,
        request.request_id,
        "request_state_uncertain",
        "terminal_uncertain",
        f"{message}: {words}" if message else words,
    )


def stored(request: Request, envelope: Envelope | None) -> Envelope:
    """The stored answer; one that is not legal, or another's, proves nothing."""
    if envelope is None or not envelopes.is_legal(envelope):
        return uncertain(request)
    right = (envelope["request_id"], envelope["action"]) == (request.request_id, request.action)
    return envelope if right else uncertain(request)
