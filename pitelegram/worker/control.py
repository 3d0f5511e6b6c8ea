"""Commands that come over the bus (wire contract, C{leader.workerControl})."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred

from pitelegram.errors import Refusal
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.jsonio import canonical
from pitelegram.pi.interfaces import IPiHost
from pitelegram.store.interfaces import IInbox
from pitelegram.worker.brake import Brake
from pitelegram.worker.dialogs import Dialogs
from pitelegram.worker.ledger import Ledger, fingerprint
from pitelegram.worker.queue import Queue
from pitelegram.worker.sessions import Sessions

MAX_MESSAGE = 200_000
LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
"""Thinking levels; Pi takes any other word for C{off}."""

_SLASH = re.compile(r"\A\s*/[A-Za-z]")


def control_delivery_id(request_id: str) -> str:
    """Return the inbox id of a prompt that came with this request id."""
    return f"control-{hashlib.sha256(request_id.encode()).hexdigest()}"


class Control:
    """Validates and executes one command at a time per request id.

    @param up: whether Pi can be talked to.
    @param state: returns what C{get_state} answers.
    """

    def __init__(
        self,
        inbox: IInbox,
        queue: Queue,
        brake: Brake,
        host: IPiHost,
        sessions: Sessions,
        dialogs: Dialogs,
        up: Callable[[], bool],
        state: Callable[[], dict[str, Any]],
    ) -> None:
        self._inbox = inbox
        self._queue = queue
        self._brake = brake
        self._host = host
        self._sessions = sessions
        self._dialogs = dialogs
        self._up = up
        self._state = state
        self._ledger = Ledger(inbox)
        self._commands: dict[str, Callable[[dict[str, Any]], Deferred[Any]]] = {
            "abort": self._abort,
            "clear_queue": self._clear_queue,
            "compact": self._compact,
            "set_model": self._set_model,
            "set_thinking_level": self._set_thinking_level,
            "new_session": self._new_session,
            "switch_session": self._switch_session,
            "answer": self._answer,
        }

    @deferred
    async def execute(self, request_id: str, command: dict[str, Any]) -> Any:
        """Fire with the command's result.

        @raise Refusal: with a code of the wire contract.
        """
        kind = command.get("type")
        if kind in ("prompt", "steer"):
            return await self._prompt(request_id, command)
        if kind == "get_state":
            return await self._get_state()  # it changes nothing: what it said before is of no use
        if kind in ("fork", "clone"):
            raise Refusal("unsupported", f"{kind} is not available over the bus")
        work = self._commands.get(kind) if isinstance(kind, str) else None
        if work is None:
            raise Refusal("invalid-command", "there is no such command")
        return await self._ledger.once(request_id, command, lambda: work(command))

    # --- prompts -----------------------------------------------------------------------------

    async def _prompt(self, request_id: str, command: dict[str, Any]) -> dict[str, Any]:
        message = _text(command, "message")
        if not message.strip():
            raise Refusal("invalid-command", "the message is empty")
        if len(message) > MAX_MESSAGE:
            raise Refusal("command-too-large", f"a message has at most {MAX_MESSAGE} characters")
        if _SLASH.match(message):
            raise Refusal("invalid-command", "a message cannot begin with a slash command")
        deliver = command.get("deliverAs")
        if deliver not in (None, "steer", "followUp"):
            raise Refusal("invalid-command", "deliverAs is steer or followUp")
        steering = command["type"] == "steer" or deliver == "steer"
        delivery_id = control_delivery_id(request_id)
        known = self._inbox.ledger(request_id)
        print_ = fingerprint(command)
        if known is not None and known["fingerprint"] != print_:
            raise Refusal("request-id-collision", "this request id was used for another command")
        result = {"deliveryId": delivery_id}
        # Asked for together, so that they share one commit; after a crash between them, or a failed
        # one, a repeat finds what is there and adds what is not.
        waiting = []
        if self._inbox.row(delivery_id) is None:
            body, lane = canonical(command), "priority" if steering else "normal"
            waiting.append(
                self._inbox.admit(delivery_id, "control", "message", body, message, lane=lane)
            )
        if known is None:
            waiting.append(self._inbox.ledger_start(request_id, print_))
        if known is None or known["state"] != "finished":
            waiting.append(self._inbox.ledger_finish(request_id, {"ok": True, "result": result}))
        for write in waiting:
            await write
        self._queue.kick(new=True)
        return result

    # --- everything else ---------------------------------------------------------------------

    @deferred
    async def _get_state(self) -> dict[str, Any]:
        if self._up():
            await self._host.get_state()
        return self._state()

    @deferred
    async def _abort(self, command: dict[str, Any]) -> dict[str, Any]:
        active, _ = await self._brake.abort()
        return {"aborted": active}

    @deferred
    async def _clear_queue(self, command: dict[str, Any]) -> dict[str, Any]:
        return {"cleared": await self._brake.clear_all()}

    @deferred
    async def _compact(self, command: dict[str, Any]) -> Any:
        arguments = {}
        if command.get("customInstructions") is not None:
            arguments["customInstructions"] = _text(command, "customInstructions")
        result = await self._pi("compact", **arguments)
        kept = ("tokensBefore", "estimatedTokensAfter")
        return {name: result[name] for name in kept if name in (result or {})}

    @deferred
    async def _set_model(self, command: dict[str, Any]) -> dict[str, Any]:
        provider, model = _text(command, "provider"), _text(command, "modelId")
        if not provider or not model:
            raise Refusal("invalid-command", "a model needs its provider and its id")
        await self._pi("set_model", provider=provider, modelId=model)
        return {"provider": provider, "modelId": model}

    @deferred
    async def _set_thinking_level(self, command: dict[str, Any]) -> dict[str, Any]:
        level = command.get("level")
        if level not in LEVELS:
            raise Refusal("invalid-command", f"the level is one of {', '.join(LEVELS)}")
        await self._pi("set_thinking_level", level=level)
        return {"level": level}

    @deferred
    async def _new_session(self, command: dict[str, Any]) -> dict[str, Any]:
        await self._pi("new_session")
        await self._sessions.changed(self._host.state or {})
        return self._sessions.current()

    @deferred
    async def _switch_session(self, command: dict[str, Any]) -> dict[str, Any]:
        path = _text(command, "sessionPath")
        if not os.path.isabs(path):
            raise Refusal("invalid-command", "a session is named by its absolute path")
        lock = self._sessions.reserve(path)
        try:
            await self._pi("switch_session", sessionPath=os.path.realpath(path))
        except BaseException:
            lock.release()
            raise
        await self._sessions.changed(self._host.state or {}, lock)
        return self._sessions.current()

    @deferred
    async def _answer(self, command: dict[str, Any]) -> dict[str, Any]:
        given = [name for name in ("value", "confirmed", "cancelled") if name in command]
        if len(given) != 1:
            raise Refusal("invalid-command", "an answer is one of value, confirmed and cancelled")
        self._dialogs.answer(_text(command, "dialogRef"), {given[0]: command[given[0]]})
        return {}

    async def _pi(self, name: str, **arguments: Any) -> Any:
        if not self._up():
            raise Refusal("execution-failed", "Pi is not ready yet; nothing was done")
        return await self._host.command(name, **arguments)


def _text(command: dict[str, Any], name: str) -> str:
    value = command.get(name)
    if not isinstance(value, str):
        raise Refusal("invalid-command", f"{name} must be a text")
    return value
