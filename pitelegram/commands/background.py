"""C{pi-telegram start}, C{stop} and C{restart}: the daemon in the background.

The daemon is a child in a session of its own, so it survives this process and its terminal; being
its parent, this process sees both its readiness and its exit code.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pitelegram.commands import output, table
from pitelegram.commands.asking import client_of
from pitelegram.commands.client import ControlClient, FateUnknown, Unreachable
from pitelegram.commands.place import command_line, live_owner, paths_of
from pitelegram.errors import LiveOwner
from pitelegram.kernel.exits import EXIT_FAILED
from pitelegram.kernel.paths import Paths

READY_SECONDS = 60.0

STOP_SECONDS = 60.0

BOOT = (
    "import sys; sys.path[:] = [p for p in sys.path if p];"
    " from pitelegram.cli import main; sys.exit(main())"
)
"""Without the current directory on the import path: a project's own modules must not run."""


_MARKS = frozenset(
    (
        *("PI_TELEGRAM_DAEMON_WORKER", "PI_TELEGRAM_FOLLOWER_OWNER_ID"),
        *("PI_SESSION_ID", "PI_SESSION_FILE", "PI_PROVIDER", "PI_MODEL", "PI_REASONING_LEVEL"),
    )
)


def start(args: argparse.Namespace) -> int:
    """Start the daemon and wait until it is ready, or say why it is not."""
    from pitelegram.commands.foreground import resolve
    from pitelegram.commands.leading import want_daemon

    resolved = resolve(args)
    try:
        _check(resolved)
    except LiveOwner:
        _name_service(Paths(resolved["agent_dir"], resolved["profile"]))
        raise
    want_daemon(resolved, only_first=False)
    return Starting(resolved, stop=command_line(args, "stop")).run()


def _name_service(paths: Paths) -> None:
    """Say that the daemon that is there is the service, when it is."""
    from pitelegram.commands.service import active_service

    manager = active_service(paths)
    if manager is not None:
        output.complain(
            f"the daemon runs as a service already ({manager.name}); see: pi-telegram service status"
        )


def _check(resolved: Mapping[str, Any]) -> None:
    from pitelegram import assembly

    assembly.check_before_start(resolved)


class Starting:
    """One start: makes the process and waits for its word.

    @param resolved: the options after precedence.
    @param seconds: how long to wait.
    @param program: what takes C{run} and its options.
    @param stop: the command that stops this daemon.
    """

    def __init__(
        self,
        resolved: Mapping[str, Any],
        seconds: float = READY_SECONDS,
        program: Sequence[str] = (sys.executable, "-c", BOOT),
        stop: str = "pi-telegram stop",
    ) -> None:
        self._resolved = resolved
        self._seconds = seconds
        self._program = program
        self._stop = stop
        self._paths = Paths(resolved["agent_dir"], resolved["profile"])

    def run(self) -> int:
        """Start and wait; returns the exit code."""
        from pitelegram.kernel.files import ensure_private_dir

        ensure_private_dir(self._paths.runtime)
        log = log_path(self._paths)
        with tempfile.TemporaryDirectory(prefix="pi-telegram-") as directory:
            address = os.path.join(directory, "ready")
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
                ready.bind(address)
                begun = _size(log)
                child = self._spawn(log, address)
                code = self._wait(child, ready)
        if code == 0:
            self._note_pid(child.pid)
            print(f"The daemon runs (pid {child.pid}). Stop it with: {self._stop}")
        elif child.poll() is not None:
            _show_reason(log, begun, code)
        return code

    def _spawn(self, log: Path, address: str) -> subprocess.Popen[bytes]:
        from pitelegram.kernel.files import open_private

        environ = {**_unmarked(os.environ), "NOTIFY_SOCKET": address}
        if self._resolved["proxy"]:
            environ["PI_TELEGRAM_PROXY"] = self._resolved["proxy"]  # may hold a password: no argv
        out = open_private(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            return subprocess.Popen(
                [*self._program, "run", f"--log-file={log}", *self._words()],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd="/",
                env=environ,
                start_new_session=True,
            )
        finally:
            os.close(out)

    def _words(self) -> list[str]:
        words = [f"--root={root}" for root in self._resolved["root"]]
        for option in table.SINGLE:
            value = self._resolved[option.name.replace("-", "_")]
            if value is not None and option.name != "proxy":
                words.append(f"--{option.name}={value}")
        return words

    def _wait(self, child: subprocess.Popen[bytes], ready: socket.socket) -> int:
        until = time.monotonic() + self._seconds
        ready.settimeout(0.1)
        while time.monotonic() < until:
            try:
                if b"READY=1" in ready.recv(4096).split(b"\n"):
                    return 0
            except TimeoutError:
                code = child.poll()
                if code is not None:
                    return code if code > 0 else EXIT_FAILED
        output.complain(
            f"the daemon (pid {child.pid}) is still starting; see pi-telegram status and logs"
        )
        return EXIT_FAILED

    def _note_pid(self, pid: int) -> None:
        from pitelegram.kernel.files import write_private

        write_private(self._paths.daemon_pid, f"{pid}\n".encode(), durable=False)


def stop(args: argparse.Namespace) -> int:
    """Stop the daemon; with C{--workers} its workers first."""
    paths = paths_of(args)
    if args.workers:
        code = _stop_workers(client_of(args))
        if code != 0:
            return code
        return stop_daemon(paths, rest="")
    return stop_daemon(paths)


def stop_daemon(
    paths: Paths, seconds: float = STOP_SECONDS, rest: str = "; running workers go on without it"
) -> int:
    """Ask a live daemon to end and wait until it has; returns the exit code.

    @param rest: what is said about its workers once it has ended.
    """
    from pitelegram.kernel.birth import is_alive
    from pitelegram.kernel.proctree import signal_exact

    owner = live_owner(paths)
    if owner is None:
        print(f"No daemon runs for profile {paths.profile}.")
        return 0
    if owner.role != "daemon" or owner.birth is None:
        output.complain(f"a terminal's worker (pid {owner.pid}) leads; stop it in its terminal")
        return EXIT_FAILED
    signal_exact(owner.birth, signal.SIGTERM)
    until = time.monotonic() + seconds
    while is_alive(owner.birth):
        if time.monotonic() > until:
            output.complain(f"the daemon (pid {owner.pid}) does not end; its log has the reason")
            return EXIT_FAILED
        time.sleep(0.05)
    paths.daemon_pid.unlink(missing_ok=True)
    print(f"The daemon has stopped{rest}.")
    return 0


def restart(args: argparse.Namespace) -> int:
    """Stop, then start with the options given now; a service is left to its manager.

    A service that was stopped and started from here would run on without its manager.
    """
    from pitelegram.commands.foreground import option_words, resolve
    from pitelegram.commands.service import active_service

    resolve(args)  # a mistake must not stop what runs
    paths = paths_of(args)
    manager = active_service(paths)
    if manager is not None:
        if any(not word.startswith(("--agent-dir=", "--profile=")) for word in option_words(args)):
            output.complain("the daemon runs as a service; give it options by service install")
            return EXIT_FAILED
        manager.restart(paths.profile)
        print(f"The service has been restarted ({manager.name}); workers go on.")
        return 0
    code = stop_daemon(paths)
    return code if code != 0 else start(args)


def _stop_workers(client: ControlClient) -> int:
    try:
        workers = client.get("/v1/workers").get("workers") or []
    except Unreachable as error:
        output.complain(f"the workers cannot be stopped: {error}{error.hint}")
        return EXIT_FAILED
    names = [str(worker["name"]) for worker in workers if worker.get("state") != "stopped"]
    if not names:
        return 0
    with ThreadPoolExecutor(max_workers=8) as pool:
        problems = [
            problem for problem in pool.map(lambda n: _stop_one(client, n), names) if problem
        ]
    for problem in problems:
        output.complain(problem)
    if problems:
        output.complain("the daemon was left running")
        return EXIT_FAILED
    print(f"Stopped: {', '.join(names)}.")
    return 0


def _stop_one(client: ControlClient, name: str) -> str | None:
    """Stop one worker; returns what went wrong, or None."""
    import json
    import uuid

    request_id = f"cli-{uuid.uuid4().hex}"
    value = {
        "schema_version": 1,
        "action": "worker.stop",
        "request_id": request_id,
        "target": {"name": name},
    }
    try:
        envelope = client.command(json.dumps(value).encode(), "worker.stop", request_id)
    except (Unreachable, FateUnknown) as error:
        return f"worker {name}: {error}"
    return None if envelope["ok"] else f"worker {name}: {envelope['error']['message']}"


def _unmarked(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what marks a worker's processes or names a Pi's session.

    This may run in a worker's own shell; a daemon with its mark would be ended with it.
    """
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith("PI_TELEGRAM_WORKER_") and name not in _MARKS
    }


def log_path(paths: Paths) -> Path:
    return paths.daemon_pid.with_suffix(".log")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _show_reason(log: Path, begun: int, code: int) -> None:
    """Show what the daemon said last before it ended."""
    with open(log, "rb") as file:
        file.seek(begun if _size(log) >= begun else 0)
        lines = file.read()[-65536:].decode("utf-8", "replace").splitlines()
    said = [line for line in lines if line.strip()]
    ours = [line for line in said if line.startswith("pi-telegram: ")]
    for line in ours[-3:] or said[-10:]:
        print(line, file=sys.stderr)
    output.complain(f"the daemon did not start (exit code {code}); its log: {log}")
