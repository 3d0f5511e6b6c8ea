"""Coroutines inside, Deferreds at every interface."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from pitelegram.errors import StoreFull

P = ParamSpec("P")
T = TypeVar("T")


def deferred(
    function: Callable[P, Coroutine[Deferred[Any], Any, T]],
) -> Callable[P, Deferred[T]]:
    """Turn a coroutine function into one that starts at once and returns a Deferred."""

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        return Deferred.fromCoroutine(function(*args, **kwargs))

    return wrapper


def spawn(
    log: Logger, what: str, work: Deferred[T] | Coroutine[Deferred[Any], Any, T]
) -> Deferred[T | None]:
    """Run C{work} in the background; a failure is logged as C{what} and swallowed."""
    running = work if isinstance(work, Deferred) else Deferred.fromCoroutine(work)
    return running.addErrback(lambda failure: log_failure(log, what, failure))


def log_failure(log: Logger, what: str, failure: Failure) -> None:
    """Log a failure with its traceback; of a full disk a sentence says all, again and again."""
    if failure.check(StoreFull):
        log.error("{what} failed: {reason}", what=what, reason=str(failure.value))
    else:
        log.failure("{what} failed", failure, what=what)


def gathered(works: Sequence[Deferred[T]]) -> Deferred[list[tuple[bool, Any]]]:
    """Fire with C{(succeeded, result or failure)} of each once all are done.

    Cancelling cancels all, the last one first: what waits for the earlier ones does not begin.
    """

    def cancel(_: object) -> None:
        for work in reversed(works):
            work.cancel()

    result: Deferred[list[tuple[bool, Any]]] = Deferred(cancel)
    DeferredList(works, consumeErrors=True).addCallback(result.callback)
    return result


def sleep(clock: IReactorTime, seconds: float) -> Deferred[None]:
    """Fire after C{seconds} of C{clock}; cancelling stops the timer."""
    waiting: Deferred[None] = Deferred(lambda _: call.cancel())
    call = clock.callLater(seconds, waiting.callback, None)
    return waiting
