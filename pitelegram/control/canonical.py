"""What makes two requests the same command."""

from __future__ import annotations

import hashlib
from typing import Any

from pitelegram.control.requests import Request
from pitelegram.kernel.jsonio import canonical

VERSION = 1

FINGERPRINT_LENGTH = 24

_DOMAIN = b"pi-telegram.command-selector-proof.v1\0"


def canonical_form(request: Request, subject: str) -> str:
    """Return the command as it is compared: with what it is about, not with how that was named.

    The directory of a start is how its worker was named.
    """
    args = {} if request.action == "worker.start" else request.args
    target = {"subject": subject} if subject else {}
    form = {
        "action": request.action,
        "args": args,
        "canonical_version": VERSION,
        "target": target,
    }
    return canonical(form).decode()


def fingerprint_of(form: str) -> str:
    """Return the short hash of a canonical form; never compared without the form itself."""
    return hashlib.sha256(form.encode()).hexdigest()[:FINGERPRINT_LENGTH]


def selector_proof(request: Request) -> str:
    """Return a hash of how the request names what it is about.

    An exact repetition can be recognised by it although the worker is gone, or another has its name
    by now.
    """
    selector: dict[str, Any] = dict(request.target)
    if request.action == "worker.start":
        selector = {"directory": request.args["directory"]}
    form = {"action": request.action, "proof_version": 1, "selector": selector}
    return f"v1:{hashlib.sha256(_DOMAIN + canonical(form)).hexdigest()}"
