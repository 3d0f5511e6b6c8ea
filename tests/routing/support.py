"""A leader's routing on an inline store and a Clock."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.botapi.limits import SendGate
from pitelegram.bus.interfaces import Peer
from pitelegram.kernel import jsonio
from pitelegram.routing.admission import Admission
from pitelegram.routing.claims import Claim
from pitelegram.routing.desk import Desk
from pitelegram.routing.owners import MessageOwners
from pitelegram.routing.pairing import Pairing
from pitelegram.routing.places import Places
from pitelegram.routing.registry import Registry
from pitelegram.routing.router import Router
from pitelegram.store.bindings import Bindings
from pitelegram.store.choosers import Choosers
from pitelegram.store.journal import Journal
from pitelegram.targets import TelegramTarget
from pitelegram.testing.botapi import FakeBotApi
from pitelegram.testing.bus import a_registration
from pitelegram.testing.delivery import FakeNotices
from pitelegram.testing.followers import (
    FakeDaemon,
    FakeExpectation,
    FakeLink,
    FakePolicy,
    FakeProbe,
    FakeThreads,
)
from pitelegram.testing.stores import leader_database

OWNER = 1000
BOT = 77
ALPHA, BETA = "spec-a", "spec-b"
THREADS = {ALPHA: 11, BETA: 12}


class Owner:
    """The C{Ownership} of the tests: everything is a plain attribute."""

    def __init__(self, owner: int | None = OWNER) -> None:
        self.owner_id = owner
        self.first = False
        self.reloads = 0
        self.pairings: list[int] = []
        self.blocks: list[bool] = []
        self.services: list[dict[str, Any]] = []
        self.failing = False

    def owner(self) -> int | None:
        """The owner."""
        return self.owner_id

    def first_contact(self) -> bool:
        """The setting."""
        return self.first

    def reload(self) -> None:
        """Counted."""
        self.reloads += 1

    def paired(self, user_id: int, chat_id: int) -> None:
        """The new owner."""
        if self.failing:
            raise OSError("disk")
        self.pairings.append(user_id)
        self.owner_id = user_id

    def blocked(self, blocked: bool) -> None:
        """Noted."""
        self.blocks.append(blocked)

    def service(self, message: dict[str, Any]) -> None:
        """Noted."""
        self.services.append(message)


class RoutingCase(SynchronousTestCase):
    """Two specs with a Thread each; followers register by L{follow}."""

    def setUp(self) -> None:
        """Build it all; the router is not started yet."""
        self.clock = Clock()
        self.clock.advance(1_700_000_000)
        self.database = leader_database(self.clock)
        self.addCleanup(self.database.stopService)
        self.journal = Journal(self.database)
        self.bindings = Bindings(self.database)
        self.daemon = FakeDaemon()
        self.expectation = FakeExpectation()
        self.probe = FakeProbe()
        self.notices = FakeNotices()
        self.replies: list[tuple[TelegramTarget, str]] = []
        self.policy = FakePolicy(
            {
                "a": ("alpha", "/projects/alpha", "spawn-a"),
                "b": ("beta", "/projects/beta", "spawn-b"),
            }
        )
        self.threads = FakeThreads(self.bindings)
        self.api = FakeBotApi()
        self.choosers = Choosers(self.database)
        for key, thread in THREADS.items():
            self.successResultOf(self.bindings.ensure(key, "managed", f"/projects/{key}"))
            self.give(key, thread)
        self.owner = Owner()
        self.pairing = Pairing(
            Path(self.mktemp()).resolve(), self.clock.seconds, self.clock.seconds
        )
        self.update_ids = count(500)
        self.instances = count(1)
        self.ids = count(1)
        self.build()

    def witness(self, claim: Claim, registration: dict[str, Any]) -> None:
        """Every follower is whom it says to be."""

    def build(self) -> None:
        """Make the parts that live as long as one leader."""
        self.places = Places(self.bindings)
        self.owners = MessageOwners(self.bindings, self.clock)
        self.registry = Registry(
            "epoch-1",
            self.bindings,
            self.places,
            self.threads,
            self.policy,
            self.clock,
            Random(4).randbytes,
            self.witness,
        )
        self.gate = SendGate(self.clock)
        self.desk = Desk(
            store=self.choosers,
            journal=self.journal,
            bindings=self.bindings,
            registry=self.registry,
            threads=self.threads,
            api=self.api,
            gate=self.gate,
            notices=self.notices,
            clock=self.clock,
            now_ms=self.database.now_ms,
            fresh_id=lambda: f"id{next(self.ids)}",
            owner=self.owner.owner,
        )
        self.router = Router(
            journal=self.journal,
            places=self.places,
            owners=self.owners,
            registry=self.registry,
            daemon=self.daemon,
            expectation=self.expectation,
            probe=self.probe,
            notices=self.notices,
            reply=self.reply,
            clock=self.clock,
            now_ms=self.database.now_ms,
            desk=self.desk,
        )
        self.admission = Admission(BOT, self.journal, self.router, self.owner, self.pairing)

    def restart(self) -> None:
        """Another leader takes over the same store."""
        self.successResultOf(self.router.stopService())
        self.build()
        self.router.startService()

    def reply(self, target: TelegramTarget, text: str) -> Deferred[None]:
        """The reply callable."""
        self.replies.append((target, text))
        return succeed(None)

    def give(self, key: str, thread: int) -> None:
        """Make a Thread the binding's target."""
        binding = self.bindings.get(key)
        assert binding is not None
        old = None if binding.target is None else (binding.chat_id, binding.thread_id)
        self.assertTrue(
            self.successResultOf(self.bindings.set_target(key, OWNER, thread, old))  # type: ignore[arg-type]
        )

    def link(self, spec: str = "a", **changes: Any) -> FakeLink:
        """A new connection that has proven the credential of a spec."""
        peer = Peer(credential=f"worker:{spec}", secret_id=f"spawn-{spec}", pid=None)
        return FakeLink(peer, leader=self.registry, **changes)

    def register(self, link: FakeLink, **changes: Any) -> dict[str, Any]:
        """Register over a link, as the bus does it."""
        instance = f"4242:{next(self.instances)}"
        registration = a_registration(ownerId=None, instanceId=instance, **changes)
        answer = self.successResultOf(self.registry.register(link, registration, False))
        link.registration = answer
        return answer

    def follow(self, spec: str = "a", **changes: Any) -> FakeLink:
        """A live follower that has sent its first heartbeat."""
        link = self.link(spec, **changes)
        self.register(link)
        self.registry.heartbeat(link, {"activity": "idle"})
        return link

    def message(
        self, thread: int | None = 11, text: str = "do it", **changes: Any
    ) -> dict[str, Any]:
        """An update with a message of the owner."""
        number = next(self.update_ids)
        body: dict[str, Any] = {
            "message_id": number,
            "from": {"id": OWNER, "is_bot": False},
            "chat": {"id": OWNER, "type": "private"},
            "text": text,
            **changes,
        }
        if thread is not None:
            body["message_thread_id"] = thread
        return {"update_id": number, "message": body}

    def callback(
        self, message_id: int, data: str, callback_id: str = "cb", thread: int | None = 11
    ) -> dict[str, Any]:
        """An update with a button press of the owner."""
        message = {
            "message_id": message_id,
            "chat": {"id": OWNER, "type": "private"},
            "message_thread_id": thread,
        }
        return {
            "update_id": next(self.update_ids),
            "callback_query": {
                "id": callback_id,
                "from": {"id": OWNER, "is_bot": False},
                "message": message,
                "data": data,
            },
        }

    def reaction(self, message_id: int) -> dict[str, Any]:
        """An update with a reaction of the owner; such carry no Thread."""
        return {
            "update_id": next(self.update_ids),
            "message_reaction": {
                "chat": {"id": OWNER, "type": "private"},
                "user": {"id": OWNER, "is_bot": False},
                "message_id": message_id,
                "old_reaction": [],
                "new_reaction": [],
            },
        }

    def accept(self, *updates: Any) -> None:
        """A batch of the long poll."""
        after = max([u["update_id"] for u in updates if isinstance(u, dict)], default=0) + 1
        self.successResultOf(self.admission.accept(updates, after))

    def rows(self) -> list[dict[str, Any]]:
        """The whole journal."""
        return [dict(row) for row in self.database.read("SELECT * FROM journal ORDER BY seq")]

    def states(self) -> list[str]:
        """The states of all rows."""
        return [row["state"] for row in self.rows()]

    def texts(self, link: FakeLink) -> list[str]:
        """What was forwarded to a link, in order."""
        return [forward.update["message"]["text"] for forward in link.forwards]


__all__ = ["ALPHA", "BETA", "BOT", "OWNER", "Owner", "RoutingCase", "jsonio"]
