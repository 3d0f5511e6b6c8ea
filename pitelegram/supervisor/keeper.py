"""One worker: starts it, watches it, ends it, and says what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.logger import Logger
from zope.interface import implementer

from pitelegram.errors import LaunchFailed, PiTelegramError, StoreFull
from pitelegram.ids import ProcessBirth, managed_binding
from pitelegram.kernel.deferring import spawn
from pitelegram.kernel.redact import redact_public
from pitelegram.store.rows import Spawn, Spec
from pitelegram.supervisor.adoption import Adoption
from pitelegram.supervisor.attempt import Attempt, reach_of
from pitelegram.supervisor.descent import Descent, Purpose
from pitelegram.supervisor.interfaces import WorkerView
from pitelegram.supervisor.launch import Exit
from pitelegram.supervisor.life import (
    LADDER,
    READY_SECONDS,
    RESTING,
    SETTLED,
    Event,
    ILifePort,
    Life,
    State,
)
from pitelegram.supervisor.listing import worker_view
from pitelegram.supervisor.memory import Memory
from pitelegram.supervisor.parts import Parts
from pitelegram.supervisor.presence import Presence
from pitelegram.supervisor.promise import Promise
from pitelegram.supervisor.record import Record
from pitelegram.supervisor.voice import Voice


@implementer(ILifePort)
class Keeper:
    """Keeps one spec's worker.

    @param others: returns processes that no signal of ours may reach.
    @param changed: called with the view after each transition.
    @ivar fresh: the next start begins a new session.
    @ivar spawn_id: the spawn that may register, None while there is none.
    """

    _log = Logger()

    def __init__(
        self,
        spec: Spec,
        parts: Parts,
        others: Callable[[], Iterable[ProcessBirth]],
        changed: Callable[[WorkerView], None],
    ) -> None:
        self.spec = spec
        self.binding_key = managed_binding(spec.spec_id)
        self.life = Life(parts.reactor, self)
        self.spawn_id: str | None = None
        self._parts = parts
        self._others = others
        self._changed = changed
        self._policy = Record(parts.specs, spec, parts.random, parts.monotonic, parts.now)
        self._memory = Memory(parts.specs, spec.spec_id)
        self._voice = Voice(
            *(parts.leadership, parts.notices, spec.spec_id, self.binding_key, spec.name),
            parts.monotonic,
        )
        self._adoption = Adoption(self.life, self._voice)
        self._presence = Presence(parts, self.binding_key, self._ended)
        self._attempt: Attempt | None = None
        self._attempting: Deferred[Any] | None = None
        self._descent: Descent | None = None
        self._purpose = Purpose.LATE
        self._closed = self.fresh = False
        self._pause = 0.0
        self._until_ms: int | None = None
        self._last_error: str | None = None
        self._made = Promise()
        self._gone = Promise()
        self._settled = Promise()

    # --- what the supervisor asks ----------------------------------------------------------------

    def start(self, actor: str, reason: str) -> Deferred[None]:
        """Start, or start now what waits; fires when the process exists.

        @raise LaunchFailed: it could not be started.
        """
        if actor == "operator":
            self._policy.reset()
        made = self._made.when()
        self.life.receive(Event.START, actor, reason)
        return made

    def stop(self, actor: str, reason: str) -> Deferred[None]:
        """Go down the ladder; fires when everything is proven gone."""
        if actor == "operator":
            self._policy.reset()
        if self.life.state is State.STOPPED:
            return succeed(None)
        self._purpose = Purpose.STOP
        return self._end(actor, reason)

    def restart(self, actor: str, reason: str) -> Deferred[None]:
        """Go down the ladder and start anew; fires when the new process exists.

        @raise LaunchFailed: it could not be started.
        """
        if self.life.state in RESTING:
            return self.start(actor, reason)
        self._policy.reset()
        if self.life.state is State.SPAWNING and self._presence.process is None:
            return self._made.when()
        self._purpose = Purpose.RESTART
        made = self._made.when()
        self._end(actor, reason)
        return made

    def adopt(self, record: Spawn) -> None:
        """Wait for a worker that an earlier daemon started to register again."""
        self.spawn_id = record.spawn_id
        if record.pi_pid is not None and record.pi_birth is not None:
            self._memory.pi = ProcessBirth(record.pi_pid, record.pi_birth)
        self.life.receive(Event.ADOPT, "daemon", "its process lives, or may live")
        if record.pid is not None and record.birth is not None:
            self._presence.follow(ProcessBirth(record.pid, record.birth))
        else:
            self._look()

    def recall(self) -> bool:
        """It had failed for good before this daemon began: it stays so; False when it had not."""
        self._last_error = self._policy.failure
        if self._policy.failure is not None:
            self.life.receive(Event.BROKEN, "daemon", "it had failed before the daemon started")
        return self._policy.failure is not None

    def keep_waiting(self) -> None:
        """Wait once more for an adopted worker."""
        if self.life.state is State.ADOPTING:
            self._last_error = None
            self._adoption.wait()
            self._changed(self.view())

    def registered(self, follower: Any) -> None:
        """A follower that proved this spawn's credential sent its first heartbeat."""
        if self._closed or follower.spawn_id != self.spawn_id:
            return
        birth = follower.birth
        if self._presence.process != birth:
            self._presence.follow(birth)
        recording = self._parts.specs.registered(follower.spawn_id, birth.pid, birth.birth)
        spawn(self._log, "recording a registration", recording)
        self.heard(follower)

    def heard(self, follower: Any) -> None:
        """A heartbeat came."""
        if self._closed or follower.spawn_id != self.spawn_id:
            return
        state = follower.state
        self._memory.heard(follower.spawn_id, state)
        ready = bool(state.get("piReady", "sessionId" in state))
        if self.life.state is State.SPAWNING and not ready:
            return
        if self.life.receive(Event.READY, "daemon", "it registered, and its Pi answers"):
            self._policy.running()

    def close(self) -> Deferred[Any]:
        """The daemon ends: let go, and leave the worker as it is."""
        self._closed = True
        self.life.disarm()
        self._presence.close()
        if self._descent is not None:
            self._descent.close()
        return self._withdraw()

    def when_settled(self) -> Deferred[WorkerView]:
        """Fire once the last start has had its result."""
        if self.life.state in SETTLED:
            return succeed(self.view())
        return self._settled.when().addCallback(lambda _: self.view())

    def view(self) -> WorkerView:
        """Return it as listings show it."""
        return worker_view(
            self.spec,
            self.life.state,
            self._parts.registry.live(self.binding_key),
            process=self._presence.process,
            pi=self._memory.pi,
            session_file=self._memory.session_file,
            restarts=self._policy.restarts,
            last_error=self._last_error,
            until_ms=self._until_ms,
        )

    def births(self) -> list[ProcessBirth]:
        """Return this worker's own processes as far as they are known."""
        known = (self._presence.process, self._memory.pi)
        return [birth for birth in known if birth is not None]

    def lock_free(self) -> bool:
        """Whether no process of the binding lives."""
        return self._presence.lock_free()

    # --- what the machine decides ------------------------------------------------------------------

    def entered(self, before: State, state: State, actor: str, reason: str) -> None:
        """See L{ILifePort}."""
        self._voice.transition(before, state, actor, reason)
        if state is State.RUNNING:
            self._last_error = None
        self._changed(self.view())
        if state is State.SPAWNING:
            self._begin_attempt()
        elif state is State.ADOPTING:
            overdue = before is State.ADOPTING
            self._last_error = self._adoption.entered(overdue, self.spawn_id)
        elif state is State.BACKOFF:
            self.life.arm(self._pause, Event.ELAPSED, "policy", "the pause is over")
        elif state in LADDER:
            self._go_down(state)
        elif state is State.RUNNING and before in (State.SPAWNING, State.ADOPTING):
            # After an adoption too: the daemon before may have died without saying it.
            self._voice.ready(self.spawn_id)
        elif state in (State.STOPPED, State.FAILED):
            self._rest()
        if self.life.state in SETTLED:
            self._settled.keep()

    def _begin_attempt(self) -> None:
        self._made.renew()
        spec = self._parts.specs.get(self.spec.spec_id) or self.spec
        self.spec, self.fresh = attrs.evolve(spec, fresh=self.fresh), False
        self._purpose = Purpose.LATE
        self._descent = None
        self._presence.forget()
        attempt = Attempt(self._parts, self.spec, self._child_ended, self._others, self.spawn_id)
        self._attempt, self.spawn_id = attempt, attempt.spawn_id
        running = spawn(self._log, "starting a worker", self._run_attempt(attempt))
        if self._attempt is attempt:
            self._attempting = running

    async def _run_attempt(self, attempt: Attempt) -> None:
        try:
            await attempt.run(lambda: self._launched(attempt))
        except CancelledError:
            if self._attempt is attempt:  # it was not given up by us
                raise
        except PiTelegramError as error:
            self._not_made(attempt, error)
        else:
            self._made.keep()

    def _launched(self, attempt: Attempt) -> None:
        self._presence.process = attempt.process
        self._memory.pi = None
        if self._presence.exit is None and self.life.state is State.SPAWNING:
            self.life.arm(READY_SECONDS, Event.OVERDUE, "policy", "it was not ready in time")

    def _not_made(self, attempt: Attempt, error: PiTelegramError) -> None:
        if attempt is not self._attempt:
            return
        self._last_error = redact_public(str(error), 500)
        failed = error if isinstance(error, LaunchFailed) else LaunchFailed(str(error))
        self._made.break_(failed)
        if attempt.process is not None:
            return  # it runs: its registration or its end goes on from here
        self._attempt = None
        what = f"could not be started: {self._last_error}"
        if failed.permanent:
            self._fail(what)
        else:
            # A full disk is not the worker's fault; it starts by itself once there is room.
            self._crash(what, counted=not isinstance(error, StoreFull))

    def _withdraw(self) -> Deferred[Any]:
        """Give a running attempt up; a process that it made already stays."""
        self._attempt = None
        running, self._attempting = self._attempting, None
        if running is None or running.called:
            return succeed(None)
        running.cancel()
        return running

    # --- ends ----------------------------------------------------------------------------------------

    def _child_ended(self, attempt: Attempt, exit: Exit) -> None:
        if attempt.spawn_id == self.spawn_id:
            self._presence.ended(exit)

    def _ended(self, exit: Exit) -> None:
        """The worker process is gone; perhaps not all that it started."""
        if self._closed:
            return
        if self.life.state not in LADDER:
            self._ended_unasked(exit)
            return
        self._look()
        if self.life.state in LADDER and self._descent is not None:
            self._descent.worker_gone()

    def _ended_unasked(self, exit: Exit) -> None:
        cause = self._parts.launcher.last_words(self.spec)
        words = redact_public(f"{exit.words()}: {cause}" if cause else exit.words(), 500)
        self._last_error = words
        if self.lock_free():
            self._close_spawn(exit)
        if exit.permanent:
            self._fail(f"ended for good ({words})")
        else:
            self._crash(f"ended ({words})", counted=not exit.locked)

    def _crash(self, what: str, counted: bool = True) -> None:
        wanted = self.spec.restart == "on-failure"
        pause = self._policy.crashed(counted) if wanted else None
        if pause is None:
            self._fail(f"{what}; it is not started again by itself")
            return
        self._pause = pause
        self._until_ms = int((self._parts.now() + pause) * 1000)
        self._voice.ended(self.spawn_id, what, pause)
        self.life.receive(Event.CRASHED, "policy", what)

    def _fail(self, what: str) -> None:
        self._policy.failed(what)
        self._voice.failed(self.spawn_id, what, bool(self.view().session_file))
        self.life.receive(Event.BROKEN, "policy", what)

    def _close_spawn(self, exit: Exit) -> None:
        if self.spawn_id is not None:
            closing = self._parts.specs.ended(self.spawn_id, exit.words())
            spawn(self._log, "recording an end", closing)

    def _end(self, actor: str, reason: str) -> Deferred[None]:
        """Begin to go down, by the gentlest way there is."""
        gone = self._gone.when()
        if self.life.state is State.SPAWNING and self._presence.process is None:
            self._withdraw()
        nobody = self._presence.living is None and self.life.state is not State.ADOPTING
        if self.life.state in LADDER:
            self._voice.transition(self.life.state, self.life.state, actor, reason)
        elif nobody and self.lock_free():
            self.life.receive(Event.ENDED, actor, reason)
        elif self._parts.registry.live(self.binding_key) is not None and not nobody:
            self.life.receive(Event.DRAIN, actor, reason)
        else:
            self.life.receive(Event.END, actor, reason)
        return gone

    def _go_down(self, state: State) -> None:
        if self._descent is None:
            record = self._parts.specs.live_spawn(self.spec.spec_id)
            reach = reach_of(self._parts, self.spec, record, self._others, self.births())
            self._descent = Descent(self._parts, self.life, self.binding_key, reach)
        self._descent.enter(state, self._presence.living)
        if self.life.state is state:
            self._look()

    def _look(self) -> None:
        """See whether everything is gone: on the ladder, or adopting without knowing a process."""
        state = self.life.state
        unknown = state is State.ADOPTING and self._presence.process is None
        if state not in LADDER and not unknown:
            self._presence.stop_looking()
        elif not self._presence.is_gone():
            self._presence.look_later(self._look)
        elif unknown:
            self._presence.ended(Exit())
        else:
            self._proven_gone()

    def _proven_gone(self) -> None:
        self._close_spawn(self._presence.exit or Exit())
        self._presence.forget()
        if self._descent is not None:
            self._descent.close()
            self._descent = None
        if self._purpose is Purpose.LATE:
            self._crash("was not ready in time")
        elif self._purpose is Purpose.RESTART:
            self.life.receive(Event.AGAIN, "daemon", "it is gone, and is started anew")
        else:
            self.life.receive(Event.ENDED, "daemon", "it is gone")
        self._gone.keep()

    def _rest(self) -> None:
        """Nothing of it runs: let go of everything."""
        self._presence.forget()
        if self.life.state is State.STOPPED:
            self._last_error = None
            self.spawn_id = None
            self._memory.pi = None
            self._made.break_(LaunchFailed("the worker was stopped before it was made"))
            self._gone.keep()
