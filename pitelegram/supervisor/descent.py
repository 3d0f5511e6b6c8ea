"""Going down the stop ladder: what is done in each phase."""

from __future__ import annotations

import enum
import signal
from typing import Any

from twisted.logger import Logger
from twisted.python.failure import Failure

from pitelegram.errors import BusError
from pitelegram.ids import ProcessBirth
from pitelegram.kernel.deferring import spawn
from pitelegram.supervisor.ladder import KILL_AGAIN_SECONDS, SIGNALS, Reach, phase_seconds
from pitelegram.supervisor.life import Event, Life, State
from pitelegram.supervisor.parts import Parts

REST_SECONDS = 1.0
"""How long a worker has to end its own children after SIGTERM before they are signalled too."""

_MODES = {State.DRAINING: "drain", State.ABORTING: "abort"}


class Purpose(enum.Enum):
    """Why a worker goes down the ladder."""

    STOP = "stop"
    RESTART = "restart"
    LATE = "late"


class Descent:
    """One way down.  Asks over the bus first, then signals; the machine says when.

    @param reach: whom signals may reach.
    """

    _log = Logger()

    def __init__(self, parts: Parts, life: Life, binding_key: str, reach: Reach) -> None:
        self._parts = parts
        self._life = life
        self._binding_key = binding_key
        self._reach = reach
        self._phase: State | None = None
        self._later: Any = None

    def enter(self, phase: State, worker: ProcessBirth | None) -> None:
        """Begin a phase.

        @param worker: the worker process while it may live.
        """
        self._cancel()
        self._phase = phase
        if phase is State.KILLING:
            self._kill(worker)
            return
        seconds = phase_seconds(phase, self._parts.stop_seconds)
        self._life.arm(seconds, Event.PHASE, "policy", "this phase took its whole time")
        if phase in _MODES:
            self._ask(_MODES[phase])
        elif phase is State.TERMINATING:
            self._reach.signal_worker(worker, signal.SIGTERM)
            wait = REST_SECONDS if worker is not None else 0.0
            self._later = self._parts.reactor.callLater(wait, self._rest)

    def worker_gone(self) -> None:
        """The worker process is gone, but something of its binding lives: do not wait for answers."""
        if self._phase in SIGNALS:
            self._rest()
        else:
            self._life.receive(Event.DEAF, "daemon", "the worker is gone, but not all it started")

    def close(self) -> None:
        """Do nothing more."""
        self._cancel()

    def _ask(self, mode: str) -> None:
        follower = self._parts.registry.live(self._binding_key)
        if follower is None:
            return
        left = int(self._seconds_to_terminate() * 1000)
        asking = follower.link.shutdown(mode, left)
        asking.addErrback(self._not_asked)
        spawn(self._log, "asking a worker to end", asking)

    def _not_asked(self, failure: Failure) -> None:
        """Its link ended meanwhile: the next phases do without."""
        failure.trap(BusError)
        self._log.info("a worker was not asked to end: {reason}", reason=str(failure.value))

    def _seconds_to_terminate(self) -> float:
        """What is left until SIGTERM, from the phase that begins now."""
        phases = (State.DRAINING, State.ABORTING, State.CLOSING)
        assert self._phase is not None
        left = phases[phases.index(self._phase) :]
        return sum(phase_seconds(phase, self._parts.stop_seconds) for phase in left)

    def _kill(self, worker: ProcessBirth | None) -> None:
        self._reach.signal_worker(worker, signal.SIGKILL)
        self._reach.signal_rest(signal.SIGKILL)
        self._later = self._parts.reactor.callLater(KILL_AGAIN_SECONDS, self._kill, worker)

    def _rest(self) -> None:
        self._cancel()
        assert self._phase is not None
        self._reach.signal_rest(SIGNALS[self._phase])

    def _cancel(self) -> None:
        if self._later is not None and self._later.active():
            self._later.cancel()
        self._later = None
