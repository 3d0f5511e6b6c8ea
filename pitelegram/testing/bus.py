"""Stand-ins for both users of the bus, and a way to join its two ends in memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import attrs
from twisted.internet.defer import Deferred, fail, succeed
from twisted.test.iosim import FakeTransport as PipeTransport
from twisted.test.iosim import IOPump
from zope.interface import implementer

from pitelegram.bus.interfaces import IBusFollower, IBusLeader, ICredentials, IEndpoint
from pitelegram.bus.leader import BusServer
from pitelegram.bus.leaderlink import LeaderLink
from pitelegram.errors import PiTelegramError
from pitelegram.kernel.peers import UNKNOWN, PeerIds

SECRET = b"s" * 32
CREDENTIAL = "worker:0123456789abcdef"


@implementer(ICredentials)
@attrs.define(eq=False)
class FixedCredentials:
    """C{known}: credential to candidates."""

    known: dict[str, list[tuple[str, bytes]]] = attrs.Factory(
        lambda: {CREDENTIAL: [("spawn-1", SECRET)], "shared": [("epoch-1", b"t" * 32)]}
    )

    def secrets(self, credential: str) -> Sequence[tuple[str, bytes]]:
        """See L{ICredentials.secrets}."""
        return self.known.get(credential, [])


@implementer(IEndpoint)
@attrs.define(eq=False)
class FixedEndpoint:
    """A leader at a known place; C{place} may be changed or be None."""

    place: tuple[str, bytes] | None

    def locate(self) -> tuple[str, bytes] | None:
        """See L{IEndpoint.locate}."""
        return self.place


@implementer(IBusLeader)
@attrs.define(eq=False)
class FakeBusLeader:
    """Registers everybody; notes every call in C{calls}; answers from C{answers} by method name.

    An answer that is an exception is raised.
    """

    epoch: str = "epoch-1"
    profile: str = "default"
    calls: list[tuple[Any, ...]] = attrs.Factory(list)
    answers: dict[str, Any] = attrs.Factory(dict)
    links: list[Any] = attrs.Factory(list)
    lost_links: list[Any] = attrs.Factory(list)
    generations: Any = attrs.Factory(lambda: count(1))

    def _answer(self, name: str, default: Any, *arguments: Any) -> Deferred[Any]:
        self.calls.append((name, *arguments))
        answer = self.answers.get(name, default)
        if isinstance(answer, Exception):
            return fail(answer)
        return answer if isinstance(answer, Deferred) else succeed(answer)

    def register(
        self, link: Any, registration: dict[str, Any], restore: bool
    ) -> Deferred[dict[str, Any]]:
        """See L{IBusLeader.register}."""
        answer = {
            **registration,
            "registrationGeneration": f"g{next(self.generations)}",
            "workerId": "worker-1",
            "bindingKey": "spec-1",
            "epoch": self.epoch,
            "target": None,
        }
        self.links.append(link)
        return self._answer("register", answer, registration, restore)

    def heartbeat(self, link: Any, state: dict[str, Any]) -> dict[str, Any]:
        """See L{IBusLeader.heartbeat}."""
        self.calls.append(("heartbeat", state))
        answer = self.answers.get("heartbeat", {"liveSlots": [], "displayTitle": None})
        if isinstance(answer, PiTelegramError):
            raise answer
        return answer

    def disconnect(self, link: Any, reason: str, delete_thread: bool) -> Deferred[dict[str, Any]]:
        """See L{IBusLeader.disconnect}."""
        return self._answer("disconnect", {"thread": "kept"}, reason, delete_thread)

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
        return self._answer("call_api", True, method, params, options, files)

    def download_file(self, link: Any, request_id: str, file_id: str) -> Deferred[dict[str, Any]]:
        """See L{IBusLeader.download_file}."""
        return self._answer("download_file", {"path": "/p", "size": 1}, file_id)

    def submit_delivery(
        self, link: Any, delivery_id: str, delivery: dict[str, Any]
    ) -> Deferred[str]:
        """See L{IBusLeader.submit_delivery}."""
        return self._answer("submit_delivery", "accepted", delivery_id, delivery)

    def resolve_target(self, link: Any, selector: dict[str, Any]) -> Deferred[dict[str, Any]]:
        """See L{IBusLeader.resolve_target}."""
        return self._answer("resolve_target", {"chatId": 1}, selector)

    def route_agent_message(
        self, link: Any, request_id: str, message: dict[str, Any]
    ) -> Deferred[dict[str, Any]]:
        """See L{IBusLeader.route_agent_message}."""
        return self._answer("route_agent_message", {}, message)

    def rename_thread(
        self, link: Any, target: dict[str, Any], name: str
    ) -> Deferred[dict[str, Any]]:
        """See L{IBusLeader.rename_thread}."""
        return self._answer("rename_thread", {}, target, name)

    def set_display_mode(
        self, link: Any, target: dict[str, Any], mode: str
    ) -> Deferred[dict[str, Any]]:
        """See L{IBusLeader.set_display_mode}."""
        return self._answer("set_display_mode", {}, target, mode)

    def set_setting(self, link: Any, name: str, value: Any) -> Deferred[dict[str, Any]]:
        """See L{IBusLeader.set_setting}."""
        return self._answer("set_setting", {"settings": {name: value}}, name, value)

    def lost(self, link: Any) -> None:
        """See L{IBusLeader.lost}."""
        self.lost_links.append(link)


def a_registration(**changes: Any) -> dict[str, Any]:
    """Return a registration that is right in form."""
    return {
        "instanceId": "4242:1700000000000",
        "kind": "managed",
        "ownerId": "worker:demo",
        "pid": 4242,
        "processBirthId": "4242:start:1",
        "sessionGeneration": 1,
        "cwd": "/home/someone/demo",
        "connectedAtMs": 1700000000000,
        **changes,
    }


@implementer(IBusFollower)
@attrs.define(eq=False)
class FakeBusFollower:
    """Admits everything; notes every call in C{calls}; answers from C{answers} by method name."""

    registration: dict[str, Any] = attrs.Factory(a_registration)
    calls: list[tuple[Any, ...]] = attrs.Factory(list)
    answers: dict[str, Any] = attrs.Factory(dict)
    current_state: dict[str, Any] = attrs.Factory(lambda: {"activity": "idle"})
    settings: list[dict[str, Any]] = attrs.Factory(list)
    link: Any = None

    def _answer(self, name: str, default: Any, *arguments: Any) -> Deferred[Any]:
        self.calls.append((name, *arguments))
        answer = self.answers.get(name, default)
        if isinstance(answer, Exception):
            return fail(answer)
        return answer if isinstance(answer, Deferred) else succeed(answer)

    def register_request(self) -> dict[str, Any]:
        """See L{IBusFollower.register_request}."""
        return self.registration

    def registered(self, link: Any, registration: dict[str, Any]) -> Deferred[None]:
        """See L{IBusFollower.registered}."""
        self.link = link
        return self._answer("registered", None, registration)

    def state(self) -> dict[str, Any]:
        """See L{IBusFollower.state}."""
        return self.current_state

    def admit(
        self, delivery_id: str, update_id: int, kind: str, update: dict[str, Any]
    ) -> Deferred[tuple[str, str]]:
        """See L{IBusFollower.admit}."""
        return self._answer("admit", ("accepted", ""), delivery_id, update_id, kind, update)

    def confirm_settled(self, delivery_ids: Sequence[str]) -> Deferred[None]:
        """See L{IBusFollower.confirm_settled}."""
        return self._answer("confirm_settled", None, list(delivery_ids))

    def control(self, request_id: str, command: dict[str, Any]) -> Deferred[Any]:
        """See L{IBusFollower.control}."""
        return self._answer("control", {}, request_id, command)

    def shutdown(self, mode: str, deadline_ms: int) -> None:
        """See L{IBusFollower.shutdown}."""
        self.calls.append(("shutdown", mode, deadline_ms))

    def replace_target(
        self,
        target: dict[str, int] | None,
        old_target: dict[str, int] | None,
        reason: str,
    ) -> Deferred[dict[str, Any]]:
        """See L{IBusFollower.replace_target}."""
        return self._answer("replace_target", {}, target, old_target, reason)

    def settings_told(self, settings: dict[str, Any]) -> None:
        """See L{IBusFollower.settings_told}."""
        self.settings.append(settings)

    def lost(self) -> None:
        """See L{IBusFollower.lost}."""
        self.link = None
        self.calls.append(("lost",))


def no_peer(transport: Any) -> PeerIds:
    """A system that does not tell who is connected."""
    return UNKNOWN


@attrs.define(eq=False)
class MemoryWire:
    """Connects followers to a server in memory, over any number of connections.

    @ivar refusing: connections fail while this is true.
    """

    server: BusServer
    pumps: list[IOPump] = attrs.Factory(list)
    refusing: bool = False

    def connect(self, path: str, link: LeaderLink) -> Deferred[None]:
        """The C{connect} of a L{pitelegram.bus.follower.BusClient}."""
        if self.refusing:
            return fail(ConnectionRefusedError("nobody listens"))
        self.join(link)
        return succeed(None)

    def join(self, client: Any) -> IOPump:
        """Connect a protocol to a new link of the server."""
        other = self.server.new_link()
        near, far = PipeTransport(client, False), PipeTransport(other, True)
        pump = IOPump(client, other, near, far, False)
        self.pumps.append(pump)
        other.makeConnection(far)
        client.makeConnection(near)
        return pump

    def flush(self) -> None:
        """Move bytes until nothing moves any more."""
        while any([pump.pump() for pump in self.pumps]):
            pass

    def cut(self) -> None:
        """Every connection is lost, with what was under way."""
        for pump in self.pumps:
            for transport in (pump.clientIO, pump.serverIO):
                transport.stream.clear()
                transport.abortConnection()
        self.flush()
        self.pumps.clear()
