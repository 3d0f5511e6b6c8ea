"""JSON: fast, tolerant of what Node writes, and canonical where bytes are compared."""

from __future__ import annotations

import json
from typing import Any

import orjson


def loads(data: bytes | str) -> Any:
    """Parse JSON; lone surrogates (which Node emits when it cuts a string) become U+FFFD.

    @raise ValueError: if it is not JSON.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        text = data if isinstance(data, str) else data.decode("utf-8", "replace")
        return _without_surrogates(json.loads(text))


def dumps(value: Any) -> bytes:
    """Return compact UTF-8 JSON; lone surrogates become U+FFFD."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return orjson.dumps(_without_surrogates(value))


def canonical(value: Any) -> bytes:
    """Return JSON with sorted keys and no spaces, so that equal values give equal bytes."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def escaped(value: Any) -> bytes:
    """Return compact JSON in pure ASCII (what is written to Pi)."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    return value
