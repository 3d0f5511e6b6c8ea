"""Commands that come over the bus (wire contract, C{leader.workerControl})."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred

from pitelegram.errors import Refusal
from pitelegram.kernel.deferring import deferred
from pitelegram.worker.port import HostPort

Work = Callable[[str, dict[str, Any]], Deferred[Any]]

UNSUPPORTED = ("fork", "clone")
"""What the port can do and the bus does not offer."""


class Control:
    """Takes exactly the commands of the wire contract and asks the port.

    @param port: what does the work.
    """

    def __init__(self, port: HostPort) -> None:
        self._port = port
        self._commands: dict[str, Work] = {
            "prompt": self._prompt,
            "steer": lambda id_, command: port.queue_message(id_, _message(command), True),
            "abort": lambda id_, command: port.abort(id_),
            "clear_queue": lambda id_, command: port.clear_queue(id_),
            "compact": lambda id_, command: port.compact(id_, command.get("customInstructions")),
            "set_model": lambda id_, command: port.set_model(
                id_, _member(command, "provider"), _member(command, "modelId")
            ),
            "set_thinking_level": lambda id_, command: port.set_thinking_level(
                id_, _member(command, "level")
            ),
            "new_session": lambda id_, command: port.new_session(id_),
            "switch_session": lambda id_, command: port.switch_session(
                id_, _member(command, "sessionPath")
            ),
            "answer": self._answer,
            "get_state": lambda id_, command: port.get_state(),
        }

    @property
    def types(self) -> frozenset[str]:
        """The types that are taken: the wire's allow-list."""
        return frozenset(self._commands)

    @deferred
    async def execute(self, request_id: str, command: dict[str, Any]) -> Any:
        """Fire with the command's result.

        @raise Refusal: with a code of the wire contract.
        """
        kind = command.get("type")
        if kind in UNSUPPORTED:
            raise Refusal("unsupported", f"{kind} is not available over the bus")
        work = self._commands.get(kind) if isinstance(kind, str) else None
        if work is None:
            raise Refusal("invalid-command", "there is no such command")
        return await work(request_id, command)

    def _prompt(self, request_id: str, command: dict[str, Any]) -> Deferred[Any]:
        deliver = command.get("deliverAs")
        if deliver not in (None, "steer", "followUp"):
            raise Refusal("invalid-command", "deliverAs is steer or followUp")
        message = _message(command)
        if deliver is not None:
            message["deliverAs"] = deliver
        return self._port.queue_message(request_id, message, deliver == "steer")

    def _answer(self, request_id: str, command: dict[str, Any]) -> Deferred[Any]:
        given = {
            name: command[name] for name in ("value", "confirmed", "cancelled") if name in command
        }
        return self._port.answer(request_id, _member(command, "dialogRef"), given)


def _message(command: dict[str, Any]) -> dict[str, Any]:
    return {"type": command["type"], "message": _member(command, "message")}


def _member(command: dict[str, Any], name: str) -> str:
    value = command.get(name)
    if not isinstance(value, str):
        raise Refusal("invalid-command", f"{name} must be a text")
    return value
