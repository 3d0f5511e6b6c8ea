"""The one place that says what an answer, or its absence, means.

Nothing here repeats, waits or logs.  An error made here never carries the exception it was made
from: that one may know the address, and the address holds the token.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from twisted.internet import error as net
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure

from pitelegram.errors import (
    CertainlyUnsent,
    Conflict,
    Refused,
    TelegramError,
    Unauthorized,
    Uncertain,
)
from pitelegram.kernel import jsonio

LONGEST_WAIT = 86_400.0
"""The longest C{retry_after} that is believed, in seconds."""

_ALREADY_SO = ("message is not modified", "topic_not_modified")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]+")
_DESCRIPTION_LIMIT = 500


class SetupFailed(Exception):
    """A connection could not be made ready for a request; the text is ours and tells no secret."""


class BodyTooBig(Exception):
    """An answer went on beyond the limit."""


class DeadlineExpired(Exception):
    """Our own timer fired."""


def read_answer(
    method: str, status: int, retry_after: str | None, body: bytes, secret: str = ""
) -> Any:
    """Return C{result} of a complete answer.

    @param status: the HTTP status.
    @param retry_after: the C{Retry-After} header, if there was one.
    @param body: the whole body.
    @param secret: is replaced, should the answer's text contain it.
    @raise TelegramError: if the answer is not a success.
    """
    answer = _json_object(body)
    if answer is None:
        raise _unreadable(method, status, retry_after)
    if answer.get("ok") is True:
        if answer.get("result") is None:
            raise Uncertain(method, 0, "the answer has no result")
        return answer["result"]
    if answer.get("ok") is not False:
        raise _unreadable(method, status, retry_after)
    code = answer.get("error_code")
    code = code if type(code) is int else status
    description = _clean(answer.get("description"), secret)
    if code == 400 and any(text in description.lower() for text in _ALREADY_SO):
        return True
    raise _refusal(method, code, description, _wait(answer, retry_after))


def transport_error(method: str, error: BaseException, written: bool) -> TelegramError:
    """Return the error of a call that got no complete answer.

    @param error: what the HTTP client raised.
    @param written: whether the last byte of the request had been given to a ready connection.
    """
    sentence = _explain(error)
    if written:
        return Uncertain(method, 0, sentence)
    return CertainlyUnsent(method, 0, sentence)


def is_cancelled(error: BaseException) -> bool:
    """Whether a cancellation is the cause, at whatever depth the HTTP client wrapped it."""
    return any(
        isinstance(cause, (CancelledError, net.ConnectingCancelledError)) for cause in causes(error)
    )


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what its C{reasons} wrap, outermost first."""
    yield error
    for reason in getattr(error, "reasons", None) or ():
        inner = reason.value if isinstance(reason, Failure) else reason
        if isinstance(inner, BaseException):
            yield from causes(inner)


def _json_object(body: bytes) -> dict[str, Any] | None:
    try:
        answer = jsonio.loads(body)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def _unreadable(method: str, status: int, retry_after: str | None) -> TelegramError:
    if status == 429:
        return CertainlyUnsent(method, 429, "too many requests", _seconds(retry_after))
    return Uncertain(method, 0, f"HTTP {status} without a readable answer")


def _refusal(method: str, code: int, description: str, wait: float | None) -> TelegramError:
    if code == 429:
        return CertainlyUnsent(method, code, description, wait)
    if code >= 500:
        return Uncertain(method, code, description)
    if code == 401:
        return Unauthorized(method, code, description)
    if code == 409:
        return Conflict(method, code, description)
    return Refused(method, code, description)


def _wait(answer: dict[str, Any], header: str | None) -> float | None:
    parameters = answer.get("parameters")
    inside = parameters.get("retry_after") if isinstance(parameters, dict) else None
    wait = _seconds(inside)
    return _seconds(header) if wait is None else wait


def _seconds(value: Any) -> float | None:
    if value is None or isinstance(value, bool):
        return None
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    if not math.isfinite(seconds) or seconds < 0:
        return None
    return min(seconds, LONGEST_WAIT)


def _clean(description: Any, secret: str) -> str:
    if not isinstance(description, str) or not description:
        return "refused without a reason"
    if secret:
        description = description.replace(secret, "<token>")
    return _UNPRINTABLE.sub(" ", description)[:_DESCRIPTION_LIMIT]


_SENTENCES: tuple[tuple[type[BaseException], str], ...] = (
    (DeadlineExpired, "no complete answer in time"),
    (BodyTooBig, "the answer is larger than allowed"),
    (net.DNSLookupError, "the server's name could not be looked up"),
    (net.ConnectionRefusedError, "the connection was refused"),
    (net.TimeoutError, "the connection could not be made in time"),
    (net.ConnectError, "the connection could not be made"),
    (net.ConnectionDone, "the connection was closed before the answer was complete"),
    (net.ConnectionLost, "the connection was lost before the answer was complete"),
)


def _explain(error: BaseException) -> str:
    chain = list(causes(error))
    for cause in chain:
        if isinstance(cause, SetupFailed):
            return str(cause)
    for kind, sentence in _SENTENCES:
        if any(isinstance(cause, kind) for cause in chain):
            return sentence
    return "the connection failed before the answer was complete"
