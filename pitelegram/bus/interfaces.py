"""Both sides of the bus, as the rest of the program sees them.

The wire itself is in C{docs/bus.md}.  JSON values are plain dicts and lists here.  A refusal crosses
as L{pitelegram.errors.Refusal}; broken protocol as a L{pitelegram.errors.BusError}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from zope.interface import Attribute, Interface


@attrs.frozen(kw_only=True)
class Peer:
    """Who proved what when a connection was opened.

    @ivar credential: C{shared} or C{worker:<specId>}.
    @ivar secret_id: an opaque id of the secret that was proven (a managed worker's spawn id).
    @ivar pid: peer pid by the operating system, None where it does not tell.
    """

    credential: str
    secret_id: str
    pid: int | None


class ICredentials(Interface):
    """The leader's secrets."""

    def secrets(credential: str) -> Sequence[tuple[str, bytes]]:
        """C{(secret_id, secret)} candidates for C{shared} or C{worker:<specId>}; empty if unknown."""


class IBusLeader(Interface):
    """What the leader does with a follower's requests.  One object per leader.

    Every method but L{connected} and L{lost} gets the L{IFollowerLink} it came on, and has been
    validated in form.  C{instanceId} and C{registrationGeneration} are compared with the link's
    current registration by the bus; a mismatch never gets here.
    """

    epoch = Attribute("The leader epoch, a str.")
    profile = Attribute("The profile name, a str.")

    def register(
        link: Any, registration: dict[str, Any], restore: bool
    ) -> Deferred[dict[str, Any]]:
        """Register; answer the full registration with C{registrationGeneration} and so on.

        @raise pitelegram.errors.BusBadRequest: not allowed to be that.
        @raise pitelegram.errors.Refusal: C{workspace-binding-unavailable} (C{restore} only).
        """

    def heartbeat(link: Any, state: dict[str, Any]) -> dict[str, Any]:
        """Note the state; answer the roster."""

    def disconnect(link: Any, reason: str, delete_thread: bool) -> Deferred[dict[str, Any]]:
        """Answer C{{"thread": …}}."""

    def call_api(
        link: Any,
        request_id: str,
        method: str,
        params: dict[str, Any],
        options: dict[str, Any],
        files: Sequence[dict[str, Any]],
    ) -> Deferred[Any]:
        """Fire with the Bot API's result, or fail with a Refusal."""

    def download_file(link: Any, request_id: str, file_id: str) -> Deferred[dict[str, Any]]:
        """Fire with C{{"path","size"}}."""

    def submit_delivery(link: Any, delivery_id: str, delivery: dict[str, Any]) -> Deferred[str]:
        """Fire with the receipt's state, after its commit."""

    def resolve_target(link: Any, selector: dict[str, Any]) -> Deferred[dict[str, Any]]: ...

    def route_agent_message(
        link: Any, request_id: str, message: dict[str, Any]
    ) -> Deferred[dict[str, Any]]: ...

    def rename_thread(
        link: Any, target: dict[str, int] | None, name: str
    ) -> Deferred[dict[str, Any]]:
        """Name the follower's Thread; fires with C{{"displayTitle","manualName"}}.

        An empty name takes the given one away.  @raise pitelegram.errors.Refusal: not done.
        """

    def set_display_mode(
        link: Any, target: dict[str, int] | None, mode: str
    ) -> Deferred[dict[str, Any]]:
        """Choose what titles are made of; fires with C{{"mode"}}.

        @raise pitelegram.errors.Refusal: not done.
        """

    def set_setting(link: Any, name: str, value: Any) -> Deferred[dict[str, Any]]:
        """Write one setting of the operator; fires with C{{"settings"}}, all as in force then.

        @raise pitelegram.errors.Refusal: C{unknown-setting}, C{invalid-value}, C{unavailable}.
        """

    def lost(link: Any) -> None:
        """The connection of a link that had registered is gone."""


class IFollowerLink(Interface):
    """One authenticated connection, on the leader's side (C{bus.leader.FollowerLink})."""

    peer = Attribute("L{Peer}")
    capabilities = Attribute("What the follower said that it can, a frozenset of str.")
    registration = Attribute("The answered registration dict, None before it.")
    connected = Attribute("Whether the connection is up.")

    def forward(
        delivery_id: str, update_id: int, kind: str, update: dict[str, Any] | bytes
    ) -> Deferred[dict[str, Any]]:
        """Forward an update of C{kind}; fires with C{{"settlement","receipt","reason"}}.

        C{update} may be the update's JSON bytes as they came: they are not parsed again.

        C{recipientInstanceId}, generation and binding key are taken from the registration.

        @raise pitelegram.errors.LinkLost: lost or timed out; the outcome is unknown.
        """

    def confirm_settled(delivery_ids: Sequence[str]) -> Deferred[None]: ...

    def control(request_id: str, command: dict[str, Any]) -> Deferred[Any]:
        """Fire with C{result}, or fail with a Refusal or LinkLost."""

    def shutdown(mode: str, deadline_ms: int) -> Deferred[None]: ...

    def replace_target(
        target: dict[str, int] | None, old_target: dict[str, int] | None, reason: str
    ) -> Deferred[dict[str, Any]]: ...

    def abort() -> None:
        """End the connection now."""


class IBusFollower(Interface):
    """What a worker does with the leader's requests.

    Recipient instance, generation and binding key have been compared by the bus client.
    """

    def register_request() -> dict[str, Any]:
        """The registration to send, made anew for each connection."""

    def registered(link: Any, registration: dict[str, Any]) -> Deferred[None]:
        """The answer; open the inbox of its C{bindingKey}.  Heartbeats start after this fired."""

    def state() -> dict[str, Any]:
        """The heartbeat's C{state}."""

    def admit(
        delivery_id: str, update_id: int, kind: str, update: dict[str, Any]
    ) -> Deferred[tuple[str, str]]:
        """Fire with C{(settlement, reason)} after the inbox committed."""

    def confirm_settled(delivery_ids: Sequence[str]) -> Deferred[None]: ...

    def control(request_id: str, command: dict[str, Any]) -> Deferred[Any]:
        """Fire with a result or fail with a Refusal."""

    def shutdown(mode: str, deadline_ms: int) -> None: ...

    def replace_target(
        target: dict[str, int] | None, old_target: dict[str, int] | None, reason: str
    ) -> Deferred[dict[str, Any]]: ...

    def settings_told(settings: dict[str, Any]) -> None:
        """The operator's settings changed; the first ones stand in the registration's answer."""

    def lost() -> None:
        """The link is gone; the client reconnects by itself."""


class ILeaderLink(Interface):
    """The registered link on the follower's side (C{bus.follower.LeaderLink}).

    Calls fail with LinkLost when the connection ends before the answer.
    """

    registration = Attribute("The answered registration; its C{displayTitle} follows heartbeats.")
    capabilities = Attribute("What the leader said that it can, a frozenset of str.")

    def heartbeat_now() -> None:
        """Send one at once (a state changed); repeats within 50 ms are joined."""

    def call_api(
        method: str,
        params: dict[str, Any],
        options: dict[str, Any] | None = None,
        files: Sequence[dict[str, Any]] = (),
    ) -> Deferred[Any]: ...

    def download_file(file_id: str) -> Deferred[dict[str, Any]]: ...

    def submit_delivery(delivery_id: str, delivery: dict[str, Any]) -> Deferred[str]:
        """Fire with the receipt's state."""

    def rename_thread(target: dict[str, int], name: str) -> Deferred[dict[str, Any]]:
        """Name the own Thread; an empty name takes the given one away.

        Fires with C{{"displayTitle","manualName"}}, or fails with a Refusal.
        """

    def set_display_mode(target: dict[str, int] | None, mode: str) -> Deferred[dict[str, Any]]:
        """Choose what titles are made of; fires with C{{"mode"}}, or fails with a Refusal."""

    def set_setting(name: str, value: Any) -> Deferred[dict[str, Any]]:
        """Write one setting of the operator; fires with all of them, or fails with a Refusal."""

    def disconnect(reason: str, delete_thread: bool) -> Deferred[dict[str, Any]]: ...


class IEndpoint(Interface):
    """Where a leader is, asked before each attempt to connect."""

    def locate() -> tuple[str, bytes] | None:
        """C{(socket path, secret)} of the current leader, None while there is none to join."""
