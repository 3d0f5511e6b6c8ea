"""How important a worker's call is to a chat's budget, and which calls need not be made at all."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet.interfaces import IReactorTime

_WEIGHTS = {"draft": "draft", "delete": "edit", "action": "action"}

SHOWN = 2.0
"""Seconds in which an action need not be sent into All again: Telegram shows it for five."""


def weight_of(kind: str, params: dict[str, Any]) -> str | None:
    """Return the weight of a call for L{ISendGate}, None for one that goes into no chat.

    What has buttons waits for the operator, or he for it: it goes with the answers.  Other messages of
    workers are activity, which nobody waits for.

    @param kind: as C{bus.allowlist.check_call} names it.
    """
    asks = "reply_markup" in params
    if kind == "send":
        return "send" if asks else "minor"
    if kind == "edit":
        return "edit" if asks else "minor-edit"
    return _WEIGHTS.get(kind)


@attrs.define(eq=False)
class SharedActions:
    """Chat actions in All, which all workers of a chat show there: one for all of them is enough."""

    _clock: IReactorTime
    _sent: dict[tuple[int, Any], float] = attrs.field(factory=dict, init=False)

    def shown(self, params: dict[str, Any]) -> bool:
        """Whether All shows this action already; if not, it is taken to be sent now."""
        if params.get("message_thread_id") is not None:
            return False
        now = self._clock.seconds()
        what = params["chat_id"], str(params.get("action"))
        if 0 <= now - self._sent.get(what, -SHOWN) < SHOWN:
            return True
        self._sent = {each: at for each, at in self._sent.items() if 0 <= now - at < SHOWN}
        self._sent[what] = now
        return False

    def failed(self, params: dict[str, Any]) -> None:
        """It was not sent."""
        self._sent.pop((params["chat_id"], str(params.get("action"))), None)
