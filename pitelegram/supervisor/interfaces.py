"""What supervision promises to its neighbours."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet.defer import Deferred
from zope.interface import Attribute, Interface


@attrs.frozen(kw_only=True)
class WorkerView:
    """One managed worker, as listings show it.

    @ivar state: a state of C{docs/machines/worker-life.md} (C{stopped}, C{spawning}, C{running} …).
    @ivar activity: C{idle}, C{active}, C{queued} or C{compacting}.
    @ivar last_error: redacted, for the local operator and the owner only.
    @ivar model: Pi's model, as the worker reports it.
    """

    spec_id: str
    binding_key: str
    name: str
    directory: str
    state: str
    activity: str
    queued: int
    restarts: int
    worker_id: str | None
    pid: int | None
    pi_pid: int | None
    session_file: str | None
    last_error: str | None
    until_ms: int | None = None
    model: str | None = None


class ISupervisor(Interface):
    """Starts, watches and stops managed workers (C{supervisor.supervisor.Supervisor}, a Service)."""

    directories = Attribute(
        "L{pitelegram.panel.interfaces.IDirectories} in which it may start one."
    )

    def start(
        directory: str, actor: str, spec_id: str | None = None, request_id: str | None = None
    ) -> Deferred[WorkerView]:
        """An operator's start.  Fires when the process exists.

        C{spec_id} is used if the directory has no spec yet; C{request_id} is written down in the
        transaction that makes the worker wanted.

        @raise pitelegram.errors.Refusal: C{not-a-directory}, C{outside-roots}, C{already-running},
            C{no-slot}.
        @raise pitelegram.errors.LaunchFailed: it could not be started.
        """

    def stop(spec_id: str, actor: str, request_id: str | None = None) -> Deferred[WorkerView]:
        """The stop ladder; fires when the process is proven gone."""

    def restart(spec_id: str, actor: str, fresh: bool = False) -> Deferred[WorkerView]:
        """Stop, then spawn; fires when the new process exists.

        C{fresh}: begin a new session, whatever is remembered.
        """

    def forget(spec_id: str, actor: str) -> Deferred[None]:
        """Give up a stopped spec, with its binding, its slot and its files.

        Answers that were not submitted are taken over first.

        @raise pitelegram.errors.Refusal: C{still-running}, or C{still-settling} while it is being
            found out whether the worker had taken a message.
        """

    def memory_warning(but: str = "") -> str | None:
        """A sentence when one more worker beside those that run (C{but} one) may be too much."""

    def keep_waiting(spec_id: str) -> None:
        """Adoption took too long and the operator wants to wait on."""

    def session_file(ref: str) -> str:
        """The absolute file of a session named below Pi's sessions directory, checked as rule D7.

        @raise pitelegram.errors.Refusal: C{invalid_selection}.
        """

    def views() -> list[WorkerView]:
        """Every spec, by name."""

    def find(name: str | None = None, worker_id: str | None = None) -> WorkerView | None: ...

    def when_settled(spec_id: str) -> Deferred[WorkerView]:
        """Fire once the worker is C{running}, C{failed}, C{stopped} or in C{backoff}."""

    def subscribe(observer: Any) -> None:
        """C{observer(view)} after each transition."""
