"""How often a worker ended, and that it failed for good: remembered beyond the daemon that counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

from twisted.logger import Logger

from pitelegram.kernel.deferring import spawn
from pitelegram.kernel.redact import redact_public
from pitelegram.store.interfaces import ISpecs
from pitelegram.store.rows import Spec
from pitelegram.supervisor.policy import WINDOW_SECONDS, RestartPolicy

FAILURE_LIMIT = 300

LATEST_MS = 1 << 53
"""Times from here on are damage."""


class Record:
    """The restart policy of one spec, with a memory in the store.

    A daemon that is restarted gives a crashing worker no fresh budget, and does not start by itself
    what had failed for good.  Crashes are kept in wall time; one that seems to lie in the future, or
    longer ago than the window, counts as just now, or not at all.

    @ivar failure: why it failed for good, None when it did not.
    """

    _log = Logger()

    def __init__(
        self,
        specs: ISpecs,
        spec: Spec,
        random: Random,
        monotonic: Callable[[], float],
        now: Callable[[], float],
    ) -> None:
        self._specs = specs
        self._spec_id = spec.spec_id
        self._now = now
        self._policy = RestartPolicy(random, monotonic)
        self._crashes = [at for at in _times(spec.crashes) if now() - at / 1000 <= WINDOW_SECONDS]
        ages = [max(0.0, now() - at / 1000) for at in self._crashes]
        self._policy.recall(spec.restarts, sorted(ages, reverse=True))
        self.failure = spec.failure

    @property
    def restarts(self) -> int:
        """Restarts since an operator started this worker."""
        return self._policy.restarts

    def running(self) -> None:
        """The worker is ready now."""
        self._policy.running()

    def crashed(self, counted: bool = True) -> float | None:
        """The worker ended; the pause before the next start, None when it is enough."""
        pause = self._policy.crashed(counted)
        if counted and pause is not None:
            self._crashes = [*self._crashes, int(self._now() * 1000)][-self._policy.most :]
            self._store()
        return pause

    def failed(self, reason: str) -> None:
        """It failed for good."""
        self.failure = redact_public(reason, FAILURE_LIMIT)
        self._store()

    def reset(self) -> None:
        """An operator takes over: everything before is forgotten."""
        known = self._crashes or self.failure is not None or self._policy.restarts
        self._policy.reset()
        if known:
            self._crashes, self.failure = [], None
            self._store()

    def _store(self) -> None:
        storing = self._specs.set_record(
            self._spec_id, self._policy.restarts, json.dumps(self._crashes), self.failure
        )
        spawn(self._log, "recording how a worker ended", storing)


def _times(text: str) -> list[int]:
    try:
        found = json.loads(text)
    except ValueError:
        return []
    if not isinstance(found, list):
        return []
    return [each for each in found if type(each) is int and 0 <= each < LATEST_MS]
