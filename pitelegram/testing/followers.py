"""Followers and neighbours of the router that tests steer by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
from twisted.internet.defer import Deferred, fail, succeed
from zope.interface import implementer

from pitelegram.bus.handshake import CAPABILITIES
from pitelegram.bus.interfaces import IFollowerLink, Peer
from pitelegram.errors import LinkLost
from pitelegram.kernel import jsonio
from pitelegram.routing.interfaces import (
    IBindingPolicy,
    IDaemonTarget,
    IExpectation,
    IInboxProbe,
)
from pitelegram.store.interfaces import IBindings
from pitelegram.targets import TelegramTarget
from pitelegram.threads.interfaces import IThreads


@attrs.define(eq=False)
class Forward:
    """One forward that waits for its answer."""

    delivery_id: str
    update_id: int
    kind: str
    update: dict[str, Any]
    answered: Deferred[dict[str, Any]]

    def settle(self, settlement: str = "accepted", reason: str = "", **receipt: Any) -> None:
        """Answer; C{receipt} changes members of the right receipt."""
        right = {"deliveryId": self.delivery_id, "updateId": self.update_id}
        answer = {"settlement": settlement, "receipt": {**right, **receipt}, "reason": reason}
        self.answered.callback(answer)

    def lose(self) -> None:
        """The answer does not come in time."""
        self.answered.errback(LinkLost("no answer"))


@implementer(IFollowerLink)
@attrs.define(eq=False)
class FakeLink:
    """A connection whose follower answers when the test says so, or at once.

    @ivar automatic: answer every forward C{accepted} at once.
    @ivar leader: told of the end of the connection, as the bus does.
    """

    peer: Peer
    leader: Any = None
    automatic: bool = False
    registration: dict[str, Any] | None = None
    capabilities: frozenset[str] = frozenset(CAPABILITIES)
    connected: bool = True
    forwards: list[Forward] = attrs.field(factory=list)
    admitted: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    confirmed: list[list[str]] = attrs.field(factory=list)
    targets: list[tuple[Any, Any, str]] = attrs.field(factory=list)

    @property
    def waiting(self) -> list[Forward]:
        """Forwards without an answer."""
        return [forward for forward in self.forwards if not forward.answered.called]

    def forward(
        self, delivery_id: str, update_id: int, kind: str, update: dict[str, Any] | bytes
    ) -> Deferred[dict[str, Any]]:
        """See L{IFollowerLink.forward}."""
        if not self.connected or self.registration is None:
            return fail(LinkLost("closed"))
        parsed = jsonio.loads(update) if isinstance(update, bytes) else update
        forward = Forward(delivery_id, update_id, kind, parsed, Deferred())
        self.forwards.append(forward)
        if self.automatic:
            self.admitted[delivery_id] = parsed
            forward.settle()
        return forward.answered

    def confirm_settled(self, delivery_ids: Sequence[str]) -> Deferred[None]:
        """See L{IFollowerLink.confirm_settled}."""
        self.confirmed.append(list(delivery_ids))
        return succeed(None)

    def control(self, request_id: str, command: dict[str, Any]) -> Deferred[Any]:
        """See L{IFollowerLink.control}."""
        return succeed({})

    def shutdown(self, mode: str, deadline_ms: int) -> Deferred[None]:
        """See L{IFollowerLink.shutdown}."""
        return succeed(None)

    def replace_target(
        self,
        target: dict[str, int] | None,
        old_target: dict[str, int] | None,
        reason: str,
    ) -> Deferred[dict[str, Any]]:
        """See L{IFollowerLink.replace_target}."""
        self.targets.append((target, old_target, reason))
        return succeed({})

    def abort(self) -> None:
        """See L{IFollowerLink.abort}."""
        self.cut()

    def cut(self) -> None:
        """The connection ends: waiting forwards fail first, then the leader hears of it."""
        if not self.connected:
            return
        self.connected = False
        for forward in self.waiting:
            forward.lose()
        if self.leader is not None and self.registration is not None:
            self.leader.lost(self)


@implementer(IDaemonTarget)
@attrs.define(eq=False)
class FakeDaemon:
    """Wants texts that begin with C{/daemon} and callbacks whose data begins with C{d:}.

    @ivar greets: wants texts that begin with C{/start}, too.
    """

    handled: list[tuple[str, dict[str, Any]]] = attrs.field(factory=list)
    answer: Deferred[None] | None = None
    greets: bool = False

    def wants(self, kind: str, update: dict[str, Any], binding: Any | None) -> bool:
        """See L{IDaemonTarget.wants}."""
        content = update[kind]
        if kind == "callback_query":
            return str(content.get("data", "")).startswith("d:")
        begins = ("/daemon", "/start") if self.greets else "/daemon"
        return kind == "message" and str(content.get("text", "")).startswith(begins)

    def handle(self, kind: str, update: dict[str, Any]) -> Deferred[None]:
        """See L{IDaemonTarget.handle}."""
        self.handled.append((kind, update))
        return self.answer if self.answer is not None else succeed(None)


@implementer(IExpectation)
@attrs.define(eq=False)
class FakeExpectation:
    """Sets of binding keys."""

    starting: set[str] = attrs.field(factory=set)
    expected: set[str] = attrs.field(factory=set)

    def is_starting(self, binding_key: str) -> bool:
        """See L{IExpectation.is_starting}."""
        return binding_key in self.starting

    def is_expected(self, binding_key: str) -> bool:
        """See L{IExpectation.is_expected}."""
        return binding_key in self.expected


@implementer(IInboxProbe)
@attrs.define(eq=False)
class FakeProbe:
    """C{answers}: (binding key, delivery id) or binding key to what is found; None otherwise."""

    answers: dict[Any, bool | Deferred[bool | None] | None] = attrs.field(factory=dict)
    asked: list[tuple[str, str]] = attrs.field(factory=list)

    def admitted(self, binding_key: str, delivery_id: str) -> Deferred[bool | None]:
        """See L{IInboxProbe.admitted}."""
        self.asked.append((binding_key, delivery_id))
        by_key = self.answers.get(binding_key)
        answer = self.answers.get((binding_key, delivery_id), by_key)
        return answer if isinstance(answer, Deferred) else succeed(answer)


@implementer(IBindingPolicy)
@attrs.define(eq=False)
class FakePolicy:
    """C{specs}: spec id to (name, directory, spawn id)."""

    specs: dict[str, tuple[str, str, str]] = attrs.field(factory=dict)

    def managed(self, spec_id: str, spawn_id: str) -> str | None:
        """See L{IBindingPolicy.managed}."""
        known = self.specs.get(spec_id)
        return known[1] if known is not None and known[2] == spawn_id else None

    def name(self, spec_id: str) -> str:
        """See L{IBindingPolicy.name}."""
        return self.specs[spec_id][0]


@implementer(IThreads)
@attrs.define(eq=False)
class FakeThreads:
    """Keeps rows of bindings; makes no Threads.  C{refusal} is raised by L{ensure} if set.

    @ivar now: the mode; while it is C{disabled}, L{serve} gives the chat C{chat_id} to a binding.
    """

    bindings: IBindings
    refusal: Exception | None = None
    now: str = "enabled"
    chat_id: int = 1000
    observers: list[Any] = attrs.field(factory=list)

    def ensure(self, binding_key: str, kind: str, directory: str | None) -> Deferred[Any]:
        """See L{IThreads.ensure}."""
        if self.refusal is not None:
            return fail(self.refusal)
        return self.bindings.ensure(binding_key, kind, directory)

    def mode(self) -> str:
        """See L{IThreads.mode}."""
        return self.now

    def learn(self, me: dict[str, Any]) -> None:
        """See L{IThreads.learn}."""

    def created(self, message: dict[str, Any]) -> Deferred[None]:
        """See L{IThreads.created}."""
        return succeed(None)

    def subscribe(self, observer: Any) -> None:
        """See L{IThreads.subscribe}."""
        self.observers.append(observer)

    def destination(self, binding_key: str) -> TelegramTarget | None:
        """See L{IThreads.destination}."""
        binding = self.bindings.get(binding_key)
        return None if binding is None else binding.target

    def forget(self, binding_key: str) -> Deferred[None]:
        """See L{IThreads.forget}."""
        return self.bindings.forget(binding_key)

    def kick(self) -> None:
        """See L{IThreads.kick}."""

    def serve(self, binding_key: str) -> Deferred[None]:
        """See L{IThreads.serve}."""
        if self.now != "disabled":
            return succeed(None)
        self.unserve()
        return self.bindings.set_target(binding_key, self.chat_id, None, None).addCallback(
            lambda _: None
        )

    def unserve(self) -> Deferred[None]:
        """See L{IThreads.unserve}."""
        served = self.bindings.by_target(self.chat_id, None)
        if served is not None:
            self.bindings.clear_target(served.binding_key, (self.chat_id, None))
        return succeed(None)

    def renamed(self, message: dict[str, Any]) -> Deferred[None]:
        """See L{IThreads.renamed}."""
        return succeed(None)

    def closed(self, message: dict[str, Any]) -> Deferred[str | None]:
        """See L{IThreads.closed}."""
        return succeed(None)

    def reopened(self, message: dict[str, Any]) -> Deferred[str | None]:
        """See L{IThreads.reopened}."""
        return succeed(None)

    def found_closed(self, binding_key: str, target: TelegramTarget) -> Deferred[None]:
        """See L{IThreads.found_closed}."""
        return succeed(None)

    def title(self, binding_key: str, busy: bool | None = None) -> str:
        """See L{IThreads.title}."""
        return binding_key

    def exists(self, binding_key: str, target: TelegramTarget) -> Deferred[bool | None]:
        """See L{IThreads.exists}."""
        return succeed(True)

    def retitle(self, binding_key: str, busy: bool | None = None) -> Deferred[bool]:
        """See L{IThreads.retitle}."""
        return succeed(False)

    def rename(
        self, binding_key: str, target: TelegramTarget | None, name: str, busy: bool | None = None
    ) -> Deferred[tuple[str, str | None]]:
        """See L{IThreads.rename}."""
        title = name or binding_key
        assert target is not None
        kept = self.bindings.set_manual_name(
            binding_key, (target.chat_id, target.thread_id), name or None, title
        )
        return kept.addCallback(lambda _: (title, name or None))

    def moved(self, binding_key: str, directory: str, busy: bool | None = None) -> Deferred[None]:
        """See L{IThreads.moved}."""
        binding = self.bindings.get(binding_key)
        assert binding is not None
        moving = self.bindings.set_directory(binding_key, binding.directory, directory)
        return moving.addCallback(lambda _: None)

    def living(self, binding_key: str) -> Deferred[None]:
        """See L{IThreads.living}."""
        return succeed(None)

    def lost(self, binding_key: str, target: TelegramTarget) -> Deferred[bool]:
        """See L{IThreads.lost}."""
        return succeed(False)

    def reassign(self, binding_key: str, chat_id: int, thread_id: int | None) -> Deferred[bool]:
        """See L{IThreads.reassign}."""
        binding = self.bindings.get(binding_key)
        if binding is None:
            return succeed(False)
        before = None if binding.chat_id is None else (binding.chat_id, binding.thread_id)
        return self.bindings.set_target(binding_key, chat_id, thread_id, before)
