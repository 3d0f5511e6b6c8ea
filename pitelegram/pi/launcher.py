"""Become Pi: own session, the project as working directory, the program in this process's place.

Run by path as C{python -I -S launcher.py DIRECTORY UMASK PROGRAM ARGUMENT…}, so that nothing of the
project or of site-packages is imported.  The process id and the inherited descriptors stay.  It
imports nothing but what the interpreter has loaded anyway.
"""

import _signal  # type: ignore[import-not-found]
import os
import sys

FAILED = 127
"""Exit code when the program could not be run; the reason is on standard error."""

PREFIX = "cannot start: "
"""How the reason begins."""


def main(directory: str, umask: str, *command: str) -> None:
    """Replace this process; returns only by exception."""
    if umask:
        os.umask(int(umask, 8))
    os.setsid()
    # This interpreter ignores it, and PROGRAM would.
    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
    os.chdir(directory)
    os.execvp(command[0], command)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except OSError as error:
        sys.stderr.write(PREFIX + (error.strerror or "unknown reason") + "\n")
        sys.exit(FAILED)
