"""The worker's own control port: every operation, beside Pi."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from zope.interface import implementer

from pitelegram.errors import Refusal
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.jsonio import canonical
from pitelegram.pi.interfaces import IPiHost
from pitelegram.pi.port import IWorkerControlPort
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.brake import Brake
from pitelegram.worker.dialogs import Dialogs
from pitelegram.worker.ledger import Ledger, fingerprint
from pitelegram.worker.queue import Queue
from pitelegram.worker.sessions import Sessions

MAX_MESSAGE = 200_000
LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
"""Thinking levels; Pi takes any other word for C{off}."""

BUSY = "Pi is busy, and a change of session would cut its work off; abort it first, or wait"

_SLASH = re.compile(r"\A\s*/[A-Za-z]")


def control_delivery_id(request_id: str) -> str:
    """Return the inbox id of a prompt that came with this request id."""
    return f"control-{hashlib.sha256(request_id.encode()).hexdigest()}"


@implementer(IWorkerControlPort)
class HostPort:
    """See L{IWorkerControlPort}.

    Prompts are rows of the inbox; everything else is done once per request id by the ledger in the
    same file.

    @param up: whether Pi can be talked to.
    @param busy: whether Pi, or what was handed to it, is at work.
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
        busy: Callable[[], bool],
        state: Callable[[], dict[str, Any]],
    ) -> None:
        self._inbox = inbox
        self._queue = queue
        self._brake = brake
        self._host = host
        self._sessions = sessions
        self._dialogs = dialogs
        self._up = up
        self._busy = busy
        self._state = state
        self._ledger = Ledger(inbox)

    # --- prompts -----------------------------------------------------------------------------

    def prompt(self, request_id: str, message: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.prompt}."""
        return self.queue_message(request_id, {"type": "prompt", "message": message}, False)

    def steer(self, request_id: str, message: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.steer}."""
        return self.queue_message(request_id, {"type": "steer", "message": message}, True)

    def follow_up(self, request_id: str, message: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.follow_up}."""
        command = {"type": "prompt", "message": message, "deliverAs": "followUp"}
        return self.queue_message(request_id, command, False)

    @deferred
    async def queue_message(
        self, request_id: str, command: dict[str, Any], steering: bool
    ) -> dict[str, Any]:
        """Put a message into the inbox, once per request id.

        @param command: as the wire has it; what a repetition is compared by.
        """
        message = _text(command["message"], "message")
        if not message.strip():
            raise Refusal("invalid-command", "the message is empty")
        if len(message) > MAX_MESSAGE:
            raise Refusal("command-too-large", f"a message has at most {MAX_MESSAGE} characters")
        if _SLASH.match(message):
            raise Refusal("invalid-command", "a message cannot begin with a slash command")
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

    # --- what runs ---------------------------------------------------------------------------

    def abort(self, request_id: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.abort}."""

        async def work() -> dict[str, Any]:
            found = await self._brake.abort()
            return {"aborted": found.run or found.compaction}

        return self._once(request_id, {"type": "abort"}, work)

    def clear_queue(self, request_id: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.clear_queue}."""

        async def work() -> dict[str, Any]:
            return {"cleared": await self._brake.clear_all()}

        return self._once(request_id, {"type": "clear_queue"}, work)

    def compact(self, request_id: str, instructions: str | None = None) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.compact}."""
        arguments = {}
        if instructions is not None:
            arguments["customInstructions"] = instructions

        async def work() -> dict[str, Any]:
            if instructions is not None:
                _text(instructions, "customInstructions")
            result = await self._pi("compact", **arguments)
            kept = ("tokensBefore", "estimatedTokensAfter")
            return {name: result[name] for name in kept if name in (result or {})}

        return self._once(request_id, {"type": "compact", **arguments}, work)

    def set_model(self, request_id: str, provider: str, model: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.set_model}."""

        async def work() -> dict[str, Any]:
            if not _text(provider, "provider") or not _text(model, "modelId"):
                raise Refusal("invalid-command", "a model needs its provider and its id")
            await self._pi("set_model", provider=provider, modelId=model)
            return {"provider": provider, "modelId": model}

        command = {"type": "set_model", "provider": provider, "modelId": model}
        return self._once(request_id, command, work)

    def set_thinking_level(self, request_id: str, level: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.set_thinking_level}."""

        async def work() -> dict[str, Any]:
            if level not in LEVELS:
                raise Refusal("invalid-command", f"the level is one of {', '.join(LEVELS)}")
            await self._pi("set_thinking_level", level=level)
            return {"level": level}

        return self._once(request_id, {"type": "set_thinking_level", "level": level}, work)

    # --- sessions ----------------------------------------------------------------------------

    def new_session(self, request_id: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.new_session}."""
        return self._once(request_id, {"type": "new_session"}, lambda: self._replace("new_session"))

    def switch_session(self, request_id: str, path: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.switch_session}."""

        async def work() -> dict[str, Any]:
            if not os.path.isabs(_text(path, "sessionPath")):
                raise Refusal("invalid-command", "a session is named by its absolute path")
            self._check_idle()
            lock = self._sessions.reserve(path)
            with self._queue.paused():
                try:
                    await self._pi("switch_session", sessionPath=os.path.realpath(path))
                except BaseException:
                    lock.release()
                    raise
                await self._sessions.changed(self._host.state or {}, lock)
            return self._sessions.current()

        return self._once(request_id, {"type": "switch_session", "sessionPath": path}, work)

    def fork(self, request_id: str, entry_id: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.fork}."""

        async def work() -> dict[str, Any]:
            return await self._replace("fork", entryId=_text(entry_id, "entryId"))

        return self._once(request_id, {"type": "fork", "entryId": entry_id}, work)

    def clone(self, request_id: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.clone}."""
        return self._once(request_id, {"type": "clone"}, lambda: self._replace("clone"))

    async def _replace(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Have Pi go into a session that it makes itself; a prompt meanwhile would be cut off."""
        self._check_idle()
        with self._queue.paused():
            await self._pi(name, **arguments)
            await self._sessions.changed(self._host.state or {})
        return self._sessions.current()

    def _check_idle(self) -> None:
        if self._up() and self._busy():
            raise Refusal("execution-failed", BUSY)

    # --- the rest ----------------------------------------------------------------------------

    def answer(
        self, request_id: str, dialog_ref: str, answer: dict[str, Any]
    ) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.answer}."""

        async def work() -> dict[str, Any]:
            given = [name for name in ("value", "confirmed", "cancelled") if name in answer]
            if len(given) != 1 or len(answer) != 1:
                raise Refusal(
                    "invalid-command", "an answer is one of value, confirmed and cancelled"
                )
            self._dialogs.answer(_text(dialog_ref, "dialogRef"), dict(answer))
            return {}

        command = {"type": "answer", "dialogRef": dialog_ref, **answer}
        return self._once(request_id, command, work)

    @deferred
    async def get_state(self) -> dict[str, Any]:
        """See L{IWorkerControlPort.get_state}; it changes nothing and is not remembered."""
        if self._up():
            await self._host.get_state()
        return self._state()

    def _once(
        self, request_id: str, command: dict[str, Any], work: Callable[[], Any]
    ) -> Deferred[dict[str, Any]]:
        return self._ledger.once(request_id, command, lambda: Deferred.fromCoroutine(work()))

    async def _pi(self, name: str, **arguments: Any) -> Any:
        if not self._up():
            raise Refusal("execution-failed", "Pi is not ready yet; nothing was done")
        return await self._host.command(name, **arguments)


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise Refusal("invalid-command", f"{name} must be a text")
    return value
