"""JSON: fast, tolerant of what Node writes, and canonical where bytes are compared."""

from __future__ import annotations

import json
from typing import Any

import orjson

_TOO_DEEP = "nested too deeply"


def loads(data: bytes | str) -> Any:
    """Parse JSON; lone surrogates (which Node emits when it cuts a string) become U+FFFD.

    @raise ValueError: if it is not JSON, or nested too deeply.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    try:
        return _without_surrogates(json.loads(text))
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def exact(data: bytes | str, **options: Any) -> Any:
    """Parse JSON that will be written back: every number stays as it is.

    @param options: as for C{json.loads}.
    @raise ValueError: if it is not JSON, or nested too deeply.
    """
    try:
        return json.loads(data, **options)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def dumps(value: Any) -> bytes:
    """Return compact UTF-8 JSON; lone surrogates become U+FFFD.

    @raise ValueError: what was parsed here cannot be written: nested more than 250 deep, or with an
        integer beyond 64 bits.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        pass
    try:
        return orjson.dumps(_without_surrogates(value))
    except (TypeError, RecursionError) as error:
        raise ValueError(f"no value for JSON: {error}") from None


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
