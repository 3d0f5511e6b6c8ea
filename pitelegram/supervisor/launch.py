"""Making a worker process: everything is checked before, and nothing secret is in its arguments."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.interfaces import IReactorProcess, IReactorTime
from twisted.internet.protocol import ProcessProtocol

from pitelegram.errors import LaunchFailed, Refusal, UnsafeFile
from pitelegram.ids import managed_binding
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.files import ensure_private_dir, open_private
from pitelegram.kernel.flock import FileLock
from pitelegram.kernel.paths import Paths
from pitelegram.kernel.redact import redact_public
from pitelegram.pi.sessions import session_home
from pitelegram.store.rows import Spec
from pitelegram.supervisor.environment import EnvironmentRules, pi_environment, worker_environment
from pitelegram.supervisor.roots import Roots, check_session
from pitelegram.supervisor.version import PiVersion

CREDENTIAL_FD = 3
LOCK_FD = 4

LOG_LIMIT = 1024 * 1024
"""Bytes of a worker's log that are kept when the next process starts."""

TAIL_BYTES = 4096

_STAMP = re.compile(r"\d{4}-\S+ \[[a-z]+\] ")
_ORDINARY = re.compile(r"\d{4}-\S+ \[(debug|info)\] ")


@attrs.frozen(kw_only=True)
class Exit:
    """How a worker process ended.

    @ivar code: exit code, None after a signal or when it was not our child.
    @ivar signal: signal number, or None.
    """

    code: int | None = None
    signal: int | None = None

    @property
    def permanent(self) -> bool:
        """Whether starting again would not help."""
        return self.code == 78

    @property
    def locked(self) -> bool:
        """Whether another process held the binding's lock, or the disk was full: nobody's crash."""
        return self.code == 75

    def words(self) -> str:
        """Return it in words."""
        if self.signal is not None:
            return f"signal {self.signal}"
        return "end unseen" if self.code is None else f"exit code {self.code}"


class Launcher:
    """Starts worker processes.

    @param spawner: makes processes.
    @param command: the words that start Pi.
    @param environ: the daemon's own environment.
    @param rules: returns what may be passed on, asked before each launch.
    @param pi_umask: the operator's umask, for what Pi creates in his projects.
    """

    def __init__(
        self,
        spawner: IReactorProcess,
        clock: IReactorTime,
        paths: Paths,
        command: Sequence[str],
        roots: Roots,
        environ: Mapping[str, str],
        rules: Callable[[], EnvironmentRules],
        *,
        log_level: str = "info",
        pi_umask: int | None = None,
        python: str = sys.executable,
    ) -> None:
        self._spawner = spawner
        self._paths = paths
        self._roots = roots
        self._environ = environ
        self._rules = rules
        self._log_level = log_level
        self._pi_umask = pi_umask
        self._python = python
        self._version = PiVersion(command, spawner, clock)
        self._log_began: dict[str, int] = {}

    @deferred
    async def check(self, spec: Spec) -> list[str]:
        """Fire with the Pi command once directory, session, program and version are found right.

        @raise LaunchFailed: permanent for what only an operator can change.
        """
        try:
            real = self._roots.resolve(spec.directory)
        except Refusal as refusal:
            raise LaunchFailed(str(refusal), permanent=True) from None
        if str(real) != spec.directory:
            raise LaunchFailed("the worker's directory is a link to another one now", True)
        environment = pi_environment(self._environ, self._rules())
        if spec.session_file is not None and not spec.fresh:
            home = session_home(self._paths.agent_dir, environment)
            check_session(spec.session_file, home, self._roots)
        return await self._version.check(environment)

    def session_file(self, ref: str) -> str:
        """Return the file of a session that is named below Pi's sessions directory (rule D7).

        @raise Refusal: C{invalid_selection}: there is none, or it may not be used.
        """
        home = session_home(self._paths.agent_dir, pi_environment(self._environ, self._rules()))
        file = Path(os.path.realpath(home)) / ref
        try:
            check_session(str(file), home, self._roots)
        except LaunchFailed as error:
            raise Refusal("invalid_selection", str(error)) from None
        if not file.is_file():
            raise Refusal("invalid_selection", "there is no session of that name")
        return str(file)

    def launch(
        self,
        spec: Spec,
        spawn_id: str,
        credential: bytes,
        lock: FileLock,
        pi: Sequence[str],
        ended: Callable[[Exit], None],
    ) -> int:
        """Make the process and return its pid; C{ended} is called once it is gone.

        It inherits the credential (descriptor 3, a pipe to be read to its end) and the binding's
        lock (4).

        @raise LaunchFailed: it could not be made.
        """
        environment = worker_environment(self._environ, self._rules(), spec.name, spawn_id)
        opened: list[int] = []
        try:
            opened.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            opened.append(self._open_log(spec))
            opened.append(_pipe_with(credential))
            nothing, log, secret = opened
            transport = self._spawner.spawnProcess(
                _WorkerProcess(ended),
                self._python,
                self._arguments(spec, spawn_id, pi),
                env=environment,
                path=str(self._paths.data),
                childFDs={0: nothing, 1: log, 2: log, CREDENTIAL_FD: secret, LOCK_FD: lock.fd},
            )
        except (OSError, UnsafeFile):
            raise LaunchFailed("the worker process could not be made") from None
        finally:
            for fd in opened:
                os.close(fd)
        assert transport.pid is not None
        return transport.pid

    def last_words(self, spec: Spec) -> str | None:
        """Return the last complaint in the log of the newest process we made, redacted.

        None when there is none: ordinary events, and what a former process wrote, are no cause.
        """
        begin = self._log_began.get(spec.spec_id)
        try:
            fd = open_private(self._log_path(spec), os.O_RDONLY)
        except UnsafeFile:
            return None
        with os.fdopen(fd, "rb") as file:
            size = os.fstat(fd).st_size
            if begin is None or begin > size:
                return None
            file.seek(max(begin, size - TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").split("\n")
        written = [line.strip() for line in lines if line.strip() and not _ORDINARY.match(line)]
        return redact_public(_STAMP.sub("", written[-1]), 300) if written else None

    def bound_log(self, spec: Spec) -> None:
        """Empty the log of a running worker when it grew far over its limit."""
        path = self._log_path(spec)
        try:
            if os.lstat(path).st_size > 8 * LOG_LIMIT:
                os.close(open_private(path, os.O_WRONLY | os.O_TRUNC))
        except (OSError, UnsafeFile):
            return

    def _arguments(self, spec: Spec, spawn_id: str, pi: Sequence[str]) -> list[str]:
        arguments = [self._python, "-m", "pitelegram.worker", "managed"]
        for name, value in (
            ("agent-dir", str(self._paths.agent_dir)),
            ("profile", self._paths.profile),
            ("spec-id", spec.spec_id),
            ("spawn-id", spawn_id),
            ("name", spec.name),
            ("directory", spec.directory),
            ("pi", shlex.join(pi)),
            ("log-level", self._log_level),
        ):
            arguments += [f"--{name}", value]
        for root in self._roots.real:
            arguments += ["--root", str(root)]
        if self._pi_umask is not None:
            arguments += ["--pi-umask", f"{self._pi_umask:o}"]
        if spec.fresh:
            arguments.append("--fresh")
        elif spec.session_file is not None:
            arguments += ["--session", spec.session_file]
        return arguments

    def _log_path(self, spec: Spec) -> Path:
        return self._paths.worker_log(managed_binding(spec.spec_id))

    def _open_log(self, spec: Spec) -> int:
        ensure_private_dir(self._paths.workers)
        fd = open_private(self._log_path(spec), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        if os.fstat(fd).st_size > LOG_LIMIT:
            os.ftruncate(fd, 0)
        self._log_began[spec.spec_id] = os.fstat(fd).st_size
        return fd


class _WorkerProcess(ProcessProtocol):
    """Waits for the end of a worker; nothing is read from it."""

    def __init__(self, ended: Callable[[Exit], None]) -> None:
        self._ended = ended

    def processExited(self, reason: Any) -> None:
        """It is gone."""
        value = reason.value
        self._ended(Exit(code=value.exitCode, signal=value.signal))


def _pipe_with(data: bytes) -> int:
    """Return the reading end of a pipe that holds C{data} and nothing after it."""
    reading, writing = os.pipe()
    try:
        os.write(writing, data)
    finally:
        os.close(writing)
    return reading
