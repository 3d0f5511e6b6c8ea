"""A leader on a real socket that keeps everything in memory, for worker processes in tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from twisted.internet.defer import Deferred, fail, succeed
from zope.interface import implementer

from pitelegram.bus.interfaces import IBusLeader, ICredentials
from pitelegram.bus.leader import BusServer
from pitelegram.errors import Refusal
from pitelegram.ids import delivery_id
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.kernel.files import write_private
from pitelegram.kernel.jsonio import canonical, dumps
from pitelegram.kernel.paths import Paths
from pitelegram.testing.leaderlink import contents, shown

CHAT, THREAD = 100, 7


@implementer(IBusLeader, ICredentials)
class MemoryLeader:
    """Registers managed workers, keeps their deliveries, forwards what a test says.

    A delivery id that comes again must have the same content, as with the real outbox.

    @ivar deliveries: C{delivery_id -> delivery}, in the order of their first submission.
    @ivar spooled: the contents of the files of deliveries.
    @ivar submissions: how often each id was submitted.
    @ivar api_calls: C{(method, params)} in order.
    @ivar states: the last heartbeat's state of each binding.
    @ivar links: the current link of each binding.
    """

    epoch = "epoch-1"

    def __init__(self, reactor: Any, paths: Paths) -> None:
        self.profile = paths.profile
        self.spawns: dict[str, list[tuple[str, bytes]]] = {}
        self.deliveries: dict[str, dict[str, Any]] = {}
        self.spooled: list[bytes] = []
        self.submissions: dict[str, int] = {}
        self.api_calls: list[tuple[str, dict[str, Any]]] = []
        self.states: dict[str, dict[str, Any]] = {}
        self.links: dict[str, Any] = {}
        self.goodbyes: list[tuple[str, str]] = []
        self._reactor = reactor
        self._paths = paths
        self._generations = count(1)
        self._server: BusServer | None = None

    # --- being there -------------------------------------------------------------------------

    def start(self) -> None:
        """Listen, and say so in C{owners.json}."""
        self._server = BusServer(
            self._paths.bus_socket, self, self, self._reactor, self._reactor, os.urandom, "test"
        )
        self._server.startService()
        owner = {
            "pid": os.getpid(),
            "role": "daemon",
            "leaderEpoch": self.epoch,
            "busSocketPath": str(self._paths.bus_socket),
        }
        write_private(self._paths.owners, dumps({self.profile: owner}))

    @deferred
    async def stop(self) -> None:
        """Be gone, as a daemon that was stopped."""
        server, self._server = self._server, None
        if server is not None:
            await server.stopService()
            write_private(self._paths.owners, b"{}")

    def credential(self, spec_id: str, spawn_id: str) -> bytes:
        """Mint the credential of a spawn."""
        secret = os.urandom(32)
        self.spawns.setdefault(f"worker:{spec_id}", []).insert(0, (spawn_id, secret))
        return secret

    # --- what a test does ----------------------------------------------------------------------

    @property
    def texts(self) -> list[str]:
        """The text of every delivered call, in order."""
        found = [shown(call) for each in self.deliveries.values() for call in each["calls"]]
        return [text for text in found if text]

    @deferred
    async def until(self, condition: Callable[[], Any], seconds: float = 30.0) -> Any:
        """Fire with the first true value of C{condition}.

        @raise AssertionError: it does not become true in time.
        """
        waited = 0.0
        while not (value := condition()):
            if waited >= seconds:
                raise AssertionError(f"not so within {seconds} s; told: {self.texts!r:.500}")
            await sleep(self._reactor, 0.02)
            waited += 0.02
        return value

    def ready(self, binding_key: str, spawn_id: str) -> bool:
        """Whether that spawn is registered and its Pi is up."""
        state = self.states.get(binding_key, {})
        return state.get("spawnId") == spawn_id and bool(state.get("piReady"))

    def message(self, binding_key: str, number: int, text: str) -> Deferred[dict[str, Any]]:
        """Forward a message of the operator as update C{number}."""
        message = {"message_id": number, "chat": {"id": CHAT}, "message_thread_id": THREAD}
        return self.forward(binding_key, number, "message", {**message, "text": text})

    def forward(
        self, binding_key: str, number: int, kind: str, body: dict[str, Any]
    ) -> Deferred[dict[str, Any]]:
        """Forward an update."""
        name = delivery_id(kind, binding_key, number)
        return self.links[binding_key].forward(
            name, number, kind, {"update_id": number, kind: body}
        )

    # --- ICredentials --------------------------------------------------------------------------

    def secrets(self, credential: str) -> Sequence[tuple[str, bytes]]:
        """See L{ICredentials.secrets}."""
        return self.spawns.get(credential, [])

    # --- IBusLeader ----------------------------------------------------------------------------

    def register(
        self, link: Any, registration: dict[str, Any], restore: bool
    ) -> Deferred[dict[str, Any]]:
        """See L{IBusLeader.register}."""
        binding_key = "spec-" + link.peer.credential.removeprefix("worker:")
        self.links[binding_key] = link
        return succeed(
            {
                **registration,
                "registrationGeneration": f"g{next(self._generations)}",
                "workerId": "w1",
                "bindingKey": binding_key,
                "epoch": self.epoch,
                "target": {"chatId": CHAT, "threadId": THREAD},
                "threadName": "Atlas",
                "heartbeatMs": 1000,
                "staleMs": 15000,
            }
        )

    def heartbeat(self, link: Any, state: dict[str, Any]) -> dict[str, Any]:
        """See L{IBusLeader.heartbeat}."""
        self.states[link.registration["bindingKey"]] = state
        return {"liveSlots": [], "displayTitle": None, "epoch": self.epoch}

    def disconnect(self, link: Any, reason: str, delete_thread: bool) -> Deferred[dict[str, Any]]:
        """See L{IBusLeader.disconnect}."""
        self.goodbyes.append((link.registration["bindingKey"], reason))
        return succeed({"thread": "kept"})

    def call_api(
        self,
        link: Any,
        request_id: str,
        method: str,
        params: dict[str, Any],
        options: dict[str, Any],
        files: Sequence[dict[str, Any]],
    ) -> Deferred[Any]:
        """See L{IBusLeader.call_api}."""
        self.api_calls.append((method, params))
        return succeed(True)

    def download_file(self, link: Any, request_id: str, file_id: str) -> Deferred[dict[str, Any]]:
        """See L{IBusLeader.download_file}."""
        return fail(Refusal("unavailable", "no files here"))

    def submit_delivery(
        self, link: Any, delivery_id: str, delivery: dict[str, Any]
    ) -> Deferred[str]:
        """See L{IBusLeader.submit_delivery}."""
        self.submissions[delivery_id] = self.submissions.get(delivery_id, 0) + 1
        known = self.deliveries.get(delivery_id)
        if known is None:
            self.deliveries[delivery_id] = delivery
            self.spooled += contents(delivery)
        elif canonical(known["calls"]) != canonical(delivery["calls"]):
            return fail(Refusal("delivery-id-collision", "this id has other content"))
        return succeed("accepted" if known is None else "delivered")

    def resolve_target(self, link: Any, selector: dict[str, Any]) -> Deferred[dict[str, Any]]:
        """See L{IBusLeader.resolve_target}."""
        return fail(Refusal("unavailable", "no other worker here"))

    def route_agent_message(
        self, link: Any, request_id: str, message: dict[str, Any]
    ) -> Deferred[dict[str, Any]]:
        """See L{IBusLeader.route_agent_message}."""
        return fail(Refusal("unavailable", "no other worker here"))

    def rename_thread(
        self, link: Any, target: dict[str, Any], name: str
    ) -> Deferred[dict[str, Any]]:
        """See L{IBusLeader.rename_thread}."""
        return fail(Refusal("unavailable", "no Threads here"))

    def set_display_mode(
        self, link: Any, target: dict[str, Any], mode: str
    ) -> Deferred[dict[str, Any]]:
        """See L{IBusLeader.set_display_mode}."""
        return fail(Refusal("unavailable", "no Threads here"))

    def set_setting(self, link: Any, name: str, value: Any) -> Deferred[dict[str, Any]]:
        """See L{IBusLeader.set_setting}."""
        return fail(Refusal("unavailable", "no settings here"))

    def lost(self, link: Any) -> None:
        """See L{IBusLeader.lost}."""
        key = link.registration["bindingKey"]
        if self.links.get(key) is link:
            del self.links[key]
