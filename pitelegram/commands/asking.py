"""Sending one control command and saying how it went, with the contract's exit codes."""

from __future__ import annotations

import argparse
import json
import uuid
from typing import Any

from pitelegram.commands import output
from pitelegram.commands.client import ControlClient, FateUnknown, Unreachable
from pitelegram.commands.place import control_socket, paths_of
from pitelegram.commands.replay import durable_answer
from pitelegram.control import envelope as envelopes
from pitelegram.control import outward
from pitelegram.control.envelope import Envelope
from pitelegram.kernel.exits import EXIT_FAILED, EXIT_USAGE


def client_of(args: argparse.Namespace) -> ControlClient:
    """Return the client of the daemon that the command is about."""
    return ControlClient(control_socket(args, paths_of(args)))


def request_of(
    args: argparse.Namespace, action: str, target: dict[str, Any], values: dict[str, Any]
) -> dict[str, Any]:
    """Return a request; without C{--request-id} it gets a new id."""
    return {
        "schema_version": 1,
        "action": action,
        "request_id": args.request_id if args.request_id else f"cli-{uuid.uuid4().hex}",
        "dry_run": args.dry_run,
        "target": target,
        "args": values,
    }


def settled_here(value: dict[str, Any]) -> Envelope | None:
    """Return the answer to an invalid request or a dry run, which need no daemon; else None."""
    from pitelegram.control.requests import Invalid, dry_run, validate

    try:
        request = validate(value)
    except Invalid as wrong:
        return envelopes.invalid(str(wrong), wrong.action, **wrong.details())
    return dry_run(request) if request.dry_run else None


def ask(args: argparse.Namespace, value: dict[str, Any], body: bytes | None = None) -> Envelope:
    """Send a request and return its envelope, also when no daemon could be reached.

    An answer that was lost is looked up in the daemon's store.

    @param body: the request's own bytes, where they must stay as they are.
    @raise FateUnknown: it may have begun, and nothing proves how it ended.
    """
    here = settled_here(value)
    if here is not None:
        return here
    action, request_id = value["action"], value.get("request_id")
    data = json.dumps(value).encode() if body is None else body
    try:
        return client_of(args).command(data, action, request_id)
    except Unreachable as error:
        return _unavailable(action, request_id, str(error))
    except FateUnknown:
        if _reads(action):
            return _unavailable(action, request_id, "the daemon did not answer")
        known = durable_answer(paths_of(args).database, value)
        if known is None:
            raise
        return known


def change(
    args: argparse.Namespace, action: str, target: dict[str, Any], values: dict[str, Any]
) -> tuple[int, Envelope | None]:
    """Do one change and print how it went; returns the exit code and the envelope."""
    value = request_of(args, action, target, values)
    try:
        envelope = ask(args, value)
    except FateUnknown as error:
        output.complain(
            f"{error}; it may have been done. Ask again with --request-id {value['request_id']}:"
            " the same id is never done twice"
        )
        return EXIT_USAGE, None
    return report(args.json, envelope), envelope


def report(as_json: bool, envelope: Envelope) -> int:
    """Print an envelope, or what it means; returns the exit code."""
    if as_json:
        output.print_json(envelope, outward.envelope)
        return 0 if envelope["ok"] else EXIT_FAILED
    if not envelope["ok"]:
        output.complain(envelope["error"]["message"])
        if envelope["status"] == "pending":
            output.complain(f"its request id is {envelope['request_id']}")
        return EXIT_USAGE if envelope["status"] == "invalid_request" else EXIT_FAILED
    for warning in envelope["warnings"]:
        output.complain(f"warning: {warning}")
    return 0


def _reads(action: str) -> bool:
    from pitelegram.control.requests import ACTIONS

    return action in ACTIONS and ACTIONS[action].read


def _unavailable(action: str, request_id: str | None, message: str) -> Envelope:
    return envelopes.refused(
        action,
        request_id,
        "backend_unavailable",
        "no_receipt",
        message + Unreachable.hint,
    )
