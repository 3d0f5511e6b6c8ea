"""The connection to the leader, on the follower's side."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from pitelegram.bus import commands as c
from pitelegram.bus import forms, handshake
from pitelegram.bus.interfaces import IBusFollower, ILeaderLink
from pitelegram.bus.pulse import Pulse
from pitelegram.bus.refusals import opened
from pitelegram.bus.wire import DEADLINE, Responder, Values, Wire
from pitelegram.errors import BusBadRequest, LinkLost, StaleGeneration
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.observers import OneShot

REGISTER_DEADLINE = 10.0
HEARTBEAT_DEADLINE = 5.0
_FILE_DEADLINE = 60.0
_BYTES_PER_SECOND = 100_000
_DOWNLOAD_LIMIT = 20_000_000
_RECEIPT_STATES = ("accepted", "delivered", "uncertain", "dead-letter")


@implementer(ILeaderLink)
class LeaderLink(Wire):
    """See L{ILeaderLink}.

    @ivar roster: the last heartbeat's answer, None before it.
    @ivar made: fires when the connection is made, or fails when it cannot be.
    @ivar gone: fires when the connection is closed.
    """

    def __init__(self, follower: IBusFollower, clock: IReactorTime) -> None:
        super().__init__(clock)
        self.capabilities: frozenset[str] = frozenset()
        self.registration: dict[str, Any] | None = None
        self.roster: dict[str, Any] | None = None
        self.made: OneShot[None] = OneShot()
        self.gone: OneShot[None] = OneShot()
        self._follower = follower
        self._open = False
        self._alive: Callable[[], None] = lambda: None
        self._requests = 0
        self._pulse = Pulse(clock, self._heartbeat)

    def responders(self) -> dict[type[c.BusCommand], Responder]:
        """Everything a leader may ask."""
        forwards: dict[type[c.BusCommand], Responder] = {
            command: lambda values, kind=kind: self._admit(kind, values)  # type: ignore[misc]
            for kind, command in c.FORWARDS.items()
        }
        return {
            **forwards,
            c.ConfirmSettled: self._confirm_settled,
            c.WorkerControl: self._control,
            c.Shutdown: self._shutdown,
            c.ReplaceTarget: self._replace_target,
        }

    def admits(self, command: bytes) -> bool:
        """Nothing from a leader that has not proven itself."""
        return self.trusted

    def connectionMade(self) -> None:
        """Tell who waits for it."""
        self.made.fire(None)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Fail what waits, then say so."""
        super().connectionLost(reason)
        self._pulse.end(LinkLost("the bus connection ended"))
        self.gone.fire(None)

    # --- the session, driven by the client ---------------------------------------------------

    @deferred
    async def shake_hands(
        self, credential: str, secret: bytes, build: str, random_bytes: Callable[[int], bytes]
    ) -> None:
        """Check the leader's proof, then send our own.

        @raise pitelegram.errors.BusUnauthorized: one side did not prove itself.
        @raise pitelegram.errors.IncompatibleProtocol: the leader speaks another version.
        """
        nonce = random_bytes(handshake.NONCE_BYTES)
        hello = await self.ask(
            c.Hello,
            {
                "protocolVersion": handshake.PROTOCOL_VERSION,
                "build": build,
                "capabilities": list(handshake.CAPABILITIES),
                "nonce": nonce,
                "credential": credential,
            },
            handshake.TIME_LIMIT,
        )
        self.capabilities = handshake.check_identity(
            hello["protocolVersion"], hello["build"], hello["capabilities"]
        )
        handshake.check_leader(secret, nonce, hello["nonce"], hello["proof"])
        self.trust()
        proof = handshake.follower_proof(secret, nonce, hello["nonce"])
        await self.ask(c.Authenticate, {"proof": proof}, handshake.TIME_LIMIT)

    @deferred
    async def register(self, registration: dict[str, Any]) -> dict[str, Any]:
        """Register on this connection; forwards are answered C{retryable} until L{beat}."""
        self._open = False
        answer = await self.ask(c.Register, {"registration": registration}, REGISTER_DEADLINE)
        registered = opened(answer["registration"])
        for name in ("instanceId", "registrationGeneration", "bindingKey", "workerId"):
            if not isinstance(registered.get(name), str):
                raise BusBadRequest(f"the leader's registration lacks {name}")
        self.registration = registered
        return registered

    def beat(self, alive: Callable[[], None]) -> Deferred[None]:
        """Send heartbeats until one fails; from now on forwards are admitted.

        @param alive: called after each heartbeat that was answered.
        """
        self._open = True
        self._alive = alive
        return self._pulse.run()

    @deferred
    async def _heartbeat(self) -> None:
        values = {**self._sender(), "state": self._follower.state()}
        answer = await self.ask(c.Heartbeat, values, HEARTBEAT_DEADLINE)
        self.roster = forms.an_object(answer["roster"], "roster")
        settings = self.roster.get("settings")
        if isinstance(settings, dict):
            self._follower.settings_told(settings)
        title = self.roster.get("displayTitle")
        if self.registration is not None and self.registration.get("displayTitle") != title:
            self.registration["displayTitle"] = title
        self._alive()

    # --- what the worker asks ----------------------------------------------------------------

    def heartbeat_now(self) -> None:
        """See L{ILeaderLink.heartbeat_now}."""
        self._pulse.now()

    @deferred
    async def call_api(
        self,
        method: str,
        params: dict[str, Any],
        options: dict[str, Any] | None = None,
        files: Sequence[dict[str, Any]] = (),
    ) -> Any:
        """See L{ILeaderLink.call_api}."""
        values = {
            **self._request(),
            "method": method,
            "params": params,
            "options": options or {},
            "files": list(files),
        }
        answer = await self.ask(c.CallApi, values, _deadline_for(files))
        return opened(answer["result"]).get("result")

    @deferred
    async def download_file(self, file_id: str) -> dict[str, Any]:
        """See L{ILeaderLink.download_file}."""
        deadline = _FILE_DEADLINE + self._download_limit() / _BYTES_PER_SECOND
        answer = await self.ask(c.DownloadFile, {**self._request(), "fileId": file_id}, deadline)
        return opened(answer["result"])

    def _download_limit(self) -> int:
        """How large a file may be, by what the leader told at the registration."""
        settings = (self.registration or {}).get("settings")
        told = settings.get("downloadLimit") if isinstance(settings, dict) else None
        return told if type(told) is int and told > 0 else _DOWNLOAD_LIMIT

    @deferred
    async def submit_delivery(self, delivery_id: str, delivery: dict[str, Any]) -> str:
        """See L{ILeaderLink.submit_delivery}."""
        values = {**self._sender(), "deliveryId": delivery_id, "delivery": delivery}
        receipt = opened((await self.ask(c.SubmitDelivery, values))["receipt"])
        state = receipt.get("state")
        if receipt.get("deliveryId") != delivery_id or state not in _RECEIPT_STATES:
            raise BusBadRequest("the leader's receipt is not for this delivery")
        return str(state)

    @deferred
    async def rename_thread(self, target: dict[str, int], name: str) -> dict[str, Any]:
        """See L{ILeaderLink.rename_thread}."""
        values = {**self._sender(), "target": target, "name": name}
        answer = opened((await self.ask(c.RenameThread, values))["result"])
        return forms.an_object(answer.get("result"), "result")

    @deferred
    async def set_display_mode(self, target: dict[str, int] | None, mode: str) -> dict[str, Any]:
        """See L{ILeaderLink.set_display_mode}."""
        values = {**self._sender(), "target": target, "mode": mode}
        answer = opened((await self.ask(c.SetDisplayMode, values))["result"])
        return forms.an_object(answer.get("result"), "result")

    @deferred
    async def set_setting(self, name: str, value: Any) -> dict[str, Any]:
        """See L{ILeaderLink.set_setting}."""
        values = {**self._sender(), "name": name, "value": value}
        answer = opened((await self.ask(c.SetSetting, values))["result"])
        result = forms.an_object(answer.get("result"), "result")
        return forms.an_object(result.get("settings"), "settings")

    @deferred
    async def disconnect(self, reason: str, delete_thread: bool) -> dict[str, Any]:
        """See L{ILeaderLink.disconnect}."""
        values = {**self._sender(), "reason": reason, "deleteThread": delete_thread}
        return opened((await self.ask(c.Disconnect, values))["outcome"])

    def _sender(self) -> Values:
        if self.registration is None:
            raise StaleGeneration("not registered yet")
        return {
            "instanceId": self.registration["instanceId"],
            "registrationGeneration": self.registration["registrationGeneration"],
        }

    def _request(self) -> Values:
        self._requests += 1
        sender = self._sender()
        return {**sender, "requestId": f"{sender['registrationGeneration']}:{self._requests}"}

    # --- what the leader asks ----------------------------------------------------------------

    def _addressed(self, values: Values) -> None:
        registration = self.registration
        if (
            registration is None
            or values["recipientInstanceId"] != registration["instanceId"]
            or values["recipientRegistrationGeneration"] != registration["registrationGeneration"]
        ):
            raise StaleGeneration("this is meant for another registration")

    @deferred
    async def _admit(self, kind: str, values: Values) -> Values:
        self._addressed(values)
        if values["recipientBindingKey"] != (self.registration or {}).get("bindingKey"):
            raise StaleGeneration("this is meant for another binding")
        delivery_id, update_id = values["deliveryId"], values["updateId"]
        update = forms.an_object(values["update"], "update")
        settlement, reason = "retryable", "the worker has not opened its inbox yet"
        if self._open:
            try:
                settlement, reason = await self._follower.admit(
                    delivery_id, update_id, kind, update
                )
            except CancelledError:
                raise
            except Exception:
                self.log.failure("admission of {delivery} failed", delivery=delivery_id)
                reason = "the worker could not store it"
        return {
            "settlement": settlement,
            "receipt": {"deliveryId": delivery_id, "updateId": update_id},
            "reason": reason[:1000],
        }

    @deferred
    async def _confirm_settled(self, values: Values) -> Values:
        await self._follower.confirm_settled(forms.a_list_of_ids(values["deliveryIds"]))
        return {}

    @deferred
    async def _control(self, values: Values) -> Values:
        self._addressed(values)
        command = forms.an_object(values["command"], "command")
        result = await self._follower.control(values["requestId"], command)
        return {"result": {"ok": True, "result": result}}

    def _shutdown(self, values: Values) -> Values:
        self._addressed(values)
        if values["mode"] not in ("drain", "abort"):
            raise BusBadRequest("mode must be drain or abort")
        self._follower.shutdown(values["mode"], values["deadlineMs"])
        return {}

    @deferred
    async def _replace_target(self, values: Values) -> Values:
        self._addressed(values)
        result = await self._follower.replace_target(
            forms.a_target(values["target"], "target"),
            forms.a_target(values["oldTarget"], "oldTarget"),
            values["reason"],
        )
        return {"result": {"ok": True, **(result or {})}}


def _deadline_for(files: Sequence[dict[str, Any]]) -> float:
    if not files:
        return DEADLINE
    size = 0
    for file in files:
        try:
            size += os.stat(file["path"]).st_size
        except (OSError, KeyError, TypeError):
            continue
    return _FILE_DEADLINE + size / _BYTES_PER_SECOND
