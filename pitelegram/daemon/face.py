"""What the daemon shows and does on the control socket and in the panel."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs
from twisted.internet.defer import Deferred
from zope.interface import implementer

from pitelegram import __version__
from pitelegram.control import status as documents
from pitelegram.control.interfaces import IDaemon, Subject
from pitelegram.daemon.checkup import Checkup
from pitelegram.daemon.deeds import Deeds
from pitelegram.errors import Refusal
from pitelegram.ids import managed_binding
from pitelegram.leader import LeaderService
from pitelegram.panel.interfaces import IStatusSource
from pitelegram.store.rows import Receipt
from pitelegram.threads.interfaces import without_mark

if TYPE_CHECKING:
    from pitelegram.daemon.service import Daemon


@implementer(IDaemon, IStatusSource)
class Face:
    """See L{IDaemon}.

    @param daemon: whose parts are shown; its leader exists by the time anything is asked.
    """

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._checkup = Checkup()
        self._deeds = Deeds(lambda: self._leader, lambda: daemon.commands)

    @property
    def _leader(self) -> LeaderService:
        leader = self._daemon.leader
        if leader is None:
            raise Refusal("backend_unavailable", "the daemon is starting; try again")
        return leader

    # --- reading ------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """See L{IDaemon.status}."""
        leader, daemon = self._leader, self._daemon
        ask = self._checkup.ask
        self._checkup.begin()
        paired = leader.ground.owner.watcher.settings.allowed_user_id is not None
        polling = ask("the long poll", leader.poll.snapshot, _NO_POLLING)
        facts = documents.Facts(
            profile=daemon.paths.profile,
            now_ms=int(time.time() * 1000),
            pid=os.getpid(),
            epoch=leader.ground.epoch,
            started_at_ms=int(daemon.started_at * 1000),
            version=__version__,
            bot_username=leader.bot_username,
            bot_id=leader.ground.bot_id,
            thread_mode=ask("the bot's mode", leader.threads.mode, "unknown"),
            paired=paired,
            polling=polling,
            not_receiving_since_ms=polling.get("not_receiving_since_ms"),
            journal=ask("the journal", leader.journal.counts, {}),
            outbox=ask("the outbox", leader.outbox.counts, {}),
            workers=ask("the supervisor", leader.supervisor.views, []),
            threads=ask("the Threads", lambda: _threads(leader), {}),
            attached=sum(1 for f in leader.registry.followers() if f.kind == "attached"),
            continuity=ask("the workers' keys", lambda: _continuity(leader), {}),
            storage_pressure=ask("the store's figures", leader.pressure.look, {}),
        )
        self._checkup.look(daemon, leader)
        return documents.document(attrs.evolve(facts, problems=self._checkup.problems))

    def workers(self, private: bool) -> list[dict[str, Any]]:
        """See L{IDaemon.workers}."""
        listed: list[dict[str, Any]] = self.status()["workers"]
        if not private:
            return listed
        views = self._leader.supervisor.views()
        return [
            {**entry, **documents.private_part(view)}
            for entry, view in zip(listed, views, strict=True)
        ]

    def outbox(self) -> list[dict[str, Any]]:
        """See L{IDaemon.outbox}."""
        names = ("key", "state", "reason", "attempts", "created_at_ms")
        return [{name: item[name] for name in names} for item in self._leader.outbox.items()]

    def events(self, limit: int) -> list[dict[str, Any]]:
        """See L{IDaemon.events}."""
        return self._daemon.events.newest(limit)

    def subscribe(self, observer: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
        """See L{IDaemon.subscribe}."""
        return self._daemon.events.subscribe(observer)

    # --- doing --------------------------------------------------------------------------------

    def resolve(self, action: str, target: dict[str, Any], args: dict[str, Any]) -> Subject:
        """See L{IDaemon.resolve}."""
        return self._deeds.resolve(action, target, args)

    def check(self, action: str, subject: Subject) -> None:
        """See L{IDaemon.check}."""
        self._deeds.check(action, subject)

    def perform(
        self, action: str, subject: Subject, args: dict[str, Any], request_id: str
    ) -> Deferred[dict[str, Any]]:
        """See L{IDaemon.perform}."""
        return self._deeds.perform(action, subject, args, request_id)

    def settle(
        self, action: str, subject: Subject, args: dict[str, Any], receipt: Receipt
    ) -> Deferred[dict[str, Any]]:
        """See L{IDaemon.settle}."""
        return self._deeds.settle(action, subject, args, receipt)


_NO_POLLING = {
    "phase": "stopped",
    "last_success_ms": None,
    "consecutive_failures": 0,
    "receiving": False,
    "not_receiving_since_ms": None,
}


def _threads(leader: LeaderService) -> dict[str, tuple[str | None, str | None]]:
    """Return what the operator calls each Thread, with its letter."""
    return {
        each.binding_key: (without_mark(each.title or "") or each.thread_name, each.slot)
        for each in leader.bindings.list()
    }


def _continuity(leader: LeaderService) -> dict[str, dict[str, Any]]:
    slots = {managed_binding(spec.spec_id): spec.slot_id for spec in leader.specs.list()}
    return leader.continuity.metas(slots)
