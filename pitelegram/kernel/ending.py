"""Seeing the end of a process that is not our child."""

from __future__ import annotations

import os
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFDSet, IReadDescriptor
from zope.interface import implementer

from pitelegram.ids import ProcessBirth
from pitelegram.kernel.birth import is_alive
from pitelegram.kernel.observers import OneShot

POLL_SECONDS = 1.0


class ProcessEnd:
    """Watches one process birth until it is gone.

    Through a process descriptor where the system has them, else by looking each second.

    @param reactor: provides C{IReactorTime}; with C{IReactorFDSet} too, descriptors are used.
    @param alive: tells whether a birth is alive (for tests).
    """

    def __init__(self, birth: ProcessBirth, reactor: Any, alive: Any = is_alive) -> None:
        self.birth = birth
        self._reactor = reactor
        self._alive = alive
        self._ended: OneShot[None] = OneShot()
        self._descriptor: _Descriptor | None = None
        self._call: Any = None
        self._begin()

    @property
    def ended(self) -> bool:
        """Whether the end was seen."""
        return self._ended.fired

    def when_ended(self) -> Deferred[None]:
        """Fire once the process is gone; never after L{stop}."""
        return self._ended.when()

    def stop(self) -> None:
        """Stop watching.  Safe to repeat."""
        if self._call is not None and self._call.active():
            self._call.cancel()
        self._call = None
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            descriptor.close()

    def _begin(self) -> None:
        if IReactorFDSet.providedBy(self._reactor) and hasattr(os, "pidfd_open"):
            try:
                fd = os.pidfd_open(self.birth.pid)
            except ProcessLookupError:
                self._ended.fire(None)
                return
            except OSError:
                pass  # too many descriptors, or a kernel without them: look each second instead
            else:
                self._descriptor = _Descriptor(fd, self._reactor, self._gone, self._given_up)
        if self._alive(self.birth):
            if self._descriptor is None:
                self._call = self._reactor.callLater(POLL_SECONDS, self._look)
        else:
            self._gone()

    def _look(self) -> None:
        self._call = None
        if self._alive(self.birth):
            self._call = self._reactor.callLater(POLL_SECONDS, self._look)
        else:
            self._gone()

    def _given_up(self) -> None:
        """The reactor watches the descriptor no more: look each second instead."""
        if self._descriptor is not None:
            self._descriptor = None
            self._look()

    def _gone(self) -> None:
        self.stop()
        self._ended.fire(None)


@implementer(IReadDescriptor)
class _Descriptor:
    """A process descriptor in the reactor: readable means that the process ended."""

    def __init__(self, fd: int, reactor: Any, gone: Any, given_up: Any) -> None:
        self._fd = fd
        self._reactor = reactor
        self._gone = gone
        self._given_up = given_up
        reactor.addReader(self)

    def fileno(self) -> int:
        """The descriptor, -1 once closed."""
        return self._fd

    def doRead(self) -> None:
        """The process ended."""
        self._gone()

    def connectionLost(self, reason: Any) -> None:
        """The reactor gave the descriptor up."""
        self.close()
        self._given_up()

    def logPrefix(self) -> str:
        """Name in the reactor's own messages."""
        return "process end"

    def close(self) -> None:
        """Leave the reactor and close.  Safe to repeat."""
        if self._fd >= 0:
            self._reactor.removeReader(self)
            os.close(self._fd)
            self._fd = -1
