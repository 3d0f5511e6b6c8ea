"""The life of a worker process: recover, connect, run Pi, end with the right exit code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, TimeoutError, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from pitelegram.bridge.composing import named_files
from pitelegram.errors import BusError, LaunchFailed, PiTelegramError, Refusal, StoreError
from pitelegram.kernel.deferring import deferred, sleep, spawn
from pitelegram.kernel.observers import OneShot
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.parts import WorkerParts
from pitelegram.worker.recovery import recover
from pitelegram.worker.report import has_model
from pitelegram.worker.sessions import SessionChoice
from pitelegram.worker.settling import short_id

EXIT_STOPPED = 0
EXIT_REFUSED = 69
EXIT_PI_ENDED = 70
EXIT_LATER = 75
"""Nobody's fault, and not for ever: another process has the lock, or the disk is full."""
EXIT_PERMANENT = 78

RETENTION_PERIOD = 3600.0
TERM_SECONDS = 3.0
TELL_SECONDS = 2.0
"""How long the last words to the leader may take."""
SHARED = (
    "⚠️ Another Pi is in the same session: what one of them says may be lost. "
    "End one of them, or start a new session."
)
DAMAGED = (
    "⚠️ This worker's store was damaged and was made anew; the old one is kept in recovery/. "
    "Prompts that were waiting in it are lost: please send them again."
)
JOINED_SECONDS = 0.1
"""Heartbeats in quick succession are joined: the last one goes out within this time."""
SWEEP_SECONDS = 3.0
REFUSALS = 3
REFUSED_SECONDS = 60.0


class WorkerService(Service):
    """See C{docs/worker.md}.

    @param bus: the bus client; its follower is C{parts.follower}.
    @param choice: how Pi is started, or why it cannot be.
    @param damaged: the store was damaged and had to be made anew.
    @param tool_link: makes what the extension in Pi connects to.
    @ivar finished: fires with the exit code when all is done.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        inbox: IInbox,
        parts: Callable[[Callable[[str], None], Callable[[bool, float], None]], WorkerParts],
        bus: Callable[[WorkerParts], Any],
        choice: SessionChoice | LaunchFailed,
        damaged: bool = False,
        tool_link: Callable[[WorkerParts], Service] | None = None,
    ) -> None:
        self._clock = clock
        self._inbox = inbox
        self.parts = parts(self._pi_ended, self.stop_soon)
        self._bus = bus(self.parts)
        self._choice = choice
        self._damaged = damaged
        self._tool_link = None if tool_link is None else tool_link(self.parts)
        self._ending = False
        self._retention: IDelayedCall | None = None
        self._refusals = 0
        self._refused_at = 0
        self.finished: OneShot[int] = OneShot()

    @deferred
    async def startService(self) -> None:
        """Judge what a former process left, connect, start Pi; fires when Pi is up or cannot be."""
        Service.startService(self)
        parts = self.parts
        try:
            if self._damaged:
                await parts.settler.say(f"store-{parts.report.spawn_id}", DAMAGED)
            await recover(self._inbox, parts.settler)
            await parts.editing.recover()
            if self._ending:
                return
            parts.gatherer.begin()
            parts.frames.recover()
            kept = {file.path for file in parts.outgoing.attached()}
            parts.files.sweep(named_files(self._inbox.answers()) | kept)
            parts.composer.startService()
            parts.submitter.startService()
            parts.watch.startService()
            self._bus.startService()
            self._retain()
            await self._start_pi()
        except LaunchFailed as error:
            self._log.error("Pi did not start: {reason}", reason=str(error))
            self._end(EXIT_PERMANENT if error.permanent else EXIT_PI_ENDED, str(error))
        except CancelledError:
            raise
        except Exception:
            self._log.failure("the worker cannot start")
            self._end(EXIT_PI_ENDED, "the worker failed while it started; its log has the reason")

    async def _start_pi(self) -> None:
        parts = self.parts
        choice = self._choice
        if isinstance(choice, LaunchFailed):
            raise choice
        if self._tool_link is not None:
            self._tool_link.startService()
        starting = parts.host.start()
        parts.sessions.pi_started()
        state = await starting
        await self._take_session(state)
        self._check_session(choice, state)
        if not has_model(state):
            parts.settler.say(
                f"no-model-{parts.report.spawn_id}",
                "⚠️ Pi has no usable model: log in with pi in a terminal, or set an API key. "
                "Prompts wait until then.",
            )
        self._log.info("Pi is up")
        parts.after_run(self._after_run)
        parts.report.ready = True
        parts.orders.kick()
        if not self._ending:
            parts.queue.open()
        parts.changed()

    def _check_session(self, choice: SessionChoice, state: dict[str, Any]) -> None:
        """Pi never fails to find a session: say aloud when it is not the one that was meant."""
        warning = choice.warning
        if choice.expected is not None and state.get("sessionId") != choice.expected:
            warning = "⚠️ Pi did not resume the session it was in; it is in another one now."
        if warning is not None:
            self._log.warn("the session of before was not resumed")
            self.parts.settler.say(f"session-{self.parts.report.spawn_id}", warning)

    def _after_run(self) -> None:
        spawn(self._log, "looking at Pi's session", self._refresh())

    async def _refresh(self) -> None:
        """No event tells of a session that an extension or a command changed."""
        try:
            await self._take_session(await self.parts.host.get_state())
            await self.parts.sessions.remember_entries()
        except (PiTelegramError, StoreError) as error:
            self._log.info("Pi's session is not known now: {reason}", reason=str(error))

    async def _take_session(self, state: dict[str, Any]) -> None:
        if not await self.parts.sessions.changed(state):
            self._log.warn("another Pi is in the session of this one")
            name = f"session-shared-{short_id(str(state.get('sessionFile')))}"
            self.parts.settler.say(name, SHARED)

    def _retain(self) -> None:
        self._retention = self._clock.callLater(RETENTION_PERIOD, self._retain)
        now = int(self._clock.seconds() * 1000)
        spawn(self._log, "forgetting what is old", self._inbox.forget(now))
        spawn(self._log, "forgetting old buttons", self.parts.outgoing.forget(now))
        self.parts.gatherer.keep()

    # --- the end -----------------------------------------------------------------------------

    def stop_soon(self, drain: bool, seconds: float) -> None:
        """Begin the end; asked again it can only become quicker."""
        if self._begin_end():
            spawn(self._log, "stopping", self._stop(drain, seconds))
        elif self.parts.ladder.phase is not None:
            spawn(self._log, "stopping", self.parts.ladder.stop(drain, seconds))

    @deferred
    async def stopService(self) -> None:
        """End as SIGTERM asks: within 5 s, last words included.  Fires when all is closed."""
        Service.stopService(self)
        self.stop_soon(True, TERM_SECONDS)
        await self.finished.when()

    def credential_refused(self, error: BusError) -> None:
        """A leader does not know our credential, or did not prove that it does.

        Three in a row without a registration between them: nobody will ever hear of this worker, so
        it ends as soon as Pi is idle.
        """
        made = self.parts.registration.made
        self._refusals = self._refusals + 1 if made == self._refused_at else 1
        self._refused_at = made
        if self._refusals >= REFUSALS and self._begin_end():
            self._log.error("the leader refuses this worker: {reason}", reason=str(error))
            spawn(self._log, "stopping", self._stop(True, REFUSED_SECONDS, EXIT_REFUSED))

    def _pi_ended(self, reason: str) -> None:
        self.parts.report.ready = False
        if self.parts.ladder.phase is None:
            self._log.error("{reason}", reason=reason)
            self._end(EXIT_PI_ENDED, reason)

    def _end(self, code: int, reason: str) -> None:
        if self._begin_end():
            spawn(self._log, "ending", self._finish(code, reason))

    def _begin_end(self) -> bool:
        """Whether the end begins now; it begins once."""
        first, self._ending = not self._ending, True
        return first

    async def _stop(self, drain: bool, seconds: float, code: int = EXIT_STOPPED) -> None:
        words = await self.parts.ladder.stop(drain, seconds)
        self._log.info("Pi was stopped ({words})", words=words)
        await self._close(code)

    async def _finish(self, code: int, reason: str) -> None:
        """Pi is gone, or must go: store what it said, end its processes, tell why."""
        parts = self.parts
        parts.report.last_error = reason
        parts.queue.close()
        parts.changed()
        sweeping: Deferred[Any] = succeed(None)
        if parts.host.pid is not None:
            sweeping = spawn(self._log, "ending Pi's processes", parts.host.stop(SWEEP_SECONDS))
        until = self._clock.seconds() + TELL_SECONDS
        # A run that settled just before is on its way to disk: it must not be judged as unfinished.
        while parts.settler.busy and self._clock.seconds() < until:
            await sleep(self._clock, 0.05)
        # Who fails at once has not met the leader yet; the reason is worth a moment.
        while parts.registration.link is None and self._clock.seconds() < until:
            await sleep(self._clock, 0.05)
        await sweeping
        await self._close(code)

    async def _close(self, code: int) -> None:
        parts = self.parts
        parts.typing.stop()
        parts.previews.stop()
        parts.dialogs.stop()
        parts.gatherer.stop()
        parts.frames.stop()
        parts.queue.close()
        if self._retention is not None and self._retention.active():
            self._retention.cancel()
        await self._last_words()
        services = (parts.watch, parts.composer, parts.submitter, self._bus, self._tool_link)
        for service in services:
            if service is not None and service.running:
                await _stopped(service)
        for programs in (parts.handlers, parts.outbound):
            await _ended(programs)
        parts.sessions.release()
        self.finished.fire(code)

    async def _last_words(self) -> None:
        """Submit what is stored, as far as it goes quickly, and say goodbye."""
        parts = self.parts
        until = self._clock.seconds() + TELL_SECONDS
        while (
            parts.registration.link is not None
            and not (parts.submitter.drained() and parts.dialogs.tidy())
            and self._clock.seconds() < until
        ):
            await sleep(self._clock, 0.05)
        link = parts.registration.link
        if link is None:
            return
        try:
            link.heartbeat_now()
            await sleep(self._clock, JOINED_SECONDS)
            left = max(until - self._clock.seconds(), JOINED_SECONDS)
            await link.disconnect("quit", False).addTimeout(left, self._clock)
        except (BusError, Refusal, TimeoutError) as error:
            self._log.info("no goodbye to the leader: {reason}", reason=str(error))


async def _ended(programs: Any) -> None:
    """End the operator's programs, where there are any."""
    stop = getattr(programs, "stop", None)
    if stop is not None:
        await stop()


async def _stopped(service: Any) -> None:
    stopping = service.stopService()
    if isinstance(stopping, Deferred):
        await stopping
