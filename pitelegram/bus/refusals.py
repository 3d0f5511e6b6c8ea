"""Refusals as they stand in a json answer."""

from __future__ import annotations

from typing import Any

from pitelegram.bus.forms import an_object
from pitelegram.errors import BusBadRequest, Refusal


def opened(value: Any) -> dict[str, Any]:
    """Return a json answer, or raise the refusal that it holds.

    @raise Refusal: the other side refused, with its code and fields.
    @raise BusBadRequest: it is neither.
    """
    answer = an_object(value, "the answer")
    if answer.get("ok") is not False:
        return answer
    error = an_object(answer.get("error"), "the refusal's error")
    code, message = error.get("code"), error.get("message")
    if not isinstance(code, str) or not isinstance(message, str):
        raise BusBadRequest("a refusal needs a code and a message")
    fields = {key: item for key, item in error.items() if key not in ("self", "code", "message")}
    raise Refusal(code, message, **fields)
