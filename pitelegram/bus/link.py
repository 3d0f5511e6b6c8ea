"""One follower's connection, on the leader's side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
from twisted.internet.defer import Deferred, DeferredLock, fail
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from pitelegram.bus import commands as c
from pitelegram.bus import forms, handshake
from pitelegram.bus.interfaces import IBusLeader, ICredentials, IFollowerLink, Peer
from pitelegram.bus.refusals import opened
from pitelegram.bus.wire import DEADLINE, Responder, Values, Wire
from pitelegram.errors import BusBadRequest, BusUnauthorized, LinkLost, StaleGeneration
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.observers import OneShot
from pitelegram.kernel.peers import PeerIds

SETTLEMENTS = ("accepted", "retryable", "terminal-rejected")
COMPACT_DEADLINE = 600.0
_REASONS = ("quit", "disconnect", "replaced")


@attrs.frozen(kw_only=True)
class LeaderSide:
    """What every link of a leader shares.

    @ivar peer_ids: asks the system about a transport's other end.
    @ivar uid: the only user who may connect.
    """

    credentials: ICredentials
    leader: IBusLeader
    clock: IReactorTime
    random_bytes: Callable[[int], bytes]
    build: str
    peer_ids: Callable[[Any], PeerIds]
    uid: int


@implementer(IFollowerLink)
class FollowerLink(Wire):
    """See L{IFollowerLink}.

    The stages are C{hello}, C{authenticate}, C{open}; each admits its own commands only.

    @ivar gone: fires when the connection is closed.
    """

    def __init__(self, side: LeaderSide) -> None:
        super().__init__(side.clock)
        self.peer: Peer | None = None
        self.capabilities: frozenset[str] = frozenset()
        self.registration: dict[str, Any] | None = None
        self.gone: OneShot[None] = OneShot()
        self._side = side
        self._leader = side.leader
        self._stage = "hello"
        self._registering = DeferredLock()
        self._deadline: IDelayedCall | None = None
        self._ids = PeerIds(None, None)

    def responders(self) -> dict[type[c.BusCommand], Responder]:
        """Handshake and everything a follower may ask."""
        return {
            c.Hello: self._hello,
            c.Authenticate: self._authenticate,
            c.Register: lambda values: self._register(values, restore=False),
            c.RestoreWorkspace: lambda values: self._register(values, restore=True),
            c.Heartbeat: self._heartbeat,
            c.Disconnect: self._disconnect,
            c.CallApi: self._call_api,
            c.DownloadFile: self._download_file,
            c.SubmitDelivery: self._submit_delivery,
            c.ResolveTarget: self._resolve_target,
            c.RouteAgentMessage: self._route_agent_message,
            c.RenameThread: self._rename_thread,
            c.SetDisplayMode: self._set_display_mode,
            c.SetSetting: self._set_setting,
        }

    def admits(self, command: bytes) -> bool:
        """The handshake's commands in their order, then all others."""
        if self._stage == "open":
            return command not in (c.Hello.commandName, c.Authenticate.commandName)
        return command == f"bus.{self._stage}".encode()

    @property
    def connected(self) -> bool:  # type: ignore[override]
        """Whether calls can go out."""
        return self.transport is not None and not self.ended

    # --- connection --------------------------------------------------------------------------

    def connectionMade(self) -> None:
        """Refuse another user; give the handshake its five seconds."""
        self._ids = self._side.peer_ids(self.transport)
        if self._ids.uid is not None and self._ids.uid != self._side.uid:
            self.end("the peer belongs to another user")
            return
        self._deadline = self.clock.callLater(handshake.TIME_LIMIT, self._late)

    def _late(self) -> None:
        self._deadline = None
        self.end("the handshake took too long")

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Tell the leader, if it ever knew this link."""
        if self._deadline is not None and self._deadline.active():
            self._deadline.cancel()
        super().connectionLost(reason)
        if self.registration is not None:
            self._leader.lost(self)
        self.gone.fire(None)

    def abort(self) -> None:
        """See L{IFollowerLink.abort}."""
        self.end("the leader gave it up")

    # --- handshake ---------------------------------------------------------------------------

    def _hello(self, values: Values) -> Values:
        self.capabilities = handshake.check_identity(
            values["protocolVersion"], values["build"], values["capabilities"]
        )
        handshake.check_nonce(values["nonce"])
        secrets = self._side.credentials.secrets(values["credential"])
        if not secrets:
            raise BusUnauthorized("this credential is not known")
        self._nonces = values["nonce"], self._side.random_bytes(handshake.NONCE_BYTES)
        self._secrets = secrets
        self._credential = values["credential"]
        self._stage = "authenticate"
        return {
            "protocolVersion": handshake.PROTOCOL_VERSION,
            "build": self._side.build,
            "capabilities": list(handshake.CAPABILITIES),
            "nonce": self._nonces[1],
            "epoch": self._leader.epoch,
            "profile": self._leader.profile,
            "proof": handshake.leader_proof(secrets[0][1], *self._nonces),
        }

    def _authenticate(self, values: Values) -> Values:
        secret_id = handshake.which_secret(self._secrets, *self._nonces, values["proof"])
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._secrets = ()
        self.peer = Peer(credential=self._credential, secret_id=secret_id, pid=self._ids.pid)
        self._stage = "open"
        self.trust()
        return {}

    # --- what a follower asks ----------------------------------------------------------------

    def _current(self, values: Values) -> None:
        registration = self.registration
        if (
            registration is None
            or values["instanceId"] != registration["instanceId"]
            or values["registrationGeneration"] != registration["registrationGeneration"]
        ):
            raise StaleGeneration("this registration is not the current one; register again")

    @deferred
    async def _register(self, values: Values, restore: bool) -> Values:
        registration = forms.a_registration(values["registration"])
        await self._registering.acquire()
        try:
            answer = await self._leader.register(self, registration, restore)
            self.registration = answer
        finally:
            self._registering.release()
        if not self.connected:
            self._leader.lost(self)
        return {"registration": answer}

    def _heartbeat(self, values: Values) -> Values:
        self._current(values)
        state = forms.an_object(values["state"], "state")
        return {"roster": self._leader.heartbeat(self, state)}

    @deferred
    async def _disconnect(self, values: Values) -> Values:
        await self._registering.acquire()
        try:
            self._current(values)
            if values["reason"] not in _REASONS:
                raise BusBadRequest("reason must be quit, disconnect or replaced")
            outcome = await self._leader.disconnect(self, values["reason"], values["deleteThread"])
            self.registration = None
        finally:
            self._registering.release()
        return {"outcome": outcome}

    @deferred
    async def _call_api(self, values: Values) -> Values:
        self._current(values)
        result = await self._leader.call_api(
            self,
            values["requestId"],
            values["method"],
            forms.an_object(values["params"], "params"),
            forms.an_object(values["options"] or {}, "options"),
            forms.a_list_of_objects(values["files"], "files"),
        )
        return {"result": {"ok": True, "result": result}}

    @deferred
    async def _download_file(self, values: Values) -> Values:
        self._current(values)
        found = await self._leader.download_file(self, values["requestId"], values["fileId"])
        return {"result": {"ok": True, **found}}

    @deferred
    async def _submit_delivery(self, values: Values) -> Values:
        self._current(values)
        delivery_id = values["deliveryId"]
        if forms.DELIVERY_ID.fullmatch(delivery_id) is None:
            raise BusBadRequest("a deliveryId is 1 to 128 of A-Z a-z 0-9 . _ -")
        delivery = forms.an_object(values["delivery"], "delivery")
        state = await self._leader.submit_delivery(self, delivery_id, delivery)
        return {"receipt": {"ok": True, "deliveryId": delivery_id, "state": state}}

    @deferred
    async def _resolve_target(self, values: Values) -> Values:
        self._current(values)
        selector = forms.an_object(values["selector"], "selector")
        return {"target": await self._leader.resolve_target(self, selector)}

    @deferred
    async def _route_agent_message(self, values: Values) -> Values:
        self._current(values)
        message = forms.an_object(values["message"], "message")
        result = await self._leader.route_agent_message(self, values["requestId"], message)
        return {"result": {"ok": True, "result": result}}

    @deferred
    async def _rename_thread(self, values: Values) -> Values:
        self._current(values)
        target = forms.a_target(values["target"], "target")
        result = await self._leader.rename_thread(self, target, values["name"])
        return {"result": {"ok": True, "result": result}}

    @deferred
    async def _set_display_mode(self, values: Values) -> Values:
        self._current(values)
        target = forms.a_target(values["target"], "target")
        result = await self._leader.set_display_mode(self, target, values["mode"])
        return {"result": {"ok": True, "result": result}}

    @deferred
    async def _set_setting(self, values: Values) -> Values:
        self._current(values)
        result = await self._leader.set_setting(self, values["name"], values["value"])
        return {"result": {"ok": True, "result": result}}

    # --- what the leader asks ----------------------------------------------------------------

    def forward(
        self, delivery_id: str, update_id: int, kind: str, update: dict[str, Any] | bytes
    ) -> Deferred[dict[str, Any]]:
        """See L{IFollowerLink.forward}; C{bytes} are the update's JSON as it came."""
        if self.registration is None:
            return fail(LinkLost("the follower is not registered"))
        asking = self.ask(
            c.FORWARDS[kind],
            {
                "deliveryId": delivery_id,
                "updateId": update_id,
                "recipientInstanceId": self.registration["instanceId"],
                "recipientRegistrationGeneration": self.registration["registrationGeneration"],
                "recipientBindingKey": self.registration["bindingKey"],
                "update": update,
            },
        )
        return asking.addCallback(_checked_settlement)

    @deferred
    async def confirm_settled(self, delivery_ids: Sequence[str]) -> None:
        """See L{IFollowerLink.confirm_settled}."""
        await self.ask(c.ConfirmSettled, {"deliveryIds": list(delivery_ids)})

    @deferred
    async def control(self, request_id: str, command: dict[str, Any]) -> Any:
        """See L{IFollowerLink.control}."""
        deadline = COMPACT_DEADLINE if command.get("type") == "compact" else DEADLINE
        values = {**self._recipient(), "requestId": request_id, "command": command}
        answer = await self.ask(c.WorkerControl, values, deadline)
        return opened(answer["result"]).get("result")

    @deferred
    async def shutdown(self, mode: str, deadline_ms: int) -> None:
        """See L{IFollowerLink.shutdown}."""
        await self.ask(c.Shutdown, {**self._recipient(), "mode": mode, "deadlineMs": deadline_ms})

    @deferred
    async def replace_target(
        self, target: dict[str, int] | None, old_target: dict[str, int] | None, reason: str
    ) -> dict[str, Any]:
        """See L{IFollowerLink.replace_target}."""
        values = {"target": target, "oldTarget": old_target, "reason": reason}
        answer = await self.ask(c.ReplaceTarget, {**self._recipient(), **values})
        return opened(answer["result"])

    def _recipient(self) -> Values:
        if self.registration is None:
            raise LinkLost("the follower is not registered")
        return {
            "recipientInstanceId": self.registration["instanceId"],
            "recipientRegistrationGeneration": self.registration["registrationGeneration"],
        }


def _checked_settlement(answer: Values) -> Values:
    if answer["settlement"] not in SETTLEMENTS or not isinstance(answer["receipt"], dict):
        raise BusBadRequest("the follower's settlement is malformed")
    return {**answer, "reason": answer.get("reason") or ""}
