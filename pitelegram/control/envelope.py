"""Envelope v2: the answer to a control command, exactly ten fields in a legal combination."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SCHEMA_VERSION = 2

FIELDS = (
    "schema_version",
    "action",
    "request_id",
    "ok",
    "dry_run",
    "status",
    "disposition",
    "result",
    "error",
    "warnings",
)

_REFUSED = frozenset(
    {
        "ambiguous_backend_target",
        "backend_failed",
        "backend_unavailable",
        "backend_unsupported",
        "decision_not_pending",
        "duplicate_request",
        "invalid_selection",
        "rejected",
        "stale_target",
        "unknown_worker",
        "unsupported_decision",
    }
)

READ_REFUSALS = frozenset(
    {
        "ambiguous_target",
        "invalid_request",
        "invalid_selection",
        "not_found",
        "rejected",
        "stale_target",
    }
)

_LEGAL: Mapping[tuple[bool, bool, str], frozenset[str]] = {
    # ok, dry_run, disposition -> statuses
    (True, False, "terminal_accepted"): frozenset({"accepted"}),
    (False, False, "in_progress"): frozenset({"pending", "answer_in_progress"}),
    (False, False, "terminal_uncertain"): frozenset({"request_state_uncertain"}),
    (False, False, "terminal_rejected"): _REFUSED,
    (False, False, "no_receipt"): (_REFUSED - {"duplicate_request"})
    | {"ambiguous_target", "invalid_request", "not_found"},
    (True, True, "no_receipt"): frozenset({"dry_run", "noop", "snapshot", "resolved"}),
    (False, True, "no_receipt"): READ_REFUSALS,
}

Envelope = dict[str, Any]


def is_legal(envelope: Any) -> bool:
    """Whether C{envelope} has exactly the ten fields, of the right types, in a legal combination."""
    if not isinstance(envelope, dict) or set(envelope) != set(FIELDS):
        return False
    get = envelope.__getitem__
    if type(get("schema_version")) is not int or get("schema_version") != SCHEMA_VERSION:
        return False
    if type(get("ok")) is not bool or type(get("dry_run")) is not bool:
        return False
    if not isinstance(get("action"), str) or not isinstance(get("status"), str):
        return False
    if not (get("request_id") is None or isinstance(get("request_id"), str)):
        return False
    if not (get("result") is None or isinstance(get("result"), dict)):
        return False
    if not isinstance(get("warnings"), list) or not _is_error(get("error")):
        return False
    if get("ok") != (get("error") is None):
        return False
    key = (get("ok"), get("dry_run"), get("disposition"))
    return get("status") in _LEGAL.get(key, frozenset())


def _is_error(value: Any) -> bool:
    if value is None:
        return True
    return (
        isinstance(value, dict)
        and set(value) == {"code", "message", "details"}
        and isinstance(value["code"], str)
        and isinstance(value["message"], str)
        and isinstance(value["details"], dict)
    )


def make(
    *,
    action: str,
    request_id: str | None,
    dry_run: bool,
    status: str,
    disposition: str,
    result: dict[str, Any] | None = None,
    error: dict[str, Any] | None = None,
    warnings: Sequence[str] = (),
) -> Envelope:
    """Build an envelope; C{ok} is the absence of an error.

    @raise ValueError: the combination is not legal (a defect of the caller).
    """
    envelope = {
        "schema_version": SCHEMA_VERSION,
        "action": action,
        "request_id": request_id,
        "ok": error is None,
        "dry_run": dry_run,
        "status": status,
        "disposition": disposition,
        "result": result,
        "error": error,
        "warnings": list(warnings),
    }
    if not is_legal(envelope):
        raise ValueError(f"no legal envelope: {status}/{disposition}")
    return envelope


def refused(
    action: str,
    request_id: str | None,
    status: str,
    disposition: str,
    message: str,
    *,
    dry_run: bool = False,
    result: dict[str, Any] | None = None,
    **details: Any,
) -> Envelope:
    """Build an envelope with an error whose code is the status."""
    return make(
        action=action,
        request_id=request_id,
        dry_run=dry_run,
        status=status,
        disposition=disposition,
        result=result,
        error={"code": status, "message": message, "details": details},
    )


def invalid(message: str, action: str = "", **details: Any) -> Envelope:
    """Build the answer to a request of wrong form; it always says C{dry_run} and no request id."""
    return refused(action, None, "invalid_request", "no_receipt", message, dry_run=True, **details)
