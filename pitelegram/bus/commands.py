"""The commands of the wire contract, word for word."""

from __future__ import annotations

import re
from typing import Any

from twisted.protocols.amp import Argument, Boolean, Command, Integer, String, Unicode

from pitelegram import errors
from pitelegram.bus.bigjson import Json

_DECIMAL = re.compile(rb"-?[0-9]{1,20}")


class Decimal(Integer):
    """A decimal ASCII integer and nothing else that C{int} would take."""

    def fromString(self, inString: bytes) -> int:  # type: ignore[override]
        """Read it. @raise ValueError: if it is anything else."""
        if _DECIMAL.fullmatch(inString) is None:
            raise ValueError("not a decimal integer")
        return int(inString)


WIRE_ERRORS: dict[type[Exception], bytes] = {
    errors.BusUnauthorized: b"UNAUTHORIZED",
    errors.IncompatibleProtocol: b"INCOMPATIBLE_PROTOCOL",
    errors.BusBadRequest: b"BAD_REQUEST",
    errors.StaleGeneration: b"STALE_GENERATION",
    errors.NotLeader: b"NOT_LEADER",
    errors.BusError: b"INTERNAL",
}
"""Exception to code; the base class comes last.  C{INTERNAL} is a fault of the answering side; it ends nothing."""

FATAL = (errors.BusUnauthorized, errors.IncompatibleProtocol)
"""These end the connection."""


class BusCommand(Command):
    """Base: every command may answer any of the wire's errors."""

    commandName = b"bus"
    errors = WIRE_ERRORS


def _command(
    name: str,
    arguments: dict[str, Argument],
    response: dict[str, Argument] | None = None,
) -> type[BusCommand]:
    def as_list(fields: dict[str, Argument]) -> list[tuple[bytes, Argument]]:
        return [(key.encode("ascii"), value) for key, value in fields.items()]

    body: dict[str, Any] = {
        "__doc__": f"C{{{name}}}",
        "__module__": __name__,
        "commandName": name.encode("ascii"),
        "arguments": as_list(arguments),
        "response": as_list(response or {}),
    }
    metaclass: Any = type(BusCommand)
    command: type[BusCommand] = metaclass(name.title().replace(".", ""), (BusCommand,), body)
    return command


_IDENTITY: dict[str, Argument] = {
    "protocolVersion": Decimal(),
    "build": Unicode(),
    "capabilities": Json(),
}
_SENDER: dict[str, Argument] = {"instanceId": Unicode(), "registrationGeneration": Unicode()}
_RECIPIENT: dict[str, Argument] = {
    "recipientInstanceId": Unicode(),
    "recipientRegistrationGeneration": Unicode(),
}

Hello = _command(
    "bus.hello",
    {**_IDENTITY, "nonce": String(), "credential": Unicode()},
    {**_IDENTITY, "nonce": String(), "epoch": Unicode(), "profile": Unicode(), "proof": String()},
)
Authenticate = _command("bus.authenticate", {"proof": String()})

Register = _command("follower.register", {"registration": Json()}, {"registration": Json()})
RestoreWorkspace = _command(
    "follower.restoreWorkspace", {"registration": Json()}, {"registration": Json()}
)
Heartbeat = _command("follower.heartbeat", {**_SENDER, "state": Json()}, {"roster": Json()})
Disconnect = _command(
    "follower.disconnect",
    {**_SENDER, "reason": Unicode(), "deleteThread": Boolean()},
    {"outcome": Json()},
)
CallApi = _command(
    "follower.callApi",
    {
        **_SENDER,
        "requestId": Unicode(),
        "method": Unicode(),
        "params": Json(),
        "options": Json(optional=True),
        "files": Json(optional=True),
    },
    {"result": Json()},
)
DownloadFile = _command(
    "follower.downloadFile",
    {**_SENDER, "requestId": Unicode(), "fileId": Unicode()},
    {"result": Json()},
)
SubmitDelivery = _command(
    "follower.submitDelivery",
    {**_SENDER, "deliveryId": Unicode(), "delivery": Json()},
    {"receipt": Json()},
)
ResolveTarget = _command(
    "follower.resolveTarget", {**_SENDER, "selector": Json()}, {"target": Json()}
)
RouteAgentMessage = _command(
    "follower.routeAgentMessage",
    {**_SENDER, "requestId": Unicode(), "message": Json()},
    {"result": Json()},
)
RenameThread = _command(
    "follower.renameThread",
    {**_SENDER, "target": Json(), "name": Unicode()},
    {"result": Json()},
)
SetDisplayMode = _command(
    "follower.setDisplayMode",
    {**_SENDER, "target": Json(), "mode": Unicode()},
    {"result": Json()},
)


def _forward(name: str) -> type[BusCommand]:
    return _command(
        name,
        {
            "deliveryId": Unicode(),
            "updateId": Decimal(),
            **_RECIPIENT,
            "recipientBindingKey": Unicode(),
            "update": Json(),
        },
        {"settlement": Unicode(), "receipt": Json(), "reason": Unicode(optional=True)},
    )


FORWARDS = {
    "message": _forward("leader.forwardMessage"),
    "edited_message": _forward("leader.forwardEditedMessage"),
    "callback_query": _forward("leader.forwardCallback"),
    "message_reaction": _forward("leader.forwardReaction"),
}
"""The forwarding command of each kind of update."""

ConfirmSettled = _command("leader.confirmSettled", {"deliveryIds": Json()})
WorkerControl = _command(
    "leader.workerControl",
    {**_RECIPIENT, "requestId": Unicode(), "command": Json()},
    {"result": Json()},
)
Shutdown = _command("leader.shutdown", {**_RECIPIENT, "mode": Unicode(), "deadlineMs": Decimal()})
ReplaceTarget = _command(
    "leader.replaceTarget",
    {**_RECIPIENT, "target": Json(), "oldTarget": Json(), "reason": Unicode()},
    {"result": Json()},
)
