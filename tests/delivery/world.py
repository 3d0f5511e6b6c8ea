"""Everything around delivery, without network, thread or time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from pitelegram.botapi.limits import SendGate
from pitelegram.delivery.service import DeliveryService
from pitelegram.store.bindings import Bindings
from pitelegram.store.leadership import Leadership
from pitelegram.store.outbox import Outbox
from pitelegram.targets import TelegramTarget
from pitelegram.testing.botapi import Call, FakeBotApi
from pitelegram.testing.delivery import FakeThreadLoss
from pitelegram.testing.stores import leader_database

OWNER = 7
START = 1_700_000_000


def text_call(text: str, **params: Any) -> dict[str, Any]:
    """Return a call that sends text."""
    return {"method": "sendMessage", "params": {"text": text, **params}}


def delivery(*calls: dict[str, Any], kind: str = "final") -> dict[str, Any]:
    """Return a delivery as a worker submits it."""
    return {"kind": kind, "createdAtMs": 1, "calls": list(calls)}


class DeliveryCase(SynchronousTestCase):
    """A leader's store with the bindings C{a} (Thread 70) and C{b} (Thread 80)."""

    def setUp(self) -> None:
        """Build the world; delivery is not started yet."""
        self.clock = Clock()
        self.clock.advance(START)
        self.database = leader_database(self.clock)
        self.addCleanup(self.database.stopService)
        self.outbox = Outbox(self.database)
        self.bindings = Bindings(self.database)
        self.facts = Leadership(self.database)
        self.api = FakeBotApi()
        self.gate = SendGate(self.clock)
        self.losses = FakeThreadLoss()
        self.losses.on_lost = self.lose
        self.spool = Path(self.mktemp())
        self.resend = False
        self.owner = OWNER
        self.refusals = 0
        for key, thread in (("a", 70), ("b", 80)):
            self.successResultOf(self.bindings.ensure(key, "managed", f"/{key}"))
            self.give(key, thread)
        self.service = self.make()

    def make(self) -> DeliveryService:
        """Return a delivery service over the same store."""
        return DeliveryService(
            self.clock,
            Random(3),
            self.outbox,
            self.bindings,
            self.facts,
            self.api,
            self.gate,
            self.losses,
            self.spool,
            run_blocking=lambda work: maybeDeferred(work),
            resend=lambda: self.resend,
            allowed=lambda chat_id: chat_id == self.owner,
            on_unauthorized=self.refused,
            destination=self.destination,
        )

    destination: Callable[[str], TelegramTarget | None] | None = None

    def start(self) -> None:
        """Start delivery; it is stopped at the end."""
        self.successResultOf(self.service.startService())
        self.addCleanup(self.stop)

    def stop(self) -> None:
        """Stop delivery, letting running calls be cut off."""
        if self.service.running:
            stopping = self.service.stopService()
            self.clock.advance(10)
            self.successResultOf(stopping)

    def restart(self) -> None:
        """A new process over the same store, after a kill: nothing of the old one goes on."""
        self.service.sender.running = 0
        self.service = self.make()
        self.start()

    def refused(self) -> None:
        """Count a refusal of the token."""
        self.refusals += 1

    def give(self, key: str, thread: int | None) -> None:
        """Give a binding a Thread."""
        row = self.bindings.get(key)
        assert row is not None
        expected = None if row.chat_id is None else (row.chat_id, row.thread_id)
        assert self.successResultOf(self.bindings.set_target(key, OWNER, thread, expected))

    def lose(self, key: str) -> None:
        """Take a binding's Thread away."""
        row = self.bindings.get(key)
        assert row is not None
        if row.chat_id is not None:
            self.bindings.clear_target(key, (row.chat_id, row.thread_id))

    def submit(self, key: str, delivery_id: str, *calls: dict[str, Any], **more: Any) -> str:
        """Submit a delivery; returns the receipt's state."""
        uploads = more.pop("uploads", None)
        taken: Deferred[str] = self.service.intake.submit(
            key, delivery_id, delivery(*calls, **more), uploads
        )
        return self.successResultOf(taken)

    def texts(self) -> list[str]:
        """Return the texts of the messages sent so far, announcements left out."""
        return [call.params["text"] for call in self.sent() if "reply_markup" not in call.params]

    def sent(self) -> list[Call]:
        """Return the calls that send text."""
        return self.api.made("sendMessage")

    def states(self) -> dict[str, str]:
        """Return the undelivered deliveries' states by delivery id."""
        rows = self.database.read(
            "SELECT delivery_id, state FROM outbox WHERE state <> 'delivered' ORDER BY seq"
        )
        return {row["delivery_id"]: row["state"] for row in rows}

    def key_of(self, delivery_id: str) -> str:
        """Return the outbox key of a delivery."""
        rows = self.database.read("SELECT key FROM outbox WHERE delivery_id = ?", (delivery_id,))
        return str(rows[0]["key"])
