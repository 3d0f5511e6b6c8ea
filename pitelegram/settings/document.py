"""The JSON text of C{telegram.json}, and changes to it that lose nobody's keys."""

from __future__ import annotations

import copy
import json
from typing import Any

from pitelegram.errors import ConfigError
from pitelegram.kernel import jsonio

IDENTITY_KEYS = (
    "botToken",
    "botTokenFile",
    "botId",
    "botUsername",
    "allowedUserId",
    "lastUpdateId",
)
"""Keys that older files keep at the root; they belong to C{profiles.default}."""

_CURSOR = "lastUpdateId"


class _Absent:
    """Stands for a key that is not there."""


_ABSENT = _Absent()


def parse(data: bytes) -> dict[str, Any]:
    """Parse a configuration.

    @raise ValueError: it is not one JSON object.
    """
    value = jsonio.exact(data.decode("utf-8-sig"), parse_constant=_refuse_constant)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def render(document: dict[str, Any]) -> bytes:
    """Return the text as it stands in the file: indented by tabs, with a newline at the end."""
    try:
        return (json.dumps(document, indent="\t", ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:  # a lone surrogate that another program wrote
        return (json.dumps(document, indent="\t") + "\n").encode()


def migrate(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with an identity at the root moved to C{profiles.default}.

    @raise ConfigError: root and C{profiles.default} disagree, or the root's identity has no token.
    """
    found = {key: document[key] for key in IDENTITY_KEYS if key in document}
    if not found:
        return document
    result = {key: value for key, value in document.items() if key not in found}
    profiles = result.get("profiles", {})
    if not isinstance(profiles, dict) or not isinstance(profiles.get("default", {}), dict):
        raise ConfigError("profiles in telegram.json must be an object of objects")
    default = dict(profiles.get("default", {}))
    for key, value in found.items():
        if key == _CURSOR and key in default:
            default[key] = _later(value, default[key])
        elif default.setdefault(key, value) != value:
            raise ConfigError(
                "telegram.json has one bot identity at its root and another in profiles.default;"
                " remove one of them"
            )
    if set(found) - {_CURSOR} and not {"botToken", "botTokenFile"} & set(default):
        raise ConfigError(
            "telegram.json has a bot identity at its root without a token; run pi-telegram setup"
        )
    result["profiles"] = {**profiles, "default": default}
    return result


def merge(base: Any, desired: Any, latest: Any) -> Any:
    """Return C{latest} with the changes that lead from C{base} to C{desired} applied to it.

    Objects merge key by key; where both changed the same leaf, the desired one wins.  A polling
    cursor only grows and is never removed.
    """
    if desired == base:
        return latest
    if not (isinstance(desired, dict) and isinstance(latest, dict)):
        return desired
    before = base if isinstance(base, dict) else {}
    result = dict(latest)
    for key in {**before, **desired}:
        value = _merged_key(key, before, desired, latest)
        if value is _ABSENT:
            result.pop(key, None)
        else:
            result[key] = value
    return result


def without_tokens(document: dict[str, Any]) -> dict[str, Any]:
    """Return a copy in which no profile has a token or a reference to one."""
    result = copy.deepcopy(document)
    profiles = result.get("profiles")
    places = [result, *(profiles.values() if isinstance(profiles, dict) else ())]
    for place in places:
        if isinstance(place, dict):
            place.pop("botToken", None)
            place.pop("botTokenFile", None)
    return result


def _merged_key(key: str, base: Any, desired: Any, latest: Any) -> Any:
    if key not in desired:
        if key == _CURSOR or key not in base:
            return latest.get(key, _ABSENT)
        return _ABSENT
    if key == _CURSOR and key in latest:
        return _later(desired[key], latest[key])
    if key not in latest:
        return _ABSENT if key in base and base[key] == desired[key] else desired[key]
    return merge(base.get(key, _ABSENT), desired[key], latest[key])


def _later(one: Any, other: Any) -> Any:
    numbers = [value for value in (one, other) if isinstance(value, int)]
    return max(numbers) if numbers else one


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
