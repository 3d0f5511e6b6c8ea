"""One program of the operator's: started without a shell, fed, read, and ended with all it started.

Its states are those of L{pitelegram.worker.programlife}.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.protocol import ProcessProtocol
from twisted.logger import Logger
from twisted.python.failure import Failure

from pitelegram.ids import ProcessBirth
from pitelegram.kernel.deferring import deferred, spawn
from pitelegram.kernel.observers import OneShot
from pitelegram.pi import launcher
from pitelegram.pi.child import exit_words
from pitelegram.worker.ending import Ending, Processes
from pitelegram.worker.outputs import ERROR_CHARS, Head, marked
from pitelegram.worker.programlife import new_life

WRITES_MOST = 64 * 1024 * 1024
"""Bytes of standard output and error after which a program is ended."""

DRAIN_LOOKS, DRAIN_LOOKS_MOST = 10, 100
"""How often the streams of an exited program are looked at: others may hold them open for ever."""

_LOOK_SECONDS = 0.05

_log = Logger()


@attrs.frozen(kw_only=True)
class Ended:
    """How a program ended.

    @ivar words: the reason when it failed, for the operator.
    @ivar out: its standard output.
    @ivar missing: how many characters of that were not kept.
    @ivar errors: the beginning of its standard error.
    """

    ok: bool
    words: str = ""
    out: bytes = b""
    missing: int = 0
    errors: str = ""


class Program(ProcessProtocol):
    """The streams and the end of one program.

    @param keep: most characters of standard output to keep; None keeps all its bytes.
    @ivar result: fires when it is over and nothing of it is left; cancelling ends it.
    @ivar over: fires then too, whoever cancelled what.
    """

    transport: Any

    def __init__(
        self, clock: IReactorTime, processes: Processes, stdin: bytes, keep: int | None
    ) -> None:
        self.result: Deferred[Ended] = Deferred(lambda _: self._drop())
        self.over: OneShot[None] = OneShot()
        self._clock = clock
        self._processes = processes
        self._stdin = stdin
        self._head = None if keep is None else Head(keep)
        self._chunks: list[bytes] = []
        self._errors = Head(ERROR_CHARS)
        self._written = 0
        self._limit: Any = None
        self._drain: Any = None
        self._life = new_life()
        self._exit: tuple[int | None, str] = (None, "")
        self._dropped = False
        self._birth: ProcessBirth | None = None
        self._reason = ""

    def limit(self, seconds: float) -> None:
        """End it after so many seconds."""
        words = f"took longer than {round(seconds, 1):g} s"
        self._limit = self._clock.callLater(max(seconds, 0.0), self._end, words)

    def stop(self) -> None:
        """End it.  Safe to repeat."""
        self._end("was stopped")

    def _drop(self) -> None:
        """Nobody waits for it any more."""
        self._dropped = True
        self.stop()

    def connectionMade(self) -> None:
        """It runs: give it its input."""
        self._birth = self._processes.birth(self.transport.pid)
        self.transport.write(self._stdin)
        self.transport.closeStdin()
        self._stdin = b""

    def outReceived(self, data: bytes) -> None:
        """Keep standard output."""
        self._count(data)
        if self._head is not None:
            self._head.add(data)
        elif self._written <= WRITES_MOST:
            self._chunks.append(data)

    def errReceived(self, data: bytes) -> None:
        """Keep the beginning of standard error."""
        self._count(data)
        self._errors.add(data)

    def processExited(self, reason: Failure) -> None:
        """It is gone; its streams may still hold something."""
        if self._life.feed("exit") == "over":
            return
        self._exit = exit_words(reason)
        self._cancel(self._limit)
        self._look(self._written, DRAIN_LOOKS, DRAIN_LOOKS_MOST)

    def processEnded(self, reason: Failure) -> None:
        """Everything was read."""
        self._cancel(self._drain)
        self._move("closed")

    def _look(self, before: int, quiet: int, left: int) -> None:
        """Give the streams up after some looks without anything new.

        (Looks, not seconds: a reactor that was held up has not read what is there.)
        """
        if quiet == 0 or left == 0:
            self.transport.loseConnection()
            return
        quiet = quiet - 1 if self._written == before else DRAIN_LOOKS
        self._drain = self._clock.callLater(
            _LOOK_SECONDS, self._look, self._written, quiet, left - 1
        )

    def _count(self, data: bytes) -> None:
        self._written += len(data)
        if self._written > WRITES_MOST:
            self._end(f"wrote more than {WRITES_MOST // 1024**2} MB")

    def _end(self, words: str) -> None:
        """Begin to end it, once."""
        if self._life.can("end"):
            self._life.feed("end")
            self._reason = words
            self._cancel(self._limit)
            ending = Ending(self._clock, self._processes, self._birth, self._exited)
            spawn(_log, "ending a program", ending.run()).addCallback(lambda _: self._ended())

    def _exited(self) -> bool:
        return self._life.now != "ending"

    def _ended(self) -> None:
        """Nothing of it is left, or it would not go."""
        if self._life.now == "ending":
            self._reason += ", and would not end"
            self._move("given-up")
        elif self._move("gone") == "draining":
            self.transport.loseConnection()

    def _move(self, event: str) -> str:
        """Move on; give the result when it is over."""
        now = self._life.feed(event)
        if now == "over" and not self.over.fired:
            self.over.fire(None)
            if not self._dropped:
                self.result.callback(self._made())
        return now

    def _made(self) -> Ended:
        code, words = self._exit
        errors, missing_errors = self._errors.close()
        if self._reason or code != 0:
            failed_start = code == launcher.FAILED and errors.startswith(launcher.PREFIX)
            words = self._reason or (errors.splitlines()[0] if failed_start else words)
            return Ended(ok=False, words=words, errors=marked(errors, missing_errors))
        if self._head is None:
            return Ended(ok=True, out=b"".join(self._chunks))
        text, missing = self._head.close()
        return Ended(ok=True, out=text.encode("utf-8", "replace"), missing=missing)

    def _cancel(self, call: Any) -> None:
        if call is not None and call.active():
            call.cancel()


class Starter:
    """Starts programs in the project's directory.

    @param reactor: provides C{IReactorProcess} and C{IReactorTime}.
    """

    def __init__(
        self,
        reactor: Any,
        directory: str,
        environment: Mapping[str, str],
        processes: Processes | None = None,
    ) -> None:
        self.clock: IReactorTime = reactor
        self._reactor = reactor
        self._directory = directory
        self._environment = dict(environment)
        self._processes = processes or Processes()
        self._running: set[Program] = set()

    @deferred
    async def stop(self) -> None:
        """End all programs; fire when nothing of them is left."""
        for program in list(self._running):
            program.stop()
        for program in list(self._running):
            await program.over.when()

    def run(
        self, words: Sequence[str], stdin: bytes, keep: int | None, seconds: float | None
    ) -> Deferred[Ended]:
        """Run a program to its end; cancelling ends it and all that it started.

        @param keep: most characters of standard output to keep; None keeps all its bytes.
        @param seconds: how long it may take.
        """
        found = self._find(words[0])
        if found is None:
            return _never("was not found")
        if not os.path.isdir(self._directory):
            return _never("cannot be started: the project directory is gone")
        program = Program(self.clock, self._processes, stdin, keep)
        own = [sys.executable, "-I", "-S", launcher.__file__, self._directory, ""]
        command = [*own, found, *words[1:]]
        try:
            self._reactor.spawnProcess(program, command[0], command, self._environment)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else "unknown reason"
            return _never(f"cannot be started: {reason}")
        if seconds is not None:
            program.limit(seconds)
        self._running.add(program)
        program.over.when().addCallback(lambda _: self._running.discard(program))
        return program.result

    def _find(self, program: str) -> str | None:
        """The program's file; directories of the path that are relative are left out."""
        entries = self._environment.get("PATH", os.defpath).split(os.pathsep)
        path = os.pathsep.join(entry for entry in entries if os.path.isabs(entry))
        return shutil.which(program, path=path)


def _never(words: str) -> Deferred[Ended]:
    result: Deferred[Ended] = Deferred()
    result.callback(Ended(ok=False, words=words))
    return result
