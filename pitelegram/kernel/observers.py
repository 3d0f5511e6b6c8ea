"""One-shot observers: many may wait for one thing that happens once."""

from __future__ import annotations

from typing import Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

T = TypeVar("T")


class OneShot(Generic[T]):
    """A result that will be there once, for any number of waiters, early or late."""

    def __init__(self) -> None:
        self._fired = False
        self._result: T | Failure | None = None
        self._waiting: list[Deferred[T]] = []

    @property
    def fired(self) -> bool:
        """Whether L{fire} was called."""
        return self._fired

    def when(self) -> Deferred[T]:
        """Return a new Deferred for the result; cancelling it disturbs nobody else."""
        waiter: Deferred[T] = Deferred(lambda d: self._waiting.remove(d))
        self._waiting.append(waiter)
        if self._fired:
            self._flush()
        return waiter

    def fire(self, result: T | Failure) -> None:
        """Give the result; a second one is ignored."""
        if not self._fired:
            self._fired = True
            self._result = result
            self._flush()

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            waiter.callback(self._result)  # type: ignore[arg-type]
