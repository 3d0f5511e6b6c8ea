"""The life of one worker: which state follows which, and which timer runs in it.

Drawing and table: C{docs/machines/worker-life.md}.
"""

from __future__ import annotations

import enum
from typing import Any

from twisted.internet.interfaces import IReactorTime
from zope.interface import Interface

READY_SECONDS = 60.0
ADOPT_SECONDS = 60.0


class State(str, enum.Enum):
    """Where a worker is in its life; the values are shown to operators."""

    STOPPED = "stopped"
    SPAWNING = "spawning"
    RUNNING = "running"
    DRAINING = "draining"
    ABORTING = "aborting"
    CLOSING = "closing"
    TERMINATING = "terminating"
    KILLING = "killing"
    BACKOFF = "backoff"
    FAILED = "failed"
    ADOPTING = "adopting"


class Event(enum.Enum):
    """What can happen to a worker."""

    START = "an operator or the start of the daemon wants it"
    ADOPT = "a process of an earlier daemon may live"
    READY = "it registered, and its Pi answers"
    DRAIN = "it is to end, and can be asked"
    END = "it is to end, and cannot be asked"
    PHASE = "the phase's share of time is over"
    DEAF = "nobody is left who could be asked"
    OVERDUE = "it did not register in time"
    CRASHED = "it is gone and will be started again"
    BROKEN = "it is gone and starting again would not help"
    AGAIN = "it is gone and is started anew at once"
    ENDED = "it is gone and stays so"
    ELAPSED = "the pause is over"


S, E = State, Event

LADDER = (S.DRAINING, S.ABORTING, S.CLOSING, S.TERMINATING, S.KILLING)
"""Phases of an end, in order."""

RESTING = (S.STOPPED, S.FAILED, S.BACKOFF)
"""States without a process."""

SETTLED = (S.RUNNING, *RESTING)
"""States in which a start has had its result."""

_GONE = {E.ENDED: S.STOPPED, E.AGAIN: S.SPAWNING, E.CRASHED: S.BACKOFF, E.BROKEN: S.FAILED}

TRANSITIONS: dict[State, dict[Event, State]] = {
    S.STOPPED: {E.START: S.SPAWNING, E.ADOPT: S.ADOPTING, E.BROKEN: S.FAILED},
    S.SPAWNING: {
        E.READY: S.RUNNING,
        E.DRAIN: S.DRAINING,
        E.END: S.TERMINATING,
        E.OVERDUE: S.TERMINATING,
        **_GONE,
    },
    S.RUNNING: {E.DRAIN: S.DRAINING, E.END: S.TERMINATING, **_GONE},
    S.DRAINING: {E.PHASE: S.ABORTING, E.DEAF: S.TERMINATING, **_GONE},
    S.ABORTING: {E.PHASE: S.CLOSING, E.DEAF: S.TERMINATING, **_GONE},
    S.CLOSING: {E.PHASE: S.TERMINATING, E.DEAF: S.TERMINATING, **_GONE},
    S.TERMINATING: {E.PHASE: S.KILLING, **_GONE},
    S.KILLING: dict(_GONE),
    S.BACKOFF: {
        E.ELAPSED: S.SPAWNING,
        E.START: S.SPAWNING,
        E.ENDED: S.STOPPED,
        E.END: S.TERMINATING,
    },
    S.FAILED: {E.START: S.SPAWNING, E.ENDED: S.STOPPED, E.END: S.TERMINATING},
    S.ADOPTING: {
        E.READY: S.RUNNING,
        E.DRAIN: S.DRAINING,
        E.END: S.TERMINATING,
        E.OVERDUE: S.ADOPTING,
        **_GONE,
    },
}


class ILifePort(Interface):
    """Who does what a L{Life} decides."""

    def entered(before: State, state: State, actor: str, reason: str) -> None:
        """A transition happened.  C{actor} is C{operator}, C{policy} or C{daemon}."""


class Life:
    """The machine.  It owns the one timer that may run in a state.

    @ivar state: where it is.
    """

    def __init__(self, clock: IReactorTime, port: Any) -> None:
        self._clock = clock
        self._port = port
        self._timer: Any = None
        self.state = State.STOPPED

    def receive(self, event: Event, actor: str, reason: str) -> bool:
        """Take an event; False when it means nothing in this state (then nothing happened)."""
        following = TRANSITIONS[self.state].get(event)
        if following is None:
            return False
        self.disarm()
        before, self.state = self.state, following
        self._port.entered(before, following, actor, reason)
        return True

    def arm(self, seconds: float, event: Event, actor: str, reason: str) -> None:
        """Send C{event} after C{seconds}, unless the state is left before."""
        self.disarm()
        self._timer = self._clock.callLater(seconds, self._fire, event, actor, reason)

    def disarm(self) -> None:
        """Let no timer run."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None

    def _fire(self, event: Event, actor: str, reason: str) -> None:
        self._timer = None
        self.receive(event, actor, reason)
