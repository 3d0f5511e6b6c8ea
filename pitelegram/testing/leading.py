"""A whole leader in the test's process: real parts and sockets, no network, no worker processes."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from zope.interface import implementer

from pitelegram.bus.follower import BusClient
from pitelegram.ground import Ground
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.kernel.paths import Paths
from pitelegram.leader import LeaderService
from pitelegram.panel.interfaces import IStatusSource
from pitelegram.routing.interfaces import IBindingPolicy, IExpectation
from pitelegram.routing.paired import Owner
from pitelegram.settings.file import SettingsFile
from pitelegram.settings.watching import Watcher
from pitelegram.supervisor.interfaces import WorkerView
from pitelegram.testing.botapi import Call, FakeBotApi
from pitelegram.testing.bus import FakeBusFollower, FixedEndpoint
from pitelegram.testing.panel import FakeSupervisor
from pitelegram.testing.stores import EPOCH, leader_database

OWNER, BOT = 1000, 4242
SECRET = b"e" * 32


@implementer(IBindingPolicy, IExpectation)
class SupervisorService(FakeSupervisor, Service):
    """The supervisor as the leader's child; it wants whatever proves a credential."""

    def managed(self, spec_id: str, spawn_id: str) -> str | None:
        """See L{IBindingPolicy.managed}."""
        return f"/projects/{spec_id}"

    def name(self, spec_id: str) -> str:  # type: ignore[override]
        """See L{IBindingPolicy.name}."""
        return f"name-of-{spec_id}"

    def is_starting(self, binding_key: str) -> bool:
        """See L{IExpectation.is_starting}."""
        return False

    def is_expected(self, binding_key: str) -> bool:
        """See L{IExpectation.is_expected}."""
        return False


@implementer(IStatusSource)
class Sources:
    """A status that says nothing."""

    def status(self) -> dict[str, Any]:
        """See L{IStatusSource.status}."""
        return {}


class LeaderWorld:
    """A leader that is built, and started by L{LeaderService.startService}.

    @param profile: what C{telegram.json} says; a paired owner unless given.
    @ivar ends: C{(code, reason)} of each fatal end that was asked for.
    @ivar updates: what L{say} and others number their updates from.
    """

    def __init__(
        self,
        reactor: Any,
        *views: WorkerView,
        source: Any = None,
        profile: dict[str, Any] | None = None,
    ) -> None:
        self.reactor = reactor
        self.base = Path(tempfile.mkdtemp(prefix="pt-"))
        self.paths = Paths(self.base / "agent", "default")
        self.paths.prepare()
        self._settings({"profiles": {"default": profile or {"allowedUserId": OWNER}}})
        self.file = SettingsFile(self.paths, {})
        self.watcher = Watcher(self.file, self.file.load(with_token=False), reactor)
        self.owner = Owner(
            file=self.file, watcher=self.watcher, clock=reactor, profile=self.paths.profile
        )
        self.database = leader_database(reactor)
        self.api = FakeBotApi()
        self.supervisor = SupervisorService(*views)
        self.ends: list[tuple[int, str]] = []
        self._updates = 500
        ground = Ground(
            reactor=reactor,
            random=Random(4),
            paths=self.paths,
            database=self.database,
            api=self.api,
            owner=self.owner,
            bot_id=BOT,
            epoch=EPOCH,
            secret=SECRET,
            still_fresh=lambda: True,
            fatal=lambda code, reason: self.ends.append((code, reason)),
            build="test",
        )
        self.leader = LeaderService(ground, lambda _: self.supervisor, source or Sources())

    def _settings(self, document: dict[str, Any]) -> None:
        self.paths.telegram_json.write_text(json.dumps(document))
        self.paths.telegram_json.chmod(0o600)

    @deferred
    async def end(self) -> None:
        """Stop and remove everything."""
        if self.leader.running:
            await self.leader.stopService()
        await self.database.stopService()
        shutil.rmtree(self.base)

    @deferred
    async def until(self, condition: Callable[[], Any], seconds: float = 10.0) -> Any:
        """Fire with the first true value of C{condition}.

        @raise AssertionError: it does not become true in time.
        """
        waited = 0.0
        while not (value := condition()):
            if waited >= seconds:
                raise AssertionError(f"not so within {seconds} s; called: {self.api.calls!r:.2000}")
            await sleep(self.reactor, 0.01)
            waited += 0.01
        return value

    def message(self, text: str, thread: int | None = None, sender: int = OWNER) -> dict[str, Any]:
        """Return an update with a message in that sender's private chat."""
        self._updates += 1
        content: dict[str, Any] = {
            "message_id": self._updates,
            "from": {"id": sender, "is_bot": False},
            "chat": {"id": sender, "type": "private"},
            "text": text,
        }
        if thread is not None:
            content["message_thread_id"] = thread
        return {"update_id": self._updates, "message": content}

    def press(self, data: str, message_id: int) -> dict[str, Any]:
        """Return an update with a pressed button."""
        self._updates += 1
        query = {
            "id": f"q{self._updates}",
            "from": {"id": OWNER, "is_bot": False},
            "message": {"message_id": message_id, "chat": {"id": OWNER, "type": "private"}},
            "data": data,
        }
        return {"update_id": self._updates, "callback_query": query}

    def receive(self, *updates: dict[str, Any]) -> Deferred[None]:
        """Take updates as the long poll would; fires when they are committed."""
        return self.leader.admission.accept(updates, updates[-1]["update_id"] + 1)

    def sent(self, words: str) -> list[Call]:
        """Return the messages that hold C{words}."""
        return [call for call in self.api.made("sendMessage") if words in call.params["text"]]

    def follower(
        self, follower: FakeBusFollower, credential: str = "shared", secret: bytes = SECRET
    ) -> BusClient:
        """Return a worker's end of the bus, for C{startService}."""
        return BusClient(
            FixedEndpoint((str(self.paths.bus_socket), secret)),
            credential,
            follower,
            self.reactor,
            self.reactor,
            Random(5),
            "test-follower",
            Random(6).randbytes,
        )
