"""Questions that Pi's extensions ask and that wait for an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twisted.internet.interfaces import IReactorTime

METHODS = ("select", "confirm", "input", "editor")
"""The C{extension_ui_request} methods that wait for an answer."""


class OpenDialogs:
    """The open ones, each answered once.

    A dialog with a time-out of its own is forgotten when that has passed: Pi has answered it itself
    then, without a word.
    """

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._open: dict[str, tuple[str, float | None]] = {}

    def opened(self, request: Mapping[str, Any]) -> bool:
        """Remember a request; False when it is not a dialog that can be shown."""
        self._forget_expired()
        if not well_formed(request):
            return False
        dialog, method = request["id"], request["method"]
        timeout = request.get("timeout")
        limited = isinstance(timeout, int | float) and not isinstance(timeout, bool)
        expires = self._clock.seconds() + timeout / 1000 if limited and timeout else None
        self._open[dialog] = (method, expires)
        return True

    def answer(self, dialog: str, answer: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the record to send, None when that dialog is not open (any more).

        @raise ValueError: the answer does not fit the dialog; it stays open.
        """
        self._forget_expired()
        if dialog not in self._open:
            return None
        method = self._open[dialog][0]
        field, kind = ("confirmed", bool) if method == "confirm" else ("value", str)
        if dict(answer) != {"cancelled": True} and not (
            set(answer) == {field} and isinstance(answer[field], kind)
        ):
            raise ValueError(f"a {method} dialog takes {field} or cancelled")
        del self._open[dialog]
        return _response(dialog, answer)

    def cancel_all(self) -> list[dict[str, Any]]:
        """Return the records that cancel every open dialog; none is open after that."""
        open_now, self._open = self._open, {}
        return [_response(dialog, {"cancelled": True}) for dialog in open_now]

    def _forget_expired(self) -> None:
        now = self._clock.seconds()
        self._open = {
            dialog: entry
            for dialog, entry in self._open.items()
            if entry[1] is None or entry[1] > now
        }


def well_formed(request: Mapping[str, Any]) -> bool:
    """Whether a request is a dialog that can be shown: a C{select} needs options to choose from."""
    if not isinstance(request.get("id"), str) or request.get("method") not in METHODS:
        return False
    if request["method"] != "select":
        return True
    options = request.get("options")
    return (
        isinstance(options, list)
        and bool(options)
        and all(isinstance(option, str) for option in options)
    )


def cancelled(request: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the record that cancels a request which cannot be shown; None when none is waited for."""
    dialog = request.get("id")
    if not isinstance(dialog, str) or request.get("method") not in METHODS:
        return None
    return _response(dialog, {"cancelled": True})


def _response(dialog: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "extension_ui_response", "id": dialog, **answer}
