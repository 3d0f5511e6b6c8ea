"""One at a time per key."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from twisted.internet.defer import Deferred, DeferredLock

T = TypeVar("T")


class KeyedLock:
    """Runs work one after the other for equal keys, side by side for different ones."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, DeferredLock] = {}

    def run(self, key: Hashable, work: Callable[[], Deferred[T]]) -> Deferred[T]:
        """Run C{work} when nothing else of C{key} runs; fires with its result."""
        lock = self._locks.setdefault(key, DeferredLock())
        running: Deferred[T] = lock.run(work)
        return running.addBoth(self._tidy, key, lock)

    def _tidy(self, result: T, key: Hashable, lock: DeferredLock) -> T:
        if not lock.locked and not lock.waiting and self._locks.get(key) is lock:
            del self._locks[key]
        return result
