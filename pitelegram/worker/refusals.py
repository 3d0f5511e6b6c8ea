"""How long to wait after Pi refused a prompt, and whether to tell."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from pitelegram.kernel.backoff import Backoff


class Patience:
    """A timer between two attempts to hand a prompt.

    A refusal that passes by itself is tried again after 1 to 60 s; one that needs the operator
    after 1 to 10 minutes, beside the new prompt or changed model that usually ends it.

    @param again: called when it is time.
    """

    def __init__(self, clock: IReactorTime, random: Random, again: Callable[[], None]) -> None:
        self._clock = clock
        self._again = again
        self._short = Backoff(1.0, 60.0, random)
        self._long = Backoff(60.0, 600.0, random)
        self._call: IDelayedCall | None = None
        self._told: set[str] = set()

    def wait(self, passing: bool) -> None:
        """Start the timer."""
        self.stop()
        delay = (self._short if passing else self._long).next()
        self._call = self._clock.callLater(delay, self._due)

    def stop(self) -> None:
        """Stop the timer."""
        call, self._call = self._call, None
        if call is not None and call.active():
            call.cancel()

    def tell(self, reason: str) -> bool:
        """Whether the operator was not told of this reason since a prompt was last accepted."""
        if reason in self._told:
            return False
        self._told.add(reason)
        return True

    def succeeded(self) -> None:
        """Pi took a prompt: start over."""
        self._short.reset()
        self._long.reset()
        self._told.clear()

    def _due(self) -> None:
        self._call = None
        self._again()
