"""What routing promises to its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred
from zope.interface import Attribute, Interface

from pitelegram.targets import TelegramTarget


class IFollower(Interface):
    """One live registration (C{routing.registry.Follower})."""

    binding_key = Attribute("str")
    kind = Attribute("C{managed} or C{attached}")
    spec_id = Attribute("str for a managed one, else None")
    spawn_id = Attribute("the spawn whose credential was proven, else None")
    worker_id = Attribute("str")
    generation = Attribute("str")
    instance_id = Attribute("str")
    birth = Attribute("L{pitelegram.ids.ProcessBirth}")
    link = Attribute("L{pitelegram.bus.interfaces.IFollowerLink}")
    state = Attribute("the last heartbeat's C{state} dict, empty before the first")
    last_heard = Attribute("monotonic seconds of the last heartbeat")
    ready = Attribute("whether the first heartbeat came: forwards may go")


class IRegistry(Interface):
    """The live followers (C{routing.registry.Registry})."""

    def live(binding_key: str) -> Any | None:
        """The current L{IFollower} whose connection is up, else None."""

    def followers() -> list[Any]: ...

    def is_stale(binding_key: str) -> bool:
        """No heartbeat for 15 s (silence alone destroys nothing)."""

    def subscribe(observer: Any) -> None:
        """Add an L{IRegistryObserver}."""

    def target_changed(
        binding_key: str, target: TelegramTarget | None, old: TelegramTarget | None, reason: str
    ) -> None:
        """Tell the live follower of a binding that its Thread is another one now."""


class IRegistryObserver(Interface):
    """Who watches registrations."""

    def registered(follower: Any) -> None:
        """After its first heartbeat: the worker has opened its inbox."""

    def state_changed(follower: Any) -> None: ...

    def lost(follower: Any) -> None:
        """Its connection ended; it may come back."""


class IBindingPolicy(Interface):
    """Who may register as what; asked by the registry (the supervisor provides it)."""

    def managed(spec_id: str, spawn_id: str) -> str | None:
        """The directory of a managed spec whose spawn this is; None refuses it."""

    def name(spec_id: str) -> str: ...


class IDaemonTarget(Interface):
    """Updates that the daemon handles itself (the panel provides it)."""

    def wants(kind: str, update: dict[str, Any], binding: Any | None) -> bool:
        """Whether this update is the daemon's own.

        C{binding} is the L{pitelegram.store.rows.Binding} that owns its target, or None.
        """

    def handle(kind: str, update: dict[str, Any]) -> Deferred[None]:
        """Do it.  A failure is logged; the row is settled all the same.

        The router has claimed the callback id already: this runs at most once per callback.
        """


class IExpectation(Interface):
    """What is known about a binding without a live worker (the supervisor provides it)."""

    def is_starting(binding_key: str) -> bool:
        """A desired worker is on its way: nobody needs to be told that its messages wait."""

    def is_expected(binding_key: str) -> bool:
        """A process of this binding lives, or is about to: its inbox file is not ours to open."""


class IInboxProbe(Interface):
    """Looks into the inbox file of a binding whose lock is free (C{delivery.orphans})."""

    def admitted(binding_key: str, delivery_id: str) -> Deferred[bool | None]:
        """Whether that worker had admitted the id; None while its lock is held."""


class IRouter(Interface):
    """The router (C{routing.router.Router}), a Service and a registry observer."""

    def plan(row: Any, update: dict[str, Any]) -> str | None:
        """The live binding that a L{pitelegram.store.rows.Incoming} would be forwarded to at once.

        It is stored pinned to that, which saves the commit of the pin.  None: decide in L{take}.
        """

    def take(rows: list[Any]) -> None:
        """New journal rows, in order."""

    def kick(binding_key: str | None = None) -> None:
        """Something changed for this binding (or for all): look again."""


class INotices(Interface):
    """Short durable messages of the daemon (C{delivery.notices.Notices})."""

    def post(
        binding_key: str,
        text: str,
        notice_id: str | None = None,
        buttons: Sequence[tuple[str, str]] = (),
    ) -> Deferred[None]:
        """Into the Thread of a binding; C{daemon} is the Control Thread.

        The same C{notice_id} is posted once.  Plain text; cut to Telegram's limit.  C{buttons} are
        labels and callback data, in one row below it.
        """
