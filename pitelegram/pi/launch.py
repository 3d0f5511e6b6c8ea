"""How a Pi is started: arguments, checks before, and what a failed start means."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from pitelegram.errors import LaunchFailed
from pitelegram.pi import launcher

_NEVER_WORKS = (errno.ENOENT, errno.EACCES, errno.ENOTDIR, errno.ENOEXEC, errno.E2BIG)


@attrs.frozen(kw_only=True)
class LaunchPlan:
    """What to run and where.

    @ivar command: the words that run Pi.
    @ivar name: session name for a fresh session.
    @ivar session_file: absolute path of the session to resume; then the name is left out, since Pi
        would rename the session.
    @ivar umask: file mode mask of Pi and its tools; None keeps ours.
    """

    command: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    name: str | None = None
    session_file: str | None = None
    extra_args: Sequence[str] = ()
    umask: int | None = None

    def pi_arguments(self) -> list[str]:
        """Return Pi's own command line, its program as an absolute path.

        (A relative one would be looked up in the project, whose files nobody vouches for.)
        """
        program = self._program() or self.command[0]
        words = [os.path.abspath(program), *self.command[1:], "--mode", "rpc", "--approve"]
        if self.session_file is not None:
            words += ["--session", self.session_file]
        elif self.name is not None:
            words += ["-n", self.name]
        return [*words, *self.extra_args]

    def arguments(self) -> list[str]:
        """Return the command line of the process that becomes Pi."""
        mask = "" if self.umask is None else f"{self.umask:o}"
        own = [sys.executable, "-I", "-S", launcher.__file__, str(self.directory), mask]
        return own + self.pi_arguments()

    def check(self) -> None:
        """Look for what is certain to fail.

        @raise LaunchFailed: permanent, with the sentence for the operator.
        """
        if not self.command:
            raise LaunchFailed("the Pi command is empty; set workers.command", permanent=True)
        if self._program() is None:
            raise LaunchFailed(
                f"Pi was not found as {self.command[0]!r}: install it, or set --pi or workers.command",
                permanent=True,
            )
        if not self.directory.is_dir():
            raise LaunchFailed("the project directory is gone", permanent=True)
        if self.session_file is not None and not os.path.isabs(self.session_file):
            raise LaunchFailed("a session is named by its absolute file only", permanent=True)

    def _program(self) -> str | None:
        return shutil.which(self.command[0], path=self.environment.get("PATH", os.defpath))


def spawn_failure(error: OSError) -> LaunchFailed:
    """Return what an exception of C{spawnProcess} means."""
    reason = os.strerror(error.errno) if error.errno else "unknown reason"
    return LaunchFailed(f"Pi cannot be started: {reason}", permanent=error.errno in _NEVER_WORKS)


def early_exit(code: int | None, words: str, stderr: str) -> LaunchFailed:
    """Return what an exit before Pi's first answer means.

    @param code: the exit code, None after a signal.
    @param stderr: the redacted tail of standard error.
    """
    line = _reason(stderr)
    said = f": {line}" if line else ""
    if code == launcher.FAILED or code == 126:
        return LaunchFailed(f"Pi cannot be started{said}", permanent=True)
    if code == 1 and line:
        return LaunchFailed(f"Pi refuses to start{said}", permanent=line.startswith("Error:"))
    return LaunchFailed(f"Pi ended while it started ({words}){said}")


def _reason(stderr: str) -> str:
    """The line that says most: Pi's own error, ours, or the last one."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    for line in lines:
        if line.startswith("Error:"):
            return line[:300]
    return lines[-1][:300] if lines else ""
