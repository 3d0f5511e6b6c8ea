"""What leaves through the control socket, and through the command line: each document's last look.

The owner's own data (the result of a command, what C{workers list --private} lists) loses tokens and
known secrets only.  Everything else is public, and must bear to be pasted anywhere.
"""

from __future__ import annotations

import re
from typing import Any

from pitelegram.kernel.sanitise import Grammars, owned, public

_WORD = re.compile(r"[a-z][a-z_-]{0,40}")
_OPAQUE = re.compile(r"[A-Za-z0-9._-]{1,128}")

_STATUS: Grammars = {
    "activity": _WORD,
    "disk": _WORD,
    "epoch": re.compile(r"[A-Za-z0-9._:-]{1,128}"),
    "health": _WORD,
    "name": re.compile(r"[a-z0-9-]{1,64}"),
    "phase": _WORD,
    "profile": re.compile(r"[a-z0-9]{1,32}"),
    "role": _WORD,
    "slot": re.compile(r"[A-Z]"),
    "stable_key": re.compile(r"wsk1_[0-9a-f]{64}"),
    "state": _WORD,
    "status": _WORD,
    "thread_mode": _WORD,
    "username": re.compile(r"[A-Za-z0-9_]{1,64}"),
    "version": re.compile(r"[0-9A-Za-z.+]{1,40}"),
}

_OUTBOX: Grammars = {"key": _OPAQUE, "state": _WORD, "reason": re.compile(r"[a-z0-9-]{1,60}")}

_ENVELOPE: Grammars = {
    "action": re.compile(r"[a-z_]{1,32}(\.[a-z_]{1,32})?"),
    "code": _WORD,
    "disposition": _WORD,
    "request_id": _OPAQUE,
    "status": _WORD,
}

PRIVATE = ("worker_id", "directory", "pid", "pi_pid", "session_file", "last_error")
"""What the local operator sees of a worker beyond the public part."""


def status(document: dict[str, Any]) -> dict[str, Any]:
    """The status document."""
    return public(document, _STATUS, ("username",))  # type: ignore[no-any-return]


def workers(document: dict[str, Any], private: bool) -> dict[str, Any]:
    """The list of workers; C{private} lets the operator's fields pass, exactly these."""
    shown: dict[str, Any] = public(document, _STATUS)
    if private:
        for entry, whole in zip(shown["workers"], document["workers"], strict=True):
            entry.update(owned({name: whole[name] for name in PRIVATE if name in whole}))
    return shown


def outbox(document: dict[str, Any]) -> dict[str, Any]:
    """The outbox: opaque keys, states, reasons, counts and times."""
    return public(document, _OUTBOX)  # type: ignore[no-any-return]


def envelope(document: dict[str, Any]) -> dict[str, Any]:
    """The answer to a command; its result belongs to who asked."""
    shown: dict[str, Any] = public({**document, "result": None}, _ENVELOPE)
    return {**shown, "result": owned(document.get("result"))}


def event(record: dict[str, Any]) -> dict[str, Any]:
    """An event of the log."""
    return public(record)  # type: ignore[no-any-return]
