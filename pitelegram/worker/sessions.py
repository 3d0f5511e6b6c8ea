"""Which session this worker's Pi is in, and that nobody else is in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

from pitelegram.errors import LaunchFailed, Refusal, UnsafeFile
from pitelegram.ids import ProcessBirth
from pitelegram.kernel.paths import Paths
from pitelegram.pi import sessions as files
from pitelegram.store.worker_interfaces import IInbox
from pitelegram.worker.sessionlock import SessionLock
from pitelegram.worker.sessionmemory import SessionMemory

IN_USE = "another Pi is in that session; end it first, or start a new session"


@attrs.frozen(kw_only=True)
class SessionChoice:
    """How Pi is to be started.

    @ivar file: the session file to resume, None for a new session.
    @ivar expected: the session id that Pi must then report, None when it cannot be known.
    @ivar warning: what the operator has to be told, None when all is well.
    """

    file: str | None
    expected: str | None = None
    warning: str | None = None


class Sessions:
    """Chooses, locks and remembers the session.

    @param directory: the worker's project.
    @param roots: directories that a session's recorded directory may lie in, beside C{directory}.
    @param noted: called when the current session changed.
    @param home: where Pi keeps its sessions; the default place unless given.
    @param pi: returns Pi's process once it is there.
    """

    def __init__(
        self,
        paths: Paths,
        inbox: IInbox,
        directory: Path,
        roots: Sequence[Path],
        noted: Callable[[], None],
        home: Path | None = None,
        pi: Callable[[], ProcessBirth | None] = lambda: None,
    ) -> None:
        self._paths = paths
        self._inbox = inbox
        self._memory = SessionMemory(inbox)
        self._home = os.path.realpath(home or paths.pi_sessions)
        self._pi = pi
        self._allowed = [Path(os.path.realpath(path)) for path in (directory, *roots)]
        self._noted = noted
        self._lock: SessionLock | None = None
        self._locked: str | None = None
        self._current: dict[str, Any] = {}
        self._cwd: tuple[str | None, str] | None = None
        self._shared: str | None = None

    @property
    def home(self) -> Path:
        """Where Pi keeps its sessions: a real path."""
        return Path(self._home)

    @property
    def directory(self) -> str:
        """The worker's project: a real path."""
        return str(self._allowed[0])

    def choose(self, named: str | None, fresh: bool) -> SessionChoice:
        """Decide what Pi is started with, and take that session's lock.

        @param named: the file that the supervisor remembers; a later one that we know ourselves
            counts more (L{SessionMemory.latest}).
        @param fresh: begin a new session, whatever is remembered.
        @raise LaunchFailed: permanent, when the session cannot be used.
        """
        file = None if fresh else self._memory.latest(named)
        if file is None:
            return SessionChoice(file=None)
        mine = self._memory.now()
        own = file == mine.file
        real = Path(os.path.realpath(file))
        if not real.is_relative_to(self._home):
            raise LaunchFailed("the session to resume is none of Pi's own", permanent=True)
        header = files.read_header(real)
        if header is None:
            return self._without_header(file, own)
        if not Path(header.cwd).is_dir():
            raise LaunchFailed("the directory that the session works in is gone", permanent=True)
        if not self._is_allowed(header.cwd):
            raise LaunchFailed("the session works outside the allowed directories", permanent=True)
        self._take(file)
        expected = mine.session_id if own else None
        return SessionChoice(file=file, expected=expected or header.session_id)

    def cwd(self) -> str:
        """Where Pi's tools run: what the session says, else the project."""
        file = self._current.get("sessionFile")
        if self._cwd is None or self._cwd[0] != file:
            header = files.read_header(Path(file)) if file else None
            if header is None:
                return str(self._allowed[0])
            self._cwd = file, header.cwd
        return self._cwd[1]

    def current(self) -> dict[str, Any]:
        """Return C{sessionId}, C{sessionFile} and C{sessionName}, as far as they are known."""
        return dict(self._current)

    def pi_started(self) -> None:
        """Pi's process exists: it is in the session that was chosen."""
        if self._lock is not None:
            self._lock.name(self._pi())

    async def changed(self, state: dict[str, Any], lock: SessionLock | None = None) -> bool:
        """Take the session of a fresh C{get_state}: remember it, and hold its lock.

        @param lock: the lock of the new session where it is held already.
        @return: false, once, when another Pi is in that session; only Pi itself can have caused it.
        """
        names = ("sessionId", "sessionFile", "sessionName")
        self._current = {name: state[name] for name in names if isinstance(state.get(name), str)}
        file = self._current.get("sessionFile")
        if file is not None and (file != self._locked or self._lock is None):
            held = lock or SessionLock.take(self._paths.session_lock(file))
            if self._lock is not None:
                self._lock.release()
            self._lock, self._locked = held, file
        elif lock is not None and lock is not self._lock:
            lock.release()
        self.pi_started()
        if file is not None:
            await self._memory.note(file, self._current.get("sessionId"))
        self._noted()
        shared = file if self._lock is None else None
        told, self._shared = self._shared, shared
        return shared is None or shared == told

    async def remember_entries(self) -> None:
        """Remember that the current session has entries, so that its loss is noticed later."""
        file = self._current.get("sessionFile")
        if (
            file is not None
            and self._inbox.get_meta("session_known") != file
            and os.path.exists(file)
        ):
            await self._inbox.set_meta("session_known", file)

    def reserve(self, path: str) -> SessionLock:
        """Check that a session may be switched to, and take its lock.

        @raise Refusal: it is none, not below Pi's own sessions, works elsewhere, or is in use.
        """
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(self._home):
            raise Refusal("invalid-command", "a session must be one of Pi's own session files")
        header = files.read_header(real)
        if header is None:
            raise Refusal("invalid-command", "that is no session file")
        if not self._is_allowed(header.cwd):
            raise Refusal("invalid-command", "that session works outside the allowed directories")
        if self._locked is not None and str(real) == os.path.realpath(self._locked):
            raise Refusal("execution-failed", "that is the current session already")
        lock = SessionLock.take(self._paths.session_lock(real))
        if lock is None:
            raise Refusal("execution-failed", IN_USE)
        return lock

    def release(self) -> None:
        """Give the lock back."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _is_allowed(self, directory: str) -> bool:
        real = Path(os.path.realpath(directory))
        return real.is_dir() and any(real.is_relative_to(root) for root in self._allowed)

    def _without_header(self, file: str, own: bool) -> SessionChoice:
        """The file is missing, empty or no session: Pi would start an empty one without a word."""
        try:
            size = os.stat(file).st_size
        except FileNotFoundError:
            size = 0
        except OSError:
            size = 1
        if size:
            raise LaunchFailed("the session file to resume is damaged", permanent=True)
        self._take(file)
        lost = self._inbox.get_meta("session_known") == file or not own
        warning = "⚠️ The session file is gone. Pi starts a new, empty session in its place."
        return SessionChoice(file=file, warning=warning if lost else None)

    def _take(self, file: str) -> None:
        try:
            lock = SessionLock.take(self._paths.session_lock(file))
        except UnsafeFile as refusal:
            raise LaunchFailed(str(refusal), permanent=True) from None
        if lock is None:
            raise LaunchFailed(IN_USE, permanent=True)
        self._lock, self._locked = lock, file
