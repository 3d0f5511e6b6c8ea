"""The life of one Pi process as its host sees it; drawn in C{docs/machines/pi-host.md}."""

from __future__ import annotations

from enum import Enum

from pitelegram.errors import PiGone, PiRefused


class Life(Enum):
    """Where a host stands."""

    FRESH = "fresh"
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
    GONE = "gone"


TRANSITIONS: dict[Life, frozenset[Life]] = {
    Life.FRESH: frozenset({Life.STARTING, Life.GONE}),
    Life.STARTING: frozenset({Life.READY, Life.STOPPING, Life.GONE}),
    Life.READY: frozenset({Life.STOPPING, Life.GONE}),
    Life.STOPPING: frozenset({Life.GONE}),
    Life.GONE: frozenset(),
}
"""Every legal step."""


class LifeCycle:
    """Holds the state and refuses illegal steps.

    @ivar now: the present state.
    """

    def __init__(self) -> None:
        self.now = Life.FRESH

    def go(self, to: Life) -> None:
        """Step to another state.

        @raise RuntimeError: there is no such step; the caller has a fault.
        """
        if to not in TRANSITIONS[self.now]:
            raise RuntimeError(f"a Pi host cannot go from {self.now.value} to {to.value}")
        self.now = to

    def require_ready(self) -> None:
        """Let a request pass only while Pi is there for it.

        @raise PiGone: Pi has ended.
        @raise PiRefused: it is not up yet, or being stopped.
        """
        if self.now is Life.GONE:
            raise PiGone("Pi does not run any more")
        if self.now is not Life.READY:
            raise PiRefused(f"Pi takes nothing now ({self.now.value})")
