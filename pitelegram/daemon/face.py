"""What the daemon shows and does on the control socket and in the panel."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred
from zope.interface import implementer

from pitelegram import __version__
from pitelegram.control import status as documents
from pitelegram.control.interfaces import IDaemon, Subject
from pitelegram.daemon.deeds import Deeds
from pitelegram.errors import Refusal
from pitelegram.ids import managed_binding
from pitelegram.leader import LeaderService
from pitelegram.panel.interfaces import IStatusSource
from pitelegram.store.rows import Receipt

if TYPE_CHECKING:
    from pitelegram.daemon.service import Daemon


@implementer(IDaemon, IStatusSource)
class Face:
    """See L{IDaemon}.

    @param daemon: whose parts are shown; its leader exists by the time anything is asked.
    """

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
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
        settings = leader.ground.owner.watcher.settings
        polling = leader.poll.snapshot()
        facts = documents.Facts(
            profile=daemon.paths.profile,
            now_ms=int(time.time() * 1000),
            pid=os.getpid(),
            epoch=leader.ground.epoch,
            started_at_ms=int(daemon.started_at * 1000),
            version=__version__,
            bot_username=leader.bot_username,
            bot_id=leader.ground.bot_id,
            thread_mode=leader.threads.mode(),
            paired=settings.allowed_user_id is not None,
            polling=polling,
            not_receiving_since_ms=polling.get("not_receiving_since_ms"),
            journal=leader.journal.counts(),
            outbox=leader.outbox.counts(),
            workers=leader.supervisor.views(),
            threads={b.binding_key: (b.thread_name, b.slot) for b in leader.bindings.list()},
            attached=sum(1 for f in leader.registry.followers() if f.kind == "attached"),
            continuity=leader.continuity.metas(
                {managed_binding(spec.spec_id): spec.slot_id for spec in leader.specs.list()}
            ),
            problems=[*leader.orphans.problems(), *settings.problems, *self._own_problems()],
        )
        return documents.document(facts)

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

    # --- inside -------------------------------------------------------------------------------

    def _own_problems(self) -> list[str]:
        leader = self._leader
        found = [
            f"worker {view.name} is silent, or not connected"
            for view in leader.supervisor.views()
            if view.state == "running" and leader.registry.is_stale(view.binding_key)
        ]
        if leader.delivery.sender.problem is not None:
            found.append(leader.delivery.sender.problem)
        if leader.continuity.problem is not None:
            found.append(leader.continuity.problem)
        if self._leader.ground.database.recovered is not None:
            found.append(
                "the store was damaged at this start; a new one was made, the old one is kept"
            )
        if self._leader.ground.owner.watcher.settings.recovered:
            found.append(
                "telegram.json was not valid JSON and was moved aside; nothing is cleaned up"
            )
        unusable = self._leader.ground.owner.watcher.problem
        if unusable is not None:
            found.append(f"telegram.json changed and cannot be used: {unusable}")
        ownership = self._daemon.ownership
        if ownership is not None and ownership.problem is not None:
            found.append(f"the transport lock cannot be kept fresh: {ownership.problem}")
        return found
