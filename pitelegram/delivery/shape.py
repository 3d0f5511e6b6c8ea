"""The form of a delivery, as a worker submits it."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import attrs

from pitelegram.bus.allowlist import SENDS
from pitelegram.errors import BusBadRequest, Refusal
from pitelegram.kernel.jsonio import canonical

METHODS = SENDS
"""What a delivery may call: whatever a worker may send itself."""

MOST_CALLS = 64
MOST_FORMS = 4096
"""Calls of one delivery together with those that are sent instead."""

DEEPEST = 2
"""Rich messages have entities to fall back to, and those have plain text."""

MOST_FILES = 20
"""Files of one call."""

SIZE_LIMIT = 8 * 1024 * 1024
"""Bytes of all calls together, as JSON."""

_DELIVERY_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_STABLE_KEY = re.compile(r"wsk1_[0-9a-f]{64}")
_FIELD = re.compile(r"[A-Za-z0-9_]{1,64}")
_MIME_TYPE = re.compile(r"[A-Za-z0-9.+-]{1,100}/[A-Za-z0-9.+-]{1,100}")
_ADDRESS = ("chat_id", "message_thread_id")
_ELSEWHERE = ("business_connection_id", "direct_messages_topic_id", "allow_paid_broadcast")
_TEXTS = ("text", "caption", "entities", "caption_entities", "rich_message", "reply_markup")


@attrs.frozen(kw_only=True)
class Delivery:
    """A delivery whose form is right.

    @ivar digest: SHA-256 of kind and calls, equal for equal content; of a file's path only the name
        counts.
    @ivar hold: why it must never be sent, in one word; None: it may be.
    """

    kind: str
    calls: list[dict[str, Any]]
    digest: str
    hold: str | None = None

    @property
    def has_files(self) -> bool:
        """Whether any call names files."""
        return any(call.get("files") for call in self.calls)


def parse_delivery(delivery_id: str, delivery: Any) -> Delivery:
    """Return a checked delivery.  Unknown members are left out.

    @raise BusBadRequest: the form is wrong; the message says where.
    @raise Refusal: C{not-allowed}: a method or parameter that a worker may not use.
    """
    if not isinstance(delivery_id, str) or _DELIVERY_ID.fullmatch(delivery_id) is None:
        raise BusBadRequest("deliveryId must be 1 to 128 characters of A-Z a-z 0-9 . _ -")
    if not isinstance(delivery, dict) or delivery.get("kind") not in ("final", "notice"):
        raise BusBadRequest("delivery must be an object of kind final or notice")
    calls = delivery.get("calls")
    if not isinstance(calls, list) or not 1 <= len(calls) <= MOST_CALLS:
        raise BusBadRequest(f"a delivery has 1 to {MOST_CALLS} calls")
    checked = [_a_call(call) for call in calls]
    if sum(map(_count, checked)) > MOST_FORMS:
        raise BusBadRequest(f"a delivery has at most {MOST_FORMS} calls in all its forms")
    content = _canonical({"kind": delivery["kind"], "calls": _without_directories(checked)})
    digest = hashlib.sha256(content).hexdigest()
    return Delivery(kind=delivery["kind"], calls=checked, digest=digest, hold=_hold(delivery))


def _hold(delivery: dict[str, Any]) -> str | None:
    """Return why a delivery is to be held back.

    Whose it is is proven by the connection that it comes on; a worker that names the owner all the same
    must name it whole (C{stableKey}, C{stableKeyVersion} 1), or nobody can tell whom it speaks for.
    """
    if delivery.get("knownIncomplete", False) is not False:
        return "known-incomplete"
    if "stableKey" not in delivery and "stableKeyVersion" not in delivery:
        return None
    key, version = delivery.get("stableKey"), delivery.get("stableKeyVersion")
    whole = isinstance(key, str) and _STABLE_KEY.fullmatch(key) is not None
    return None if whole and type(version) is int and version == 1 else "owner-malformed"


def _a_call(call: Any, depth: int = 0) -> dict[str, Any]:
    if not isinstance(call, dict) or not isinstance(call.get("params"), dict):
        raise BusBadRequest("a call is an object with method and params")
    method, params = call.get("method"), call["params"]
    if not isinstance(method, str) or method not in METHODS:
        raise Refusal("not-allowed", "a delivery cannot call this method")
    if any(name in params for name in _ADDRESS):
        raise BusBadRequest("chat_id and message_thread_id are set by the leader")
    _refuse_elsewhere(params)
    files = call.get("files") or []
    if not isinstance(files, list) or len(files) > MOST_FILES:
        raise BusBadRequest(f"files is a list of at most {MOST_FILES}")
    checked: dict[str, Any] = {"method": method, "params": params}
    if files:
        checked["files"] = [_a_file(file) for file in files]
    if "otherwise" in call:
        checked["otherwise"] = _other_forms(call["otherwise"], depth)
    return checked


def _other_forms(calls: Any, depth: int) -> list[dict[str, Any]]:
    """Return what is sent instead when Telegram refuses a call's markup."""
    if not isinstance(calls, list) or not calls or depth == DEEPEST:
        raise BusBadRequest(f"otherwise is a list of calls, at most {DEEPEST} times in each other")
    checked = [_a_call(call, depth + 1) for call in calls]
    if any("files" in call for call in checked):
        raise BusBadRequest("a call that is sent instead of another has no files")
    return checked


def _count(call: dict[str, Any]) -> int:
    return 1 + sum(map(_count, call.get("otherwise", ())))


def _without_directories(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what is equal for equal content: each instance has its own uploads directory."""
    return [
        {
            **call,
            "files": [{**file, "path": file["path"].rpartition("/")[2]} for file in call["files"]],
        }
        if "files" in call
        else call
        for call in calls
    ]


def _refuse_elsewhere(params: dict[str, Any]) -> None:
    """Refuse what would send to another place, spend the owner's money or read a server's disk."""
    reply = params.get("reply_parameters")
    elsewhere = isinstance(reply, dict) and "chat_id" in reply
    if elsewhere or any(name in params for name in _ELSEWHERE):
        raise Refusal("not-allowed", "a delivery goes to its own Thread only")
    media = [value for name, value in params.items() if name not in _TEXTS]
    if _names_a_local_file(media):
        raise Refusal("not-allowed", "files are sent as uploads, not by address")


def _names_a_local_file(value: Any) -> bool:
    """Whether a C{file:} address stands in C{value}, which a local server would open."""
    if isinstance(value, str):
        return "file:" in value[:4096].lower()
    if isinstance(value, dict):
        texts = ("caption", "caption_entities")
        return any(_names_a_local_file(item) for name, item in value.items() if name not in texts)
    return isinstance(value, list) and any(_names_a_local_file(item) for item in value)


def _a_file(file: Any) -> dict[str, str]:
    if not isinstance(file, dict):
        raise BusBadRequest("a file is an object with field, path, filename and mimeType")
    field, path = file.get("field"), file.get("path")
    filename, mime_type = file.get("filename"), file.get("mimeType")
    if not isinstance(field, str) or _FIELD.fullmatch(field) is None:
        raise BusBadRequest("a file's field is 1 to 64 letters, digits or _")
    if not isinstance(path, str) or not path.startswith("/") or "\0" in path:
        raise BusBadRequest("a file's path is absolute")
    if not isinstance(filename, str) or not 1 <= len(filename) <= 255:
        raise BusBadRequest("a file's filename has 1 to 255 characters")
    if not isinstance(mime_type, str) or _MIME_TYPE.fullmatch(mime_type) is None:
        raise BusBadRequest("a file's mimeType looks like text/plain")
    return {"field": field, "path": path, "filename": filename, "mimeType": mime_type}


def _canonical(content: dict[str, Any]) -> bytes:
    try:
        data = canonical(content)
    except (TypeError, ValueError, RecursionError):
        raise BusBadRequest("a delivery is JSON with 64-bit numbers and whole characters") from None
    if len(data) > SIZE_LIMIT:
        raise BusBadRequest(f"a delivery has at most {SIZE_LIMIT} bytes")
    return data
