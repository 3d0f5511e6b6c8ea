"""Stand-ins around delivery: Thread losses, the outbox's front door, notices, expectations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.defer import Deferred, succeed
from zope.interface import implementer

from pitelegram.delivery.interfaces import IDelivery, IThreadLoss
from pitelegram.routing.interfaces import IExpectation, INotices


@implementer(IThreadLoss)
class FakeThreadLoss:
    """Answers C{alive} unless told otherwise.

    @ivar answer: the next answers.
    @ivar asked: the bindings that were examined, in order.
    @ivar on_lost: called with the binding before C{lost} is answered (it clears the target).
    """

    def __init__(self) -> None:
        self.answer = "alive"
        self.asked: list[str] = []
        self.on_lost: Callable[[str], None] = lambda binding_key: None

    def examine(self, binding_key: str) -> Deferred[str]:
        """Record the question and answer it."""
        self.asked.append(binding_key)
        if self.answer == "lost":
            self.on_lost(binding_key)
        return succeed(self.answer)


@implementer(IDelivery)
class FakeDelivery:
    """Takes everything.

    @ivar submitted: C{(binding_key, delivery_id, delivery, uploads)} in order.
    @ivar kicks: what L{kick} was called with.
    @ivar refuse: raised by the next submissions when set.
    """

    def __init__(self) -> None:
        self.submitted: list[tuple[str, str, dict[str, Any], Any]] = []
        self.kicks: list[str | None] = []
        self.retried: list[str] = []
        self.blocks: list[bool] = []
        self.refuse: Exception | None = None

    def submit(
        self, binding_key: str, delivery_id: str, delivery: dict[str, Any], uploads: Any | None
    ) -> Deferred[str]:
        """Record a delivery."""
        result: Deferred[str] = Deferred()
        if self.refuse is not None:
            result.errback(self.refuse)
        else:
            self.submitted.append((binding_key, delivery_id, delivery, uploads))
            result.callback("accepted")
        return result

    def kick(self, binding_key: str | None = None) -> None:
        """Record a kick."""
        self.kicks.append(binding_key)

    def reopened(self, binding_key: str) -> Deferred[None]:
        """Record a kick."""
        self.kicks.append(binding_key)
        return succeed(None)

    def again(self, key: str) -> Deferred[bool]:
        """Record a retry."""
        self.retried.append(key)
        return succeed(True)

    def blocked(self, blocked: bool) -> None:
        """Record a block."""
        self.blocks.append(blocked)


@implementer(INotices)
class FakeNotices:
    """Keeps notices; the same id is kept once.

    @ivar posted: C{(binding_key, text)} in order.
    @ivar buttons: labels and data of the buttons of each, in the same order.
    """

    def __init__(self) -> None:
        self.posted: list[tuple[str, str]] = []
        self.buttons: list[list[tuple[str, str]]] = []
        self._known: set[tuple[str, str]] = set()

    def post(
        self,
        binding_key: str,
        text: str,
        notice_id: str | None = None,
        buttons: Sequence[tuple[str, str]] = (),
    ) -> Deferred[None]:
        """Keep a notice."""
        if notice_id is None or (binding_key, notice_id) not in self._known:
            self.posted.append((binding_key, text))
            self.buttons.append(list(buttons))
        if notice_id is not None:
            self._known.add((binding_key, notice_id))
        return succeed(None)


@implementer(IExpectation)
class FakeExpectation:
    """Expects nobody.

    @ivar starting: bindings whose worker is starting.
    @ivar expected: bindings of which a process lives or is about to.
    """

    def __init__(self) -> None:
        self.starting: set[str] = set()
        self.expected: set[str] = set()

    def is_starting(self, binding_key: str) -> bool:
        """Whether it was put into L{starting}."""
        return binding_key in self.starting

    def is_expected(self, binding_key: str) -> bool:
        """Whether it was put into L{expected}."""
        return binding_key in self.expected
