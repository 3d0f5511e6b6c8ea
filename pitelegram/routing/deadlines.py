"""When commands that nobody chose for expire, and when what could not be stored is tried again."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from pitelegram.routing.cases import Case, Cases

LOOK_AGAIN = 60.0
"""Seconds after which a deadline is compared with the wall clock again; somebody may set that."""

SOONEST = 1.0


@attrs.define(eq=False)
class Deadlines:
    """One timer for all cases.

    @param now_ms: the wall clock, which may be set back or forth.
    @param look_at: called with a case whose time is up, or whose last step was not committed.
    """

    _cases: Cases
    _clock: IReactorTime
    _now_ms: Callable[[], int]
    _look_at: Callable[[Case], None]
    _timer: IDelayedCall | None = attrs.field(default=None, init=False)
    _stopped: bool = attrs.field(default=False, init=False)

    def arm(self) -> None:
        """Something changed: look when the next case is due."""
        self._cancel()
        if self._stopped:
            return
        now = self._now_ms()
        waits = [
            (case.expires_ms - now) / 1000
            for case in self._cases
            if case.expires_ms is not None and case.asking
        ]
        waits += [LOOK_AGAIN for case in self._cases if case.broken]
        if waits:
            wait = min(LOOK_AGAIN, max(SOONEST, min(waits)))
            self._timer = self._clock.callLater(wait, self._fired)

    def stop(self) -> None:
        """Look at nothing more."""
        self._stopped = True
        self._cancel()

    def _fired(self) -> None:
        self._timer = None
        for case in self._cases:
            if not case.held and (case.broken or case.is_over(self._now_ms())):
                self._look_at(case)
        self.arm()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
