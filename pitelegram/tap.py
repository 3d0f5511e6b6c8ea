"""C{twistd pi-telegram}: options, and the checks that must be over before twistd forks.

A refusal ends the process here, with its own exit code and one line on standard error: 2 usage or
configuration, 3 not configured, 4 another live process owns the bot.  Later it would be too late: the
parent of a daemonised process has reported success by then.
"""

from __future__ import annotations

import importlib
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Protocol

from twisted.application.service import IService
from twisted.python import usage

from pitelegram.commands import table
from pitelegram.commands.place import tell_recovered
from pitelegram.errors import PiTelegramError
from pitelegram.kernel.exits import EXIT_USAGE, exit_code
from pitelegram.settings.file import SettingsFile
from pitelegram.settings.options import RunOptions, resolve_options, resolve_paths


class Options(usage.Options):
    """The options of the daemon (contract, "Options").

    @ivar environ: the environment variables that stand behind the command line.
    """

    synopsis = "[options]"
    longdesc = (
        "Runs the daemon of one bot profile. Each option has an environment variable and most"
        " have a key in telegram.json; the command line is strongest, then the environment, then"
        " the file."
    )
    optParameters = [[option.name, None, None, option.help] for option in table.SINGLE]
    compData = usage.Completions(
        optActions={
            "agent-dir": usage.CompleteDirs(),
            "root": usage.CompleteDirs(),
            "network-family": usage.CompleteList(["auto", "ipv4", "ipv6"]),
        }
    )

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.environ = os.environ if environ is None else environ
        self["root"] = []

    def opt_root(self, directory: str) -> None:
        """Take one more."""
        self["root"].append(directory)

    opt_root.__doc__ = table.ROOT.help

    def parseOptions(self, options: Sequence[str] | None = None) -> None:
        """Parse and check; a mistake ends the process with exit code 2."""
        try:
            super().parseOptions(None if options is None else list(options))
        except usage.UsageError as error:
            refuse(f"{error}; pi-telegram run --help lists the options", EXIT_USAGE)

    def parseArgs(self, *args: str) -> None:
        """Refuse arguments that are not options."""
        if args:
            raise usage.UsageError(f"unexpected argument {args[0]!r}")

    def postOptions(self) -> None:
        """Check every value, those of the environment and of C{telegram.json} included."""
        try:
            self.run_options()
        except PiTelegramError as error:
            refuse(str(error), exit_code(error))

    def run_options(self) -> RunOptions:
        """Return the options after precedence.

        @raise pitelegram.errors.ConfigError: a value is malformed.
        """
        paths = resolve_paths(self, self.environ)
        settings = SettingsFile(paths, self.environ).load(with_token=False)
        tell_recovered(settings)
        return resolve_options(self, self.environ, settings)

    def resolved(self) -> dict[str, Any]:
        """Return what the assembly gets: the contract's names with underscores.

        Each value is the winner after precedence, written as on the command line and with absolute
        paths, so resolving it again changes nothing.  C{root} is a list; what is not set is None.
        """
        paths = resolve_paths(self, self.environ)
        run = self.run_options()
        socket = run.control_socket
        return {
            "agent_dir": str(paths.agent_dir),
            "profile": paths.profile,
            "api_root": run.api_root,
            "pi": shlex.join((_absolute_program(run.pi_command[0]), *run.pi_command[1:])),
            "root": [str(root) for root in run.roots],
            "proxy": run.proxy,
            "network_family": run.network_family,
            "control_socket": None if socket is None else str(socket),
            "socket_group": run.socket_group,
            "log_level": run.log_level,
        }


def _absolute_program(word: str) -> str:
    """Return a program named by a relative path as an absolute one; a bare name is left to PATH."""
    return os.path.abspath(os.path.expanduser(word)) if os.sep in word else word


class IAssembly(Protocol):
    """What is used of L{pitelegram.assembly}."""

    def check_before_start(self, options: Mapping[str, Any]) -> None:
        """Raise what forbids a start; read-only."""

    def make_daemon(self, options: Mapping[str, Any]) -> IService:
        """Build the daemon; opens nothing."""


def makeService(options: Options, assembly: IAssembly | None = None) -> IService:
    """Return the daemon as a service.  Opens nothing and changes nothing; see the module."""
    if assembly is None:
        assembly = importlib.import_module("pitelegram.assembly")  # type: ignore[assignment]
    try:
        resolved = options.resolved()
        assembly.check_before_start(resolved)
        return assembly.make_daemon(resolved)
    except PiTelegramError as error:
        refuse(str(error), exit_code(error))


def refuse(message: str, code: int) -> NoReturn:
    """Print one line to standard error and end the process."""
    print(f"pi-telegram: {message}", file=sys.stderr)
    raise SystemExit(code)
