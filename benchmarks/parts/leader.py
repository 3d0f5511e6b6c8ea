"""The daemon as it is, with a supervisor that only knows what was prepared."""

from __future__ import annotations

import os
from pathlib import Path
from time import monotonic_ns
from typing import Any

import attrs
from twisted.application.service import Service
from twisted.internet import reactor as _reactor  # noqa: TID253  (a process of its own)
from twisted.internet.defer import Deferred
from twisted.logger import (
    FilteringLogObserver,
    LogLevel,
    LogLevelFilterPredicate,
    globalLogBeginner,
    textFileLogObserver,
)
from zope.interface import implementer

from parts.talking import Orders, obey
from pitelegram.daemon.service import Daemon
from pitelegram.kernel.paths import Paths
from pitelegram.leader import LeaderService
from pitelegram.routing.interfaces import IBindingPolicy, IExpectation
from pitelegram.settings.file import SettingsFile
from pitelegram.settings.options import resolve_options

reactor: Any = _reactor


@implementer(IBindingPolicy, IExpectation)
class Prepared(Service):
    """Stands where the supervisor stands: every spec in the store is wanted and expected."""

    def __init__(self, leader: LeaderService) -> None:
        self._leader = leader

    def managed(self, spec_id: str, spawn_id: str) -> str | None:
        """See L{IBindingPolicy.managed}."""
        spec = self._leader.specs.get(spec_id)
        return None if spec is None else spec.directory

    def name(self, spec_id: str) -> str:
        """See L{IBindingPolicy.name}."""
        spec = self._leader.specs.get(spec_id)
        return spec_id if spec is None else spec.name

    def is_starting(self, binding_key: str) -> bool:
        """See L{IExpectation.is_starting}."""
        return False

    def is_expected(self, binding_key: str) -> bool:
        """See L{IExpectation.is_expected}."""
        return True

    def views(self) -> list[Any]:
        """Nobody is listed."""
        return []


@attrs.define(eq=False)
class Stamped:
    """The journal, with a note of when each row was settled on disk.

    @ivar times: by update, in the order in which they came.
    """

    _journal: Any
    _retained: int
    times: dict[int, int] = attrs.field(factory=dict)
    wanted: int = 0
    orders: Orders | None = None
    first: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    def settle(self, seqs: Any) -> Deferred[None]:
        """Settle, and note the time of the commit."""
        rows = list(seqs)
        return self._journal.settle(rows).addCallback(self._settled, rows)  # type: ignore[no-any-return]

    def _settled(self, _: None, rows: list[int]) -> None:
        now = monotonic_ns()
        for seq in rows:
            self.times[seq - self._retained - 1] = now
        self.look()

    def watch(self, first: int, count: int) -> None:
        """Say when so many more are settled."""
        self.first, self.wanted = first, count
        self.look()

    def look(self) -> None:
        """Say it."""
        if self.wanted and len(self.times) >= self.first + self.wanted:
            last = self.first + self.wanted
            assert self.orders is not None
            self.orders.say(times=[self.times[number] for number in range(self.first, last)])
            self.wanted = 0


def run(agent_dir: str, retained: int, followers: int) -> None:
    """Be the daemon until the parent goes away."""
    paths = Paths(Path(agent_dir))
    log = open(paths.agent_dir / "leader.log", "w")  # noqa: SIM115  (open until the end)
    only = LogLevelFilterPredicate(defaultLogLevel=LogLevel.info)
    globalLogBeginner.beginLoggingTo(
        [FilteringLogObserver(textFileLogObserver(log), [only])], redirectStandardIO=False
    )
    settings = SettingsFile(paths, os.environ).load(with_token=False)
    options = resolve_options({}, {}, settings)
    daemon = Daemon(paths, options, os.environ, lambda leader, _: Prepared(leader), reactor)
    state: list[Stamped] = []

    def begin() -> None:
        daemon.startService()
        wait()

    def wait() -> None:
        leader = daemon.leader
        if leader is None or len(leader.registry.followers()) < followers:
            if leader is not None and not state:
                carrier = leader.router._carrier
                carrier.journal = Stamped(carrier.journal, retained, orders=orders)
                state.append(carrier.journal)
                orders.say(leading=True)
            reactor.callLater(0.05, wait)
        elif not all(follower.ready for follower in leader.registry.followers()):
            reactor.callLater(0.05, wait)
        else:
            orders.say(registered=True)

    def order(words: dict[str, Any]) -> None:
        state[0].watch(words["first"], words["count"])

    orders = obey(reactor, order)
    reactor.callWhenRunning(begin)
    reactor.addSystemEventTrigger("before", "shutdown", daemon.stopService)
    reactor.run()
