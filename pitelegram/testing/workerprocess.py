"""Worker processes for tests, started as the supervisor starts them."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

import pitelegram
from pitelegram.ids import managed_binding
from pitelegram.kernel.flock import FileLock
from pitelegram.kernel.observers import OneShot
from pitelegram.kernel.paths import Paths


class WorkerProcess(ProcessProtocol):
    """One C{python -m pitelegram.worker managed} with its two descriptors.

    @ivar ended: fires with the exit code, or the negative signal.
    @ivar output: everything it wrote.
    """

    def __init__(self, credential: bytes) -> None:
        self.ended: OneShot[int] = OneShot()
        self.output = b""
        self._credential = credential

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.transport.pid  # type: ignore[union-attr,return-value]

    def connectionMade(self) -> None:
        """Give it the credential."""
        self.transport.writeToChild(3, self._credential)  # type: ignore[union-attr]
        self.transport.closeChildFD(3)  # type: ignore[union-attr]

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        """Keep its log."""
        self.output += data

    def processExited(self, reason: Failure) -> None:
        """Tell the exit code."""
        value: Any = reason.value
        code = value.exitCode if value.signal is None else -value.signal
        self.ended.fire(code)

    def kill(self, number: int = signal.SIGKILL) -> Deferred[int]:
        """Signal it; fires with its exit."""
        os.kill(self.pid, number)
        return self.ended.when()

    def log(self) -> str:
        """Its output as text."""
        return self.output.decode("utf-8", "replace")


def spawn_worker(
    reactor: Any,
    paths: Paths,
    spec_id: str,
    spawn_id: str,
    credential: bytes,
    directory: Path,
    pi: Sequence[str] | str,
    environment: Mapping[str, str],
    more: Sequence[str] = (),
    locked: bool = True,
) -> WorkerProcess:
    """Start one.

    @param pi: Pi's command, as a list or as the shell words of the command line.
    @param locked: hand the binding's lock over, as the supervisor does; it must be free.
    """
    lock = FileLock.try_acquire(paths.worker_lock(managed_binding(spec_id))) if locked else None
    arguments = [sys.executable, "-m", "pitelegram.worker", "managed"]
    arguments += ["--agent-dir", str(paths.agent_dir), "--profile", paths.profile]
    arguments += ["--spec-id", spec_id, "--spawn-id", spawn_id, "--name", directory.name]
    words = pi if isinstance(pi, str) else shlex.join(pi)
    arguments += ["--directory", str(directory), "--pi", words, *more]
    source = str(Path(pitelegram.__file__).resolve().parent.parent)
    process = WorkerProcess(credential)
    descriptors: dict[int, Any] = {0: "w", 1: "r", 2: "r", 3: "w"}
    if lock is not None:
        descriptors[4] = lock.fd
    elif locked:
        raise AssertionError("the lock of this binding is taken")
    reactor.spawnProcess(
        process,
        sys.executable,
        arguments,
        env={**environment, "PYTHONPATH": source, "PI_TELEGRAM_WORKER_MARK": spawn_id},
        path=str(paths.data),
        childFDs=descriptors,
    )
    if lock is not None:
        lock.release()
    return process
