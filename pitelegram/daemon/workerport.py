"""The daemon's control port of a worker: the bus carries each operation to the worker's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, fail
from zope.interface import implementer

from pitelegram.bus.interfaces import IFollowerLink
from pitelegram.errors import NobodyKnows, Refusal, StaleGeneration
from pitelegram.kernel.deferring import deferred
from pitelegram.pi.port import IWorkerControlPort

STATE_REQUEST = "state"
"""Request id of a C{get_state}, which is not remembered."""


@implementer(IWorkerControlPort)
class BusPort:
    """See L{IWorkerControlPort}.

    @param link: returns the worker's connection; refuses when there is none.
    """

    def __init__(self, link: Callable[[], IFollowerLink]) -> None:
        self._link = link

    def prompt(self, request_id: str, message: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.prompt}."""
        return self._ask(request_id, type="prompt", message=message)

    def steer(self, request_id: str, message: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.steer}."""
        return self._ask(request_id, type="steer", message=message)

    def follow_up(self, request_id: str, message: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.follow_up}."""
        return self._ask(request_id, type="prompt", message=message, deliverAs="followUp")

    def abort(self, request_id: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.abort}."""
        return self._ask(request_id, type="abort")

    def clear_queue(self, request_id: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.clear_queue}."""
        return self._ask(request_id, type="clear_queue")

    def compact(self, request_id: str, instructions: str | None = None) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.compact}."""
        if instructions is None:
            return self._ask(request_id, type="compact")
        return self._ask(request_id, type="compact", customInstructions=instructions)

    def set_model(self, request_id: str, provider: str, model: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.set_model}."""
        return self._ask(request_id, type="set_model", provider=provider, modelId=model)

    def set_thinking_level(self, request_id: str, level: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.set_thinking_level}."""
        return self._ask(request_id, type="set_thinking_level", level=level)

    def new_session(self, request_id: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.new_session}."""
        return self._ask(request_id, type="new_session")

    def switch_session(self, request_id: str, path: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.switch_session}."""
        return self._ask(request_id, type="switch_session", sessionPath=path)

    def fork(self, request_id: str, entry_id: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.fork}; the wire does not offer it."""
        return _unsupported("fork")

    def clone(self, request_id: str) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.clone}; the wire does not offer it."""
        return _unsupported("clone")

    def answer(
        self, request_id: str, dialog_ref: str, answer: dict[str, Any]
    ) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.answer}."""
        return self._ask(request_id, type="answer", dialogRef=dialog_ref, **answer)

    def get_state(self) -> Deferred[dict[str, Any]]:
        """See L{IWorkerControlPort.get_state}."""
        return self._ask(STATE_REQUEST, type="get_state")

    @deferred
    async def _ask(self, request_id: str, **command: Any) -> dict[str, Any]:
        try:
            result = await self._link().control(request_id, command)
        except Refusal as refusal:
            if refusal.fields.get("uncertain") is True:
                raise NobodyKnows() from None
            raise
        except StaleGeneration:
            # The worker looks at the generation before anything else.
            raise Refusal(
                "stale_target", "the worker registered anew just now; ask again"
            ) from None
        return result if isinstance(result, dict) else {"result": result}


def _unsupported(name: str) -> Deferred[Any]:
    return fail(Refusal("unsupported", f"{name} is not available over the bus"))
