"""No prompt goes while Pi compacts its context, nor in the moment after."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from pitelegram.kernel.machine import Machine, Table

BREATH = 0.05
"""Seconds after a compaction in which Pi may still refuse."""
LONGEST = 300.0
"""Seconds after which a compaction that never ends keeps nothing waiting any more."""


STEPS: Table = {
    ("open", "begins"): "closed",
    ("closed", "ends"): "ending",
    ("closed", "due"): "given-up",
    ("ending", "begins"): "closed",
    ("ending", "due"): "open",
    ("given-up", "ends"): "open",
}
"""C{(state, input) -> state}; other inputs change nothing."""


class Compaction:
    """The gate that a compaction closes; drawn in C{docs/machines/compaction-gate.md}.

    It opens 50 ms after the end of the compaction, whether that went well or not; when no end was
    told for five minutes it opens too: a Pi that really still compacts refuses the prompt, which is
    held again and costs nothing.

    @param over: called when the gate opens.
    """

    _log = Logger()

    def __init__(self, clock: IReactorTime, over: Callable[[], None]) -> None:
        self._clock = clock
        self._over = over
        self._machine = Machine("open", STEPS)
        self._call: IDelayedCall | None = None

    def closed(self) -> bool:
        """Whether a prompt has to wait for the compaction."""
        return self._machine.now in ("closed", "ending")

    def look(self, compacting: bool) -> None:
        """Pi says whether it compacts."""
        event = "begins" if compacting else "ends"
        if not self._machine.can(event):
            return
        state = self._machine.feed(event)
        self.stop()
        if state == "open":
            self._over()
        else:
            seconds = LONGEST if state == "closed" else BREATH
            self._call = self._clock.callLater(seconds, self._due)

    def stop(self) -> None:
        """Call nobody any more."""
        call, self._call = self._call, None
        if call is not None and call.active():
            call.cancel()

    def _due(self) -> None:
        self._call = None
        if self._machine.feed("due") == "given-up":
            self._log.warn("Pi has not told of a compaction's end for minutes; prompts go on")
        self._over()
