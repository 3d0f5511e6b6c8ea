"""Faults on order: what goes wrong with the next calls of a method."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
from twisted.internet.defer import Deferred

from pitelegram.kernel.observers import OneShot
from pitelegram.sandbox.errors import (
    OTHER_POLLER,
    UNAUTHORIZED,
    WEBHOOK_ACTIVE,
    ApiError,
    conflict,
    flood,
)

KINDS = (
    "html502",
    "html504",
    "hang",
    "cut",
    "empty",
    "no-result",
    "reset",
    "drop",
    "delay",
    "429",
    "409",
    "409-webhook",
    "401",
    "error",
)
"""What an answer can become.

C{cut} sends half of it, C{reset} and C{drop} close without one, C{no-result} is C{{"ok":true}},
C{delay} sends the right one after C{seconds}, C{error} refuses with C{code} and C{description}.
"""


@attrs.define(eq=False, kw_only=True)
class Fault:
    """One order.

    @ivar method: a method's own spelling, C{file} for downloads, C{*} for every method.
    @ivar times: how many calls are still to be hit; None for all until L{remove}d.
    @ivar applied: whether the method takes effect all the same.
    @ivar containing: only calls with this text in one of their parameters.
    @ivar hits: how many calls were hit.
    """

    method: str
    kind: str
    times: int | None = 1
    applied: bool = False
    containing: str = ""
    seconds: float = 1.0
    retry_after: int = 1
    code: int = 400
    description: str = "Bad Request: sandbox"
    hits: int = 0
    _first: OneShot[None] = attrs.Factory(OneShot)
    _done: OneShot[None] = attrs.Factory(OneShot)

    def when_hit(self) -> Deferred[None]:
        """Fire when the first call was hit."""
        return self._first.when()

    def when_done(self) -> Deferred[None]:
        """Fire when the last of C{times} calls was hit."""
        return self._done.when()

    def remove(self) -> None:
        """Hit nothing more."""
        self.times = 0

    def matches(self, method: str, values: Iterable[str]) -> bool:
        """Whether a call is meant."""
        if self.times == 0 or self.method not in ("*", method):
            return False
        return not self.containing or any(self.containing in value for value in values)

    def hit(self) -> None:
        """Count a call."""
        self.hits += 1
        if self.times is not None:
            self.times -= 1
        self._first.fire(None)
        if self.times == 0:
            self._done.fire(None)

    def refusal(self) -> ApiError | None:
        """Return the error that the kind means, None for kinds below JSON."""
        return {
            "429": flood(self.retry_after),
            "409": conflict(OTHER_POLLER),
            "409-webhook": conflict(WEBHOOK_ACTIVE),
            "401": ApiError(*UNAUTHORIZED),
            "error": ApiError(self.code, self.description),
        }.get(self.kind)


class Faults:
    """The orders of one sandbox; the oldest that matches a call is taken."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, method: str, kind: str, **options: Any) -> Fault:
        """Order a fault; see L{Fault} for the options.

        @raise ValueError: unknown kind.
        """
        if kind not in KINDS:
            raise ValueError(f"no such fault: {kind!r}; known are {', '.join(KINDS)}")
        fault = Fault(method=method, kind=kind, **options)
        self._faults.append(fault)
        return fault

    def clear(self) -> None:
        """Take every order back."""
        for fault in self._faults:
            fault.remove()
        self._faults = []

    def take(self, method: str, values: Iterable[str] = ()) -> Fault | None:
        """Return what goes wrong with this call, counted, or None."""
        given = list(values)
        fault = next((f for f in self._faults if f.matches(method, given)), None)
        if fault is not None:
            fault.hit()
        self._faults = [f for f in self._faults if f.times != 0]
        return fault
