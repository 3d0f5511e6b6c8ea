"""Questions of Pi's extensions, kept until they are answered or their time is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from pitelegram.errors import Refusal
from pitelegram.pi.interfaces import IPiHost

MAX_OPEN = 8
ANNOUNCED = 120.0
"""Seconds that a dialog without a time-out of its own stays open."""

METHODS = ("select", "confirm", "input", "editor")


@attrs.define
class _Open:
    request: dict[str, Any]
    timer: IDelayedCall
    answers_itself: bool


class Dialogs:
    """Answers every dialog exactly once: by the control socket, or as cancelled.

    A cancelled question goes on in Pi; an unanswered one would block it, and its abort, for ever.

    @param say: posts a notice C{(id, text)} in the Thread.
    @param changed: called when the number of open dialogs changed.
    """

    def __init__(
        self,
        clock: IReactorTime,
        host: IPiHost,
        say: Callable[[str, str], object],
        changed: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._host = host
        self._say = say
        self._changed = changed
        self._open: dict[str, _Open] = {}

    def requested(self, request: dict[str, Any]) -> None:
        """Pi asks something; C{notify} and the like need no answer and are dropped here."""
        ref = request.get("id")
        if request.get("method") not in METHODS or not isinstance(ref, str) or ref in self._open:
            return
        if len(self._open) >= MAX_OPEN:
            self._host.answer_dialog(ref, {"cancelled": True})
            self._say(
                f"dialog-{ref}", "⚠️ Pi asked more than 8 questions at once; one was cancelled."
            )
            return
        timeout: Any = request.get("timeout")
        own = isinstance(timeout, (int, float)) and not isinstance(timeout, bool) and timeout > 0
        seconds = float(timeout) / 1000 if own else ANNOUNCED
        timer = self._clock.callLater(seconds, self._expired, ref)
        self._open[ref] = _Open(request, timer, own)
        title = str(request.get("title") or "")[:500]
        self._say(
            f"dialog-{ref}",
            f"❔ Pi asks: {title}\nAnswer with pi-telegram workers answer within {seconds:.0f} s; "
            "after that it is cancelled.",
        )
        self._changed()

    def answer(self, ref: str, answer: dict[str, Any]) -> None:
        """Answer an open dialog.

        @raise Refusal: C{execution-failed} when it is not open (any more), C{invalid-command} when
            the answer has the wrong form.
        """
        found = self._open.get(ref)
        if found is None:
            raise Refusal("execution-failed", "that question is not open any more")
        (name, value) = next(iter(answer.items()))
        expected = "confirmed" if found.request["method"] == "confirm" else "value"
        right = (
            value is True
            if name == "cancelled"
            else name == expected and isinstance(value, bool if name == "confirmed" else str)
        )
        if not right:
            raise Refusal("invalid-command", f"this question takes {expected} or cancelled: true")
        self._close(ref)
        self._host.answer_dialog(ref, answer)
        self._changed()

    def forget(self) -> None:
        """Pi's dialogs are gone (an abort cancelled them, or Pi ended)."""
        for ref in list(self._open):
            self._close(ref)

    def listed(self) -> list[dict[str, Any]]:
        """The open ones, for C{get_state}."""
        return [
            {
                "dialogRef": ref,
                **{
                    name: item.request[name]
                    for name in ("method", "title", "options")
                    if name in item.request
                },
            }
            for ref, item in self._open.items()
        ]

    def _close(self, ref: str) -> None:
        timer = self._open.pop(ref).timer
        if timer.active():
            timer.cancel()

    def _expired(self, ref: str) -> None:
        answered = self._open[ref].answers_itself  # Pi has its own time-out then
        self._close(ref)
        if not answered:
            self._host.answer_dialog(ref, {"cancelled": True})
        self._changed()
