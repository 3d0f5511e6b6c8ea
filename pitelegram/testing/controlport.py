"""A control port that does everything at once, in memory."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from twisted.internet.defer import Deferred, fail, succeed
from zope.interface import implementer

from pitelegram.errors import Refusal
from pitelegram.pi.port import IWorkerControlPort

MAX_MESSAGE = 200_000
LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")


@implementer(IWorkerControlPort)
class FakePort:
    """Remembers what was asked, once per request id.

    @ivar done: C{(operation, arguments)} of everything that was executed, in order.
    @ivar fails: the next execution of an operation of that name fails with that.
    @ivar dialogs: open dialogs: reference to method.
    @ivar sessions: session files that may be switched to.
    """

    def __init__(self) -> None:
        self.done: list[tuple[str, tuple[Any, ...]]] = []
        self.fails: dict[str, Exception] = {}
        self.dialogs: dict[str, str] = {}
        self.sessions: set[str] = set()
        self._known: dict[str, tuple[Any, Any]] = {}
        self._number = 1

    def prompt(self, request_id: str, message: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.prompt}."""
        return self._message(request_id, "prompt", message)

    def steer(self, request_id: str, message: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.steer}."""
        return self._message(request_id, "steer", message)

    def follow_up(self, request_id: str, message: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.follow_up}."""
        return self._message(request_id, "follow_up", message)

    def abort(self, request_id: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.abort}."""
        return self._once(request_id, "abort", (), {"aborted": False})

    def clear_queue(self, request_id: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.clear_queue}."""
        return self._once(request_id, "clear_queue", (), {"cleared": 0})

    def compact(self, request_id: str, instructions: str | None = None) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.compact}."""
        return self._once(request_id, "compact", (instructions,), {})

    def set_model(self, request_id: str, provider: str, model: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.set_model}; only C{scripted} exists."""
        wrong = None
        if not provider or not model:
            wrong = Refusal("invalid-command", "a model needs its provider and its id")
        elif provider != "scripted":
            wrong = Refusal("execution-failed", "there is no such model")
        result = {"provider": provider, "modelId": model}
        return self._once(request_id, "set_model", (provider, model), result, wrong)

    def set_thinking_level(self, request_id: str, level: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.set_thinking_level}."""
        wrong = None if level in LEVELS else Refusal("invalid-command", "there is no such level")
        return self._once(request_id, "set_thinking_level", (level,), {"level": level}, wrong)

    def new_session(self, request_id: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.new_session}."""
        return self._session(request_id, "new_session")

    def switch_session(self, request_id: str, path: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.switch_session}."""
        wrong = None
        if path not in self.sessions:
            wrong = Refusal("invalid-command", "that is no session file")
        result = {"sessionFile": path}
        return self._once(request_id, "switch_session", (path,), result, wrong)

    def fork(self, request_id: str, entry_id: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.fork}."""
        return self._session(request_id, "fork", entry_id)

    def clone(self, request_id: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.clone}."""
        return self._session(request_id, "clone")

    def answer(
        self, request_id: str, dialog_ref: str, answer: dict[str, Any]
    ) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.answer}."""
        wrong = None
        if len(set(answer) & {"value", "confirmed", "cancelled"}) != 1 or len(answer) != 1:
            wrong = Refusal("invalid-command", "an answer is one of value, confirmed and cancelled")
        elif dialog_ref not in self.dialogs:
            wrong = Refusal("execution-failed", "that question is not open any more")
        else:
            self.dialogs.pop(dialog_ref)
        return self._once(request_id, "answer", (dialog_ref, str(answer)), {}, wrong)

    def get_state(self) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.get_state}."""
        dialogs = [{"dialogRef": ref, "method": name} for ref, name in self.dialogs.items()]
        state = {"activity": "idle", "streaming": False, "sessionId": f"s{self._number}"}
        return succeed({**state, "dialogs": dialogs})

    def _message(self, request_id: str, kind: str, message: str) -> Deferred[dict[str, Any]]:
        wrong = None
        if not message.strip() or re.match(r"\s*/[A-Za-z]", message):
            wrong = Refusal("invalid-command", "that is no prompt")
        elif len(message) > MAX_MESSAGE:
            wrong = Refusal("command-too-large", "a message has at most 200000 characters")
        if wrong is not None:
            return fail(wrong)
        name = hashlib.sha256(request_id.encode()).hexdigest()
        return self._once(request_id, kind, (message,), {"deliveryId": name})

    def _session(self, request_id: str, kind: str, *arguments: Any) -> Deferred[dict[str, Any]]:
        if request_id not in self._known:
            self._number += 1
        return self._once(request_id, kind, arguments, {"sessionId": f"s{self._number}"})

    def _once(
        self,
        request_id: str,
        kind: str,
        arguments: tuple[Any, ...],
        result: dict[str, Any],
        wrong: Exception | None = None,
    ) -> Deferred[dict[str, Any]]:
        known = self._known.get(request_id)
        if known is not None and known[0] != (kind, arguments):
            return fail(Refusal("request-id-collision", "this request id was used before"))
        if known is None:
            wrong = self.fails.pop(kind, wrong)
            if wrong is None:
                self.done.append((kind, arguments))
            known = self._known[request_id] = (kind, arguments), wrong or result
        outcome = known[1]
        return fail(outcome) if isinstance(outcome, Exception) else succeed(dict(outcome))
