"""The commands of the wire contract, word for word."""

from __future__ import annotations

from typing import Any

from twisted.protocols.amp import Argument, Box, Command

from pitelegram import errors
from pitelegram.bus.bigjson import Json
from pitelegram.bus.fields import Boolean, Integer, String, Unicode

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

    def __init__(self, **values: Any) -> None:
        # What is missing is found while the box is made.
        self.structured = values

    @classmethod
    def makeArguments(cls, objects: dict[str, Any], proto: Any) -> Box:
        """Return the box of a call. @raise KeyError: an argument is missing."""
        return _boxed(cls.arguments, objects, proto)

    @classmethod
    def makeResponse(cls, objects: dict[str, Any], proto: Any) -> Box:
        """Return the box of an answer. @raise KeyError: a value is missing."""
        return _boxed(cls.response, objects, proto)

    @classmethod
    def parseArguments(cls, box: Box, protocol: Any) -> dict[str, Any]:
        """Return the values of a call. @raise KeyError: one is missing."""
        return _unboxed(cls.arguments, box, protocol)

    @classmethod
    def parseResponse(cls, box: Box, protocol: Any) -> dict[str, Any]:
        """Return the values of an answer. @raise KeyError: one is missing."""
        return _unboxed(cls.response, box, protocol)


Fields = list[tuple[bytes, Argument]]


def _boxed(fields: Fields, objects: dict[str, Any], proto: Any) -> Box:
    box = Box()
    for name, field in fields:
        field.toBox(name, box, objects, proto)
    return box


def _unboxed(fields: Fields, box: Box, proto: Any) -> dict[str, Any]:
    objects: dict[str, Any] = {}
    for name, field in fields:
        field.fromBox(name, box, objects, proto)
    return objects


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
    "protocolVersion": Integer(),
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

SetSetting = _command(
    "follower.setSetting",
    {**_SENDER, "name": Unicode(), "value": Json()},
    {"result": Json()},
)


def _forward(name: str) -> type[BusCommand]:
    return _command(
        name,
        {
            "deliveryId": Unicode(),
            "updateId": Integer(),
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
Shutdown = _command("leader.shutdown", {**_RECIPIENT, "mode": Unicode(), "deadlineMs": Integer()})
ReplaceTarget = _command(
    "leader.replaceTarget",
    {**_RECIPIENT, "target": Json(), "oldTarget": Json(), "reason": Unicode()},
    {"result": Json()},
)
