"""The form of JSON values on the wire: types and lengths, no meaning."""

from __future__ import annotations

import re
from typing import Any

from pitelegram.errors import BusBadRequest

INSTANCE = re.compile(r"[0-9]{1,10}:[0-9]{1,16}")
"""C{<pid>:<milliseconds>}"""

DELIVERY_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
MOST_IDS = 1000
"""Delivery ids in one C{confirmSettled}."""

_TEXT_LIMIT = 4096
_OPTIONAL_TEXTS = (
    "previousInstanceId",
    "ownerId",
    "profileKey",
    "sessionId",
    "sessionFile",
    "requestedName",
    "slot",
    "threadName",
)


def an_object(value: Any, name: str) -> dict[str, Any]:
    """Return C{value} if it is a JSON object. @raise BusBadRequest: it is not."""
    if not isinstance(value, dict):
        raise BusBadRequest(f"{name} must be an object")
    return value


def a_list_of_objects(value: Any, name: str) -> list[dict[str, Any]]:
    """Return C{value} if it is a list of objects; null is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise BusBadRequest(f"{name} must be a list of objects")
    return value


def a_list_of_ids(value: Any) -> list[str]:
    """Return C{value} if it is a list of delivery ids."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BusBadRequest("deliveryIds must be a list of strings")
    if len(value) > MOST_IDS:
        raise BusBadRequest(f"at most {MOST_IDS} delivery ids go at once")
    return value


def a_target(value: Any, name: str) -> dict[str, int] | None:
    """Return C{value} if it is null or a target with integers."""
    if value is None:
        return None
    target = an_object(value, name)
    thread = target.get("threadId")
    if type(target.get("chatId")) is not int or not (thread is None or type(thread) is int):
        raise BusBadRequest(f"{name} needs an integer chatId and perhaps a threadId")
    return target


def a_registration(value: Any) -> dict[str, Any]:
    """Check a registration as a follower sends it.

    @raise BusBadRequest: a field is missing or of the wrong type; the message names it.
    """
    registration = an_object(value, "registration")
    instance = registration.get("instanceId")
    if not isinstance(instance, str) or INSTANCE.fullmatch(instance) is None:
        raise BusBadRequest("instanceId must be <pid>:<milliseconds>")
    if registration.get("kind") not in ("managed", "attached"):
        raise BusBadRequest("kind must be managed or attached")
    for name in ("processBirthId", "cwd"):
        _text(registration, name, required=True)
    for name in _OPTIONAL_TEXTS:
        _text(registration, name, required=False)
    for name in ("pid", "connectedAtMs"):
        number = registration.get(name)
        if type(number) is not int or number < 0:
            raise BusBadRequest(f"{name} must be a whole number")
    if registration["pid"] == 0:
        raise BusBadRequest("pid must be a process id")
    if not isinstance(registration.get("sessionGeneration"), (int, str)):
        raise BusBadRequest("sessionGeneration is missing")
    a_target(registration.get("target"), "target")
    return registration


def _text(registration: dict[str, Any], name: str, required: bool) -> None:
    text = registration.get(name)
    if text is None and not required:
        return
    if not isinstance(text, str) or not text or len(text) > _TEXT_LIMIT or "\0" in text:
        raise BusBadRequest(f"{name} must be a text of 1 to {_TEXT_LIMIT} characters")
