"""Simulated workers: the real bus client and the real inbox, and nothing behind them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from random import Random
from time import monotonic_ns
from typing import Any

from twisted.internet import reactor as _reactor  # noqa: TID253  (a process of its own)
from twisted.internet.defer import Deferred, succeed
from zope.interface import implementer

from parts.store import FIRST_UPDATE, credential, spec_id
from parts.talking import Orders, obey
from pitelegram.bus.follower import BusClient
from pitelegram.bus.interfaces import IBusFollower
from pitelegram.ids import managed_binding
from pitelegram.kernel.birth import own_birth
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.jsonio import dumps
from pitelegram.kernel.paths import Paths
from pitelegram.store.database import Database
from pitelegram.store.inbox import Inbox
from pitelegram.worker.endpoint import DaemonEndpoint

reactor: Any = _reactor


class Tally:
    """When each update was committed by its follower."""

    def __init__(self) -> None:
        self.times: dict[int, int] = {}
        self.first = self.wanted = 0
        self.orders: Orders | None = None

    def admitted(self, update_id: int) -> None:
        """Note the time."""
        self.times[update_id - FIRST_UPDATE] = monotonic_ns()
        self.look()

    def watch(self, first: int, count: int) -> None:
        """Say when so many more are there."""
        self.first, self.wanted = first, count
        self.look()

    def look(self) -> None:
        """Say it."""
        last = self.first + self.wanted
        if self.wanted and len(self.times) >= last:
            assert self.orders is not None
            self.orders.say(times=[self.times[number] for number in range(self.first, last)])
            self.wanted = 0


@implementer(IBusFollower)
class Simulated:
    """Commits what it is given, as a worker does before its receipt; never runs any of it."""

    def __init__(self, number: int, inbox: Inbox, tally: Tally) -> None:
        self._number = number
        self._inbox = inbox
        self._tally = tally
        self._birth = own_birth()

    def register_request(self) -> dict[str, Any]:
        """See L{IBusFollower.register_request}."""
        return {
            "instanceId": f"{os.getpid()}:{self._number + 1}",
            "kind": "managed",
            "pid": os.getpid(),
            "processBirthId": self._birth.birth,
            "sessionGeneration": 1,
            "cwd": "/",
            "connectedAtMs": 1,
        }

    def registered(self, link: Any, registration: dict[str, Any]) -> Deferred[None]:
        """See L{IBusFollower.registered}."""
        return succeed(None)

    def state(self) -> dict[str, Any]:
        """See L{IBusFollower.state}."""
        return {"activity": "idle", "streaming": False, "queued": 0, "cwd": "/", "piReady": True}

    @deferred
    async def admit(
        self, delivery_id: str, update_id: int, kind: str, update: dict[str, Any]
    ) -> tuple[str, str]:
        """See L{IBusFollower.admit}."""
        message = update["message"]
        await self._inbox.admit(
            delivery_id,
            "telegram",
            kind,
            dumps(update),
            message["text"],
            update_id=update_id,
            chat_id=message["chat"]["id"],
            thread_id=message["message_thread_id"],
            message_id=message["message_id"],
        )
        self._tally.admitted(update_id)
        return "accepted", ""

    def confirm_settled(self, delivery_ids: Sequence[str]) -> Deferred[None]:
        """See L{IBusFollower.confirm_settled}."""
        return self._inbox.confirm(delivery_ids)

    def control(self, request_id: str, command: dict[str, Any]) -> Deferred[Any]:
        """See L{IBusFollower.control}."""
        return succeed({})

    def shutdown(self, mode: str, deadline_ms: int) -> None:
        """See L{IBusFollower.shutdown}."""

    def replace_target(self, target: Any, old_target: Any, reason: str) -> Deferred[dict[str, Any]]:
        """See L{IBusFollower.replace_target}."""
        return succeed({})

    def lost(self) -> None:
        """See L{IBusFollower.lost}."""


def run(agent_dir: str, followers: int) -> None:
    """Be all followers until the parent goes away."""
    paths, tally = Paths(Path(agent_dir)), Tally()
    parts: list[Any] = []

    def begin() -> None:
        for number in range(followers):
            path = paths.worker_database(managed_binding(spec_id(number)))
            database = Database(path, "worker", reactor, reactor)
            database.startService()
            client = BusClient(
                DaemonEndpoint(paths=paths, secret=credential(number)),
                f"worker:{spec_id(number)}",
                Simulated(number, Inbox(database), tally),
                reactor,
                reactor,
                Random(number),
                "benchmark",
                os.urandom,
            )
            client.startService()
            parts.extend((client, database))

    async def end() -> None:
        for part in parts:
            await part.stopService()

    tally.orders = obey(reactor, lambda words: tally.watch(words["first"], words["count"]))
    reactor.callWhenRunning(begin)
    reactor.addSystemEventTrigger("before", "shutdown", lambda: Deferred.fromCoroutine(end()))
    reactor.run()
