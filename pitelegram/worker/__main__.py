"""C{python -m pitelegram.worker}: one worker process."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pitelegram.kernel.lean import begin_start, forbid_tls

LEVELS = ("debug", "info", "warn", "error", "critical")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line (C{docs/worker.md})."""
    result = argparse.ArgumentParser(prog="python -m pitelegram.worker")
    commands = result.add_subparsers(dest="kind", required=True)
    managed = commands.add_parser("managed", help="a worker that the daemon starts")
    for name in ("--profile", "--spec-id", "--spawn-id", "--name", "--directory", "--pi"):
        managed.add_argument(name, required=True)
    managed.add_argument("--agent-dir", required=True, type=Path)
    managed.add_argument("--session", help="absolute path of the session file to resume")
    managed.add_argument("--fresh", action="store_true", help="begin a new session")
    managed.add_argument("--root", action="append", default=[], help="where sessions may work")
    managed.add_argument("--log-level", default="info", choices=LEVELS)
    managed.add_argument("--pi-umask", type=lambda text: int(text, 8), help="octal umask of Pi")
    return result


def main(arguments: Sequence[str]) -> int:
    """Run the worker and return its exit code."""
    options = parser().parse_args(arguments)
    previous = os.umask(0o077)
    if options.pi_umask is None:
        options.pi_umask = previous  # the operator's own mask is right for his project
    if os.getpgid(0) != os.getpid() or os.getsid(0) != os.getpid():
        _leave_session()
    forbid_tls()
    begin_start()
    from pitelegram.worker.managed import run

    return run(options)


def _leave_session() -> None:
    """Become the leader of a session, so that no signal to a terminal's group arrives here."""
    try:
        os.setsid()
    except PermissionError:
        # A group leader cannot; whoever made it one has given it a group of its own.
        return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
