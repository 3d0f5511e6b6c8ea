"""C{pi-telegram run}: the daemon in this process, as C{twistd -n pi-telegram} runs it."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from pitelegram.commands import table
from pitelegram.kernel import lean


def run(args: argparse.Namespace) -> int:
    """Run until stopped; the exit code is that of the contract."""
    lean.forbid_second_openssl()
    lean.begin_start()
    from pitelegram.commands.leading import want_daemon

    resolved = resolve(args)
    assembly = importlib.import_module("pitelegram.assembly")
    assembly.check_before_start(resolved)
    want_daemon(resolved, only_first=True)
    stream = _stream(args, resolved)
    return run_service(lambda: assembly.make_daemon(resolved), resolved["log_level"], stream)


def option_words(args: argparse.Namespace) -> list[str]:
    """Return the daemon's options among parsed arguments, as words of a command line."""
    words: list[str] = []
    for option in table.SINGLE:
        value = getattr(args, option.name.replace("-", "_"), None)
        if value is not None:
            words += [f"--{option.name}={value}"]
    for root in getattr(args, "root", None) or ():
        words += [f"--root={root}"]
    return words


def resolve(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options after precedence; a mistake ends the process with exit code 2."""
    from pitelegram.tap import Options

    options = Options()
    options.parseOptions(option_words(args))
    return options.resolved()


def run_service(make: Callable[[], Any], log_level: str, stream: TextIO) -> int:
    """Run a service under twistd's runner in this process; returns its exit code.

    @param make: builds the service, before the log begins and the reactor runs.
    @param stream: where the redacted log goes.
    """
    from twisted.application.service import Application
    from twisted.logger import ILogObserver
    from twisted.scripts.twistd import ServerOptions, _SomeApplicationRunner

    from pitelegram.kernel.logs import ConsoleObserver, at_level

    observer = at_level(ConsoleObserver(stream), log_level)
    made: list[Any] = []

    class Runner(_SomeApplicationRunner):  # type: ignore[misc, valid-type]
        """Runs our service instead of a plugin's."""

        def createOrGetApplication(self) -> Any:
            """Build the application."""
            application = Application("pi-telegram")
            application.setComponent(ILogObserver, observer)
            made.append(make())
            made[0].setServiceParent(application)
            lean.end_start()
            return application

    config = ServerOptions()
    config.parseOptions(["--nodaemon", "--pidfile=", "--no_save"])
    Runner(config).run()
    return int(getattr(made[0], "exit_code", 0) or 0)


def _stream(args: argparse.Namespace, resolved: Mapping[str, Any]) -> Any:
    """Standard output, or the private log file that C{start} named."""
    name = getattr(args, "log_file", None)
    if name is None:
        return sys.stdout
    return PrivateLog(Path(name))


class PrivateLog:
    """A private text file that is renamed to C{<name>.1} when it has grown to 5 MiB."""

    LIMIT = 5 * 1024 * 1024

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, text: str) -> None:
        """Append."""
        from pitelegram.kernel.files import open_private

        fd = open_private(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            os.write(fd, text.encode("utf-8", "replace"))
            full = os.fstat(fd).st_size > self.LIMIT
        finally:
            os.close(fd)
        if full:
            os.replace(self._path, self._path.with_name(self._path.name + ".1"))

    def flush(self) -> None:
        """Nothing is kept back."""
