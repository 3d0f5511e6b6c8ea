"""A Pi of our own: C{pi --mode rpc} as a child process."""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorProcess, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from pitelegram.errors import LaunchFailed, PiGone, PiRefused
from pitelegram.ids import ProcessBirth
from pitelegram.kernel.birth import process_birth
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.observers import OneShot
from pitelegram.kernel.proctree import MARK_VARIABLE
from pitelegram.pi.arguments import check_command, prompt_arguments
from pitelegram.pi.channel import Channel
from pitelegram.pi.child import PiChild
from pitelegram.pi.dialogs import METHODS, OpenDialogs, cancelled
from pitelegram.pi.events import EventStream
from pitelegram.pi.interfaces import IPiHost
from pitelegram.pi.launch import LaunchPlan, early_exit, spawn_failure
from pitelegram.pi.life import Life, LifeCycle
from pitelegram.pi.prompting import PromptLine
from pitelegram.pi.stopping import Processes, StopLadder, SystemProcesses

_log = Logger()

START_SECONDS = 30.0
COMMAND_SECONDS = 30.0
LOCK_FD = 3
"""The descriptor under which Pi inherits its binding's lock."""


def _unchanged(text: str) -> str:
    return text


def _spare_none(_: ProcessBirth) -> bool:
    return False


def _any_session(_: Path) -> bool:
    return True


@implementer(IPiHost)
class RpcPiHost:
    """Starts Pi, speaks RPC with it and ends it.

    One host is one Pi process: after its end a new host is made.

    @param command: the words that run Pi.
    @param spawner: makes the process.
    @param lock_fd: a descriptor that Pi inherits, so that the lock on it outlives us with Pi.
    @param redact: takes secrets out of Pi's error texts.
    @param umask: file mode mask of Pi and its tools; None keeps this process's.
    @param session_allowed: whether a session file may be switched to (beside being a session).
    @param spare: whether a process below Pi must be left alone when Pi is stopped.
    """

    def __init__(
        self,
        command: Sequence[str],
        directory: Path,
        environment: Mapping[str, str],
        spawner: IReactorProcess,
        clock: IReactorTime,
        *,
        name: str | None = None,
        session_file: str | None = None,
        lock_fd: int | None = None,
        redact: Callable[[str], str] = _unchanged,
        extra_args: Sequence[str] = (),
        umask: int | None = None,
        session_allowed: Callable[[Path], bool] = _any_session,
        processes: Processes | None = None,
        spare: Callable[[ProcessBirth], bool] = _spare_none,
    ) -> None:
        self.pid: int | None = None
        self.birth: str | None = None
        self._plan = LaunchPlan(
            command=command,
            directory=directory,
            environment=environment,
            name=name,
            session_file=session_file,
            extra_args=extra_args,
            umask=umask,
        )
        self._spawner = spawner
        self._clock = clock
        self._lock_fd = lock_fd
        self._session_allowed = session_allowed
        self._processes = processes or SystemProcesses()
        self._spare = spare
        self._life = LifeCycle()
        self._stopped: OneShot[str] | None = None
        self._prompts = PromptLine(clock)
        self._dialogs = OpenDialogs(clock)
        self._aborting: OneShot[None] | None = None
        self._below: list[ProcessBirth] = []
        self._events = EventStream(self._answered, self._asked)
        self._child = PiChild(clock, self._events.received, redact)
        self._channel = Channel(clock, self._child.write, redact)

    @property
    def state(self) -> dict[str, Any]:
        """The last known state, with Pi's C{queue} (L{Projection<pitelegram.pi.projection.Projection>})."""
        return self._events.projection.state

    @property
    def counts(self) -> dict[str, int]:
        """Records read, those that were odd, and answers that came too late."""
        return {**self._events.counts, "late": self._channel.late}

    @property
    def stderr_tail(self) -> str:
        """The last of Pi's standard error, redacted: often the only reason for an exit."""
        return self._child.stderr_tail

    def subscribe(self, observer: Any) -> None:
        """See L{IPiHost}."""
        self._events.subscribe(observer)

    def want(self, kinds: Collection[str]) -> None:
        """See L{IPiHost}."""
        self._events.want(kinds)

    @deferred
    async def start(self) -> dict[str, Any]:
        """See L{IPiHost}; a Pi that fails to start is gone when this fails, observers hear nothing."""
        self._life.go(Life.STARTING)
        try:
            self._plan.check()
            self._spawn()
        except LaunchFailed:
            self._life.go(Life.GONE)
            raise
        self._ended_later()
        try:
            data = await self._ask_state(START_SECONDS)
        except (PiGone, PiRefused):
            raise await self._start_failure()
        if self._life.now is not Life.STARTING:
            raise LaunchFailed("Pi was stopped while it started")
        self._life.go(Life.READY)
        self._events.projection.replace(data)
        return self.state

    @deferred
    async def prompt(
        self, rpc_id: str, message: str, lane: str, images: Sequence[dict[str, Any]] = ()
    ) -> str:
        """See L{IPiHost}.

        A message that waited 10 minutes for its turn was not given (C{PiRefused}); one that Pi did
        not answer for so long may have been taken (C{PiGone}).
        """
        arguments = prompt_arguments(message, lane, images)

        def write() -> Deferred[Any]:
            self._life.require_ready()
            return self._channel.request("prompt", arguments, None, rpc_id)

        self._life.require_ready()
        data = await self._prompts.give(write)
        return str(data.get("disposition", "started")) if isinstance(data, dict) else "started"

    @deferred
    async def abort(self) -> dict[str, Any]:
        """See L{IPiHost}; prompts that nobody wrote yet wait until it is over."""
        self._life.require_ready()
        return await self._abort()

    @deferred
    async def clear_queue(self) -> dict[str, Any]:
        """See L{IPiHost}."""
        self._life.require_ready()
        return await self._channel.request("clear_queue", {}, COMMAND_SECONDS)

    @deferred
    async def get_state(self) -> dict[str, Any]:
        """See L{IPiHost}."""
        self._life.require_ready()
        return await self._refresh()

    @deferred
    async def command(self, name: str, /, **arguments: Any) -> Any:
        """See L{IPiHost}; C{pitelegram.pi.arguments} has the list."""
        rule = check_command(name, arguments)
        self._life.require_ready()
        if name == "switch_session" and not self._session_allowed(Path(arguments["sessionPath"])):
            raise PiRefused("that session must not be opened from here")
        data = await self._channel.request(name, arguments, rule.timeout)
        if rule.refreshes:
            await self._refresh()
        return data

    def answer_dialog(self, dialog_id: str, answer: dict[str, Any]) -> None:
        """See L{IPiHost}; a second or late answer changes nothing.

        @raise ValueError: the answer does not fit the dialog.
        """
        record = self._dialogs.answer(dialog_id, answer)
        if record is not None:
            self._send(record)

    def close_stdin(self) -> None:
        """See L{IPiHost}."""
        self._child.close_stdin()

    @deferred
    async def stop(self, grace: float) -> str:
        """See L{IPiHost}; a second call waits for the first."""
        if self._stopped is None:
            self._stopped = OneShot()
            try:
                self._stopped.fire(await self._stop(grace))
            except BaseException:
                self._stopped.fire(Failure())
                raise
        return await self._stopped.when()

    # --- inside ----------------------------------------------------------------------------

    def _spawn(self) -> None:
        plan, descriptors = self._plan, {0: "w", 1: "r", 2: "r"}
        if self._lock_fd is not None:
            descriptors[LOCK_FD] = self._lock_fd  # type: ignore[assignment]
        arguments = plan.arguments()
        try:
            self._spawner.spawnProcess(
                self._child,
                arguments[0],
                arguments,
                env=dict(plan.environment),
                childFDs=descriptors,
            )
        except OSError as error:
            raise spawn_failure(error)
        self.pid = self._child.pid
        self.birth = process_birth(self.pid) if self.pid is not None else None

    def _ended_later(self) -> None:
        self._child.ended.when().addCallback(self._ended)

    def _ended(self, words: str) -> None:
        """Pi's output was read to the end."""
        self._events.finish()
        was, reason = self._life.now, f"Pi ended ({words})"
        self._life.go(Life.GONE)
        self._channel.lost(reason)
        if was in (Life.READY, Life.STOPPING):
            self._events.tell("ended", reason)

    async def _start_failure(self) -> LaunchFailed:
        """End what did not come up, and say why."""
        hung = not self._child.exited.fired
        if hung:
            self._child.signal(signal.SIGKILL)
        words = await self._child.ended.when()
        if hung:
            return LaunchFailed(
                f"Pi gave no usable answer within {START_SECONDS:.0f} s of its start"
            )
        return early_exit(self._child.exit_code, words, self._child.stderr_tail)

    async def _abort(self) -> dict[str, Any]:
        """Abort, or join the abort that is under way (whose caller gets the queue)."""
        if self._aborting is not None:
            await self._aborting.when()
            return {"steering": [], "followUp": []}
        self._aborting = over = OneShot[None]()
        try:
            queued = await self._abort_now()
        except BaseException:
            self._aborting = None
            over.fire(Failure())
            raise
        self._aborting = None
        over.fire(None)
        return queued

    def _note_below(self) -> None:
        """An abort kills a tool's shell; what the shell had started is not found below Pi any more."""
        if self.pid is not None:
            found = dict.fromkeys((*self._below, *self._processes.descendants(self.pid)))
            self._below = [process for process in found if self._processes.alive(process)]

    async def _abort_now(self) -> dict[str, Any]:
        self._note_below()
        resume = await self._prompts.pause()
        try:
            for record in self._dialogs.cancel_all():
                self._send(record)
            queued = await self._channel.request("clear_queue", {}, COMMAND_SECONDS)
            await self._channel.request("abort", {}, COMMAND_SECONDS)
        finally:
            resume()
        return queued

    async def _refresh(self) -> dict[str, Any]:
        self._events.projection.replace(await self._ask_state(COMMAND_SECONDS))
        return self.state

    async def _ask_state(self, timeout: float) -> dict[str, Any]:
        data = await self._channel.request("get_state", {}, timeout)
        if not isinstance(data, dict) or not isinstance(data.get("sessionId"), str):
            raise PiRefused("Pi's state is not understood; is this a supported version?")
        return data

    async def _stop(self, grace: float) -> str:
        if self.pid is None:
            if self._life.now is Life.FRESH:
                self._life.go(Life.GONE)
            return "never started"
        if self._life.now in (Life.STARTING, Life.READY):
            self._life.go(Life.STOPPING)
        ladder = StopLadder(
            self._child,
            lambda: Deferred.fromCoroutine(self._abort()),
            self._clock,
            self._processes,
            self._plan.environment.get(MARK_VARIABLE),
            self._spare,
            lambda: self._below,
        )
        words = await ladder.run(grace)
        await self._child.ended.when()
        return words

    def _answered(self, record: dict[str, Any]) -> None:
        self._channel.answered(record)

    def _asked(self, request: dict[str, Any]) -> None:
        """A dialog or a notice.  While an abort runs, which an open dialog would block, and when it
        cannot be shown, a dialog is cancelled at once; observers hear of the latter.
        """
        if request.get("method") not in METHODS:
            self._events.tell("dialog_requested", request)
            return
        ending = self._aborting is not None or self._life.now is Life.STOPPING
        if ending or not self._dialogs.opened(request):
            record = cancelled(request)
            if record is not None:
                self._send(record)
        if not ending:
            self._events.tell("dialog_requested", request)

    def _send(self, record: dict[str, Any]) -> None:
        """Write a record without an answer; a Pi that is gone needs none."""
        try:
            self._channel.send(record)
        except PiGone:
            _log.debug("an answer to a dialog was for a Pi that is gone")
