"""Whether anything of a worker lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pitelegram.ids import ProcessBirth
from pitelegram.kernel.ending import ProcessEnd
from pitelegram.kernel.flock import is_free
from pitelegram.supervisor.launch import Exit
from pitelegram.supervisor.parts import Parts

LOOK_SECONDS = 0.25


class Presence:
    """The worker process of one binding, and the lock that tells of all its processes.

    @param ended: called once per process with how it ended.
    @ivar process: the worker process as far as it is known.
    @ivar exit: how it ended, None while its end was not seen.
    """

    def __init__(self, parts: Parts, binding_key: str, ended: Callable[[Exit], None]) -> None:
        self._parts = parts
        self._lock = parts.paths.worker_lock(binding_key)
        self._tell = ended
        self._watch: ProcessEnd | None = None
        self._call: Any = None
        self.process: ProcessBirth | None = None
        self.exit: Exit | None = None

    @property
    def living(self) -> ProcessBirth | None:
        """The worker process, unless its end was seen."""
        return None if self.exit is not None else self.process

    def forget(self) -> None:
        """Nothing is known, and nothing watched."""
        self.close()
        self.process = self.exit = None

    def follow(self, process: ProcessBirth) -> None:
        """Take a process that is not our child for the worker, and see its end."""
        self._unwatch()
        self.process = process
        watch = self._watch = self._parts.watch(process)
        watch.when_ended().addCallback(lambda _: self._seen(watch))

    def ended(self, exit: Exit) -> None:
        """The process is gone."""
        if self.exit is None:
            self.exit = exit
            self._tell(exit)

    def lock_free(self) -> bool:
        """Whether no process holds the binding's lock."""
        return is_free(self._lock)

    def is_gone(self) -> bool:
        """Whether it is proven that nothing of the binding lives."""
        worker = self.living
        return (worker is None or not self._parts.alive(worker)) and self.lock_free()

    def look_later(self, look: Callable[[], None]) -> None:
        """Call C{look} in a moment; one at a time."""
        self.stop_looking()
        self._call = self._parts.reactor.callLater(LOOK_SECONDS, look)

    def stop_looking(self) -> None:
        """Do not call."""
        if self._call is not None and self._call.active():
            self._call.cancel()
        self._call = None

    def close(self) -> None:
        """Watch nothing any more."""
        self.stop_looking()
        self._unwatch()

    def _seen(self, watch: ProcessEnd) -> None:
        if watch is self._watch:
            self._watch = None
            self.ended(Exit())

    def _unwatch(self) -> None:
        if self._watch is not None:
            watch, self._watch = self._watch, None
            watch.stop()
