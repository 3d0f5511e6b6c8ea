"""JSON of the command boundary: what two readers could understand differently is refused."""

from __future__ import annotations

import json
from typing import Any

MAX_INTEGER = 2**63 - 1

MAX_DEPTH = 64


class NotAnObject(ValueError):
    """The bytes are not JSON, or not a JSON object."""


class Ambiguous(ValueError):
    """A JSON object that readers could understand differently.

    It has a repeated key, a lone surrogate, C{NaN} or an infinity, an integer beyond 63 bits, or is
    nested too deeply.
    """


def parse_object(data: bytes) -> dict[str, Any]:
    """Parse one JSON object.

    @raise NotAnObject: broken UTF-8 or JSON, or another JSON value.
    @raise Ambiguous: see there.
    """
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_int=_small_integer,
            parse_float=_finite,
        )
    except Ambiguous:
        raise
    except RecursionError:
        raise Ambiguous("nested too deeply") from None
    except ValueError:
        raise NotAnObject("not JSON") from None
    if not isinstance(value, dict):
        raise NotAnObject("not a JSON object")
    _check(value, MAX_DEPTH)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Ambiguous("a key stands twice")
    return found


def _no_constant(_: str) -> Any:
    raise Ambiguous("NaN and infinities are not allowed")


def _small_integer(text: str) -> int:
    if len(text) > 20:
        raise Ambiguous("an integer is too large")
    number = int(text)
    if not -MAX_INTEGER - 1 <= number <= MAX_INTEGER:
        raise Ambiguous("an integer is too large")
    return number


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise Ambiguous("a number is too large")
    return number


def _check(value: Any, depth: int) -> None:
    if depth == 0:
        raise Ambiguous("nested too deeply")
    if isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise Ambiguous("half of a surrogate pair")
    elif isinstance(value, dict):
        for key, item in value.items():
            _check(key, depth)
            _check(item, depth - 1)
    elif isinstance(value, list):
        for item in value:
            _check(item, depth - 1)
