"""Which Pi this is: asked once per file, before the first launch."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorProcess, IReactorTime
from twisted.internet.protocol import ProcessProtocol

from pitelegram.errors import LaunchFailed
from pitelegram.ids import ProcessBirth
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.proctree import descendants, signal_exact

MINIMUM = (0, 84, 4)
PACKAGE = "@earendil-works/pi-coding-agent"
PROBE_SECONDS = 20.0

REST_SECONDS = 1.0
"""Seconds after its end in which what it had written must have come."""

OUTPUT_LIMIT = 16 * 1024

_VERSION = re.compile(r"(?<![\d.])v?(\d+)\.(\d+)\.(\d+)")

_ANOTHER = re.compile(r"\b(?:omp|oh-my-pi)\b", re.I)

Version = tuple[int, int, int]


def read_version(said: str) -> Version | None:
    """Return the version in what a program said to C{--version}."""
    match = _VERSION.search(said)
    return None if match is None else (int(match[1]), int(match[2]), int(match[3]))


def is_another(command: Sequence[str], said: str) -> bool:
    """Whether a command is oh-my-pi: the same command line, higher numbers, another protocol.

    @param said: what it said to C{--version}.
    """
    files = [Path(word) for word in command]
    files += [Path(os.path.realpath(word)) for word in command if os.sep in word]
    named = any(file.name == "omp" or "@oh-my-pi" in file.parts for file in files)
    return named or _ANOTHER.search(said[:200]) is not None


class PiVersion:
    """Finds the Pi command and makes sure that its version will do.

    @param command: the words that start Pi.
    @param below: lists the processes that a process started.
    """

    def __init__(
        self,
        command: Sequence[str],
        spawner: IReactorProcess,
        clock: IReactorTime,
        below: Callable[[int], list[ProcessBirth]] = descendants,
    ) -> None:
        self._below = below
        self._command = tuple(command)
        self._spawner = spawner
        self._clock = clock
        self._known: dict[Any, Version] = {}

    @deferred
    async def check(self, environment: Mapping[str, str]) -> list[str]:
        """Fire with the command, its program as an absolute path.

        @raise LaunchFailed: permanent when there is no such program, it is too old, or another one;
            not permanent when it does not answer.
        """
        program = shutil.which(self._command[0], path=environment.get("PATH", os.defpath))
        if program is None:
            raise LaunchFailed(
                f"the Pi command {self._command[0]!r} was not found; install {PACKAGE}"
                " or name it with --pi",
                permanent=True,
            )
        words = [os.path.abspath(program), *self._command[1:]]
        key = tuple(_identity(word) for word in words)
        if key not in self._known:
            self._known[key] = await self._probe(words, environment)
        version = self._known[key]
        if version < MINIMUM:
            wanted, found = (".".join(map(str, numbers)) for numbers in (MINIMUM, version))
            raise LaunchFailed(
                f"this Pi is version {found}; install {PACKAGE} {wanted} or newer", permanent=True
            )
        return words

    async def _probe(self, words: Sequence[str], environment: Mapping[str, str]) -> Version:
        probe = _Probe(self._clock)
        try:
            transport = self._spawner.spawnProcess(
                probe, words[0], [*words, "--version"], env=dict(environment), path="/"
            )
        except OSError:
            raise LaunchFailed("the Pi command cannot be executed", permanent=True) from None
        limit = self._clock.callLater(PROBE_SECONDS, probe.give_up)
        try:
            output = await probe.output
        finally:
            if limit.active():
                limit.cancel()
            self._end(probe, transport)
        said = output.decode("utf-8", "replace")
        if is_another(words, said):
            wanted = ".".join(map(str, MINIMUM))
            raise LaunchFailed(
                f"oh-my-pi cannot be used; install {PACKAGE} {wanted} or newer", permanent=True
            )
        version = read_version(said)
        if version is None:
            raise LaunchFailed("the Pi command does not tell its version (--version)")
        return version

    def _end(self, probe: _Probe, transport: Any) -> None:
        """Leave nothing behind: neither the process nor what a wrapper started."""
        if not probe.exited:
            below = self._below(transport.pid)
            transport.signalProcess("KILL")
            for process in below:
                signal_exact(process, signal.SIGKILL)
        transport.loseConnection()


class _Probe(ProcessProtocol):
    """Collects both streams of C{pi --version}."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self.output: Deferred[bytes] = Deferred()
        self.exited = False
        self._collected = b""
        self._rest: Any = None

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        """Keep the beginning of what it says."""
        if len(self._collected) < OUTPUT_LIMIT:
            self._collected += data[:OUTPUT_LIMIT]

    def processExited(self, reason: Any) -> None:
        """Nothing is left to end; somebody that it started may hold its streams for long."""
        self.exited = True
        self._rest = self._clock.callLater(REST_SECONDS, self._finish)

    def processEnded(self, reason: Any) -> None:
        """Everything was said."""
        if self._rest is not None and self._rest.active():
            self._rest.cancel()
        self._finish()

    def give_up(self) -> None:
        """It took too long."""
        self._collected = b""
        self._finish()

    def _finish(self) -> None:
        if not self.output.called:
            self.output.callback(self._collected)


def _identity(word: str) -> Any:
    """What changes when the file behind a word is exchanged; other words stand for themselves."""
    real = os.path.realpath(word)
    try:
        info = os.stat(real)
    except OSError:
        return word
    return real, info.st_mtime_ns, info.st_size
