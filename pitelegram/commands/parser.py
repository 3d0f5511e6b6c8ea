"""The command line of C{pi-telegram}.  Kept free of slow imports: C{--help} must be quick."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from pitelegram import __version__
from pitelegram.commands import table

GREETING = """\
Runs many Pi coding agents from a phone, through one Telegram bot.

first steps:
  pi-telegram demo             see it work: a local Telegram in your browser, no account needed
  pi-telegram setup            give it your bot's token (from @BotFather) and pair your account
  pi-telegram start            start the daemon in the background (run: in the foreground)
  pi-telegram workers start .  start a worker in a directory; then write to it in Telegram
"""

EXIT_CODES = """\
exit codes: 0 done; 1 refused or failed; 2 usage error, or a change whose fate is unknown;
starting the daemon: 3 not configured, 4 another live process owns the bot, 5 ownership or token
lost while running
"""


_SESSION = re.compile(r"--.*--/[^/]+\.jsonl", re.DOTALL)
"""How Pi names session files below its sessions directory: every project's begins like an option."""


class _Parser(argparse.ArgumentParser):
    """A parser whose mistakes say where help is."""

    def error(self, message: str) -> NoReturn:
        """Exit with code 2."""
        self.exit(2, f"{self.prog}: {message}\nTry: {self.prog} --help\n")


def in_order(argv: Sequence[str]) -> list[str]:
    """Return the words with session files behind C{--}, so that none is taken for an option."""
    sessions = [word for word in argv if _SESSION.fullmatch(word)]
    if not sessions or "--" in argv:
        return list(argv)
    return [*(word for word in argv if word not in sessions), "--", *sessions]


def _parser(*args: Any, **kwargs: Any) -> _Parser:
    kwargs.setdefault("allow_abbrev", False)
    kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
    return _Parser(*args, **kwargs)


def _add(parser: argparse.ArgumentParser, option: table.Option) -> None:
    parser.add_argument(
        f"--{option.name}",
        dest=option.name.replace("-", "_"),
        metavar=option.metavar,
        default=argparse.SUPPRESS,
        help=option.help,
    )


def _place_options() -> argparse.ArgumentParser:
    parent = _parser(add_help=False)
    for option in (table.AGENT_DIR, table.PROFILE, table.CONTROL_SOCKET):
        _add(parent, option)
    return parent


def _run_options() -> argparse.ArgumentParser:
    parent = _parser(add_help=False)
    for option in table.SINGLE:
        _add(parent, option)
    parent.add_argument(
        "--root",
        dest="root",
        metavar=table.ROOT.metavar,
        action="append",
        default=argparse.SUPPRESS,
        help=table.ROOT.help,
    )
    return parent


class _Commands:
    """Adds sub-commands that share parents and name their handler as C{module:function}."""

    def __init__(self, parser: argparse.ArgumentParser, parents: list[Any]) -> None:
        self._adding = parser.add_subparsers(
            metavar="COMMAND", title="commands", parser_class=_Parser
        )
        self._parents = parents

    def add(
        self, name: str, handler: str, help: str, parents: list[Any] | None = None
    ) -> argparse.ArgumentParser:
        """Add one command."""
        parser = self._adding.add_parser(
            name,
            help=help,
            description=help[0].upper() + help[1:] + ".",
            parents=self._parents if parents is None else parents,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.set_defaults(handler=f"pitelegram.commands.{handler}", parser=parser)
        _add_version(parser)
        return parser


def _add_version(parser: argparse.ArgumentParser) -> None:
    words = f"pi-telegram {__version__}"
    parser.add_argument(
        "--version", action="version", version=words, help="show the version and exit"
    )


def build() -> argparse.ArgumentParser:
    """Return the whole parser; parsed arguments carry C{handler}."""
    place = _place_options()
    parser = _parser("pi-telegram", description=GREETING, epilog=EXIT_CODES, parents=[place])
    parser.set_defaults(handler="pitelegram.commands.usage:show", parser=parser)
    _add_version(parser)
    commands = _Commands(parser, [place])
    _daemon_commands(commands)
    _worker_commands(commands, place)
    _outbox_commands(commands, place)
    _threads_commands(commands, place)
    _service_commands(commands)
    command = commands.add("command", "raw:command", "send one raw control command")
    command.add_argument(
        "--stdin", action="store_true", required=True, help="read the request (schema v1) there"
    )
    return parser


def _service_commands(commands: _Commands) -> None:
    parser = commands.add(
        "service", "usage:show_and_fail", "run the daemon as a service of this user"
    )
    services = _Commands(parser, [_place_options()])
    run = [_run_options()]
    services.add("install", "service:install", "write the unit, load it and start it", run)
    services.add("uninstall", "service:uninstall", "stop and remove it; workers go on running")
    status = services.add("status", "service:status", "show whether it is there and runs")
    status.add_argument("--json", action="store_true", help="print JSON")


def _daemon_commands(commands: _Commands) -> None:
    run = [_run_options()]
    setup = commands.add("setup", "setup:setup", "store a bot token and pair your account")
    setup.add_argument("--token-stdin", action="store_true", help="read the token from stdin")
    setup.add_argument("--user-id", metavar="ID", help="the owner's Telegram id: no code is needed")
    setup.add_argument("--new-owner", action="store_true", help="pair another owner than before")
    setup.add_argument(
        "--first-contact",
        action="store_true",
        help="let the first private message pair (unsafe: whoever writes first owns your shell)",
    )
    for option in table.SINGLE:
        if option.name in ("api-root", "proxy", "network-family"):
            _add(setup, option)
    foreground = commands.add("run", "foreground:run", "run the daemon in the foreground", run)
    foreground.add_argument("--log-file", metavar="PATH", help=argparse.SUPPRESS)
    commands.add("start", "background:start", "start the daemon in the background", run)
    stop = commands.add("stop", "background:stop", "stop the daemon; workers keep running")
    stop.add_argument("--workers", action="store_true", help="stop the workers too")
    commands.add("restart", "background:restart", "stop and start; workers keep running", run)
    status = commands.add("status", "status:status", "show how the daemon is")
    status.add_argument("--json", action="store_true", help="the public status document")
    logs = commands.add("logs", "logs:logs", "show redacted events")
    logs.add_argument("-f", "--follow", action="store_true", help="go on with new ones")
    logs.add_argument("--worker", metavar="NAME", help="events of this worker only")
    logs.add_argument("-n", "--lines", type=int, default=50, metavar="N", help="how many (50)")
    logs.add_argument("--json", action="store_true", help="one JSON object per line")
    doctor = commands.add("doctor", "doctor:doctor", "check everything and name the cures", run)
    doctor.add_argument("--report", action="store_true", help="safe to paste in public")
    sandbox = commands.add("sandbox", "local:sandbox", "run the local Telegram alone", [])
    demo = commands.add(
        "demo", "local:demo", "local Telegram, scripted model and daemon, all throw-away", run
    )
    for each in (sandbox, demo):
        each.add_argument("--port", type=int, default=0, metavar="N", help="of the page (any)")


def _changing() -> argparse.ArgumentParser:
    parent = _parser(add_help=False)
    parent.add_argument("--request-id", metavar="ID", help="done at most once under this id")
    parent.add_argument("--dry-run", action="store_true", help="check the form only, do nothing")
    parent.add_argument("--json", action="store_true", help="print the envelope")
    return parent


def _worker_commands(commands: _Commands, place: argparse.ArgumentParser) -> None:
    parser = commands.add("workers", "usage:show_and_fail", "list, start, stop and use workers")
    workers = _Commands(parser, [place])
    change = [place, _changing()]
    listing = workers.add("list", "workers:show", "list the workers")
    listing.add_argument("--json", action="store_true", help="as JSON")
    listing.add_argument(
        "--private", action="store_true", help="with directories, processes and session files"
    )
    start = workers.add("start", "workers:start", "start a worker in a directory", change)
    start.add_argument("directory", metavar="DIR")
    start.add_argument("--no-wait", action="store_true", help="do not wait until it is ready")
    for name, action, help in (
        ("stop", "stop", "stop a worker; what it still holds runs at its next start"),
        ("restart", "restart", "stop and start a worker, in its session"),
        (
            "forget",
            "forget",
            "forget a stopped worker: its slot is free, what waits in its inbox is gone",
        ),
        ("abort", "abort", "end the current run; the queue goes on"),
        ("clear-queue", "clear_queue", "drop what waits for its turn"),
        ("new-session", "new_session", "begin a new session"),
    ):
        each = workers.add(name, "workers:change", help, change)
        each.add_argument("name", metavar="NAME")
        each.set_defaults(action=f"worker.{action}", takes={})
    for name, values, help in (
        ("prompt", {"text": "TEXT"}, "give a prompt (TEXT may be - for stdin)"),
        ("steer", {"text": "TEXT"}, "give a message that overtakes the queue"),
        ("switch-session", {"session_ref": "SESSION"}, "go on in another session file"),
        ("set-model", {"model": "PROVIDER/MODEL"}, "choose the model"),
        ("set-thinking", {"level": "LEVEL"}, "choose the thinking level"),
    ):
        each = workers.add(name, "workers:change", help, change)
        each.add_argument("name", metavar="NAME")
        for key, metavar in values.items():
            each.add_argument(key, metavar=metavar)
        action = "set_thinking_level" if name == "set-thinking" else name.replace("-", "_")
        each.set_defaults(action=f"worker.{action}", takes=values)
    compact = workers.add("compact", "workers:change", "compact the session", change)
    compact.add_argument("name", metavar="NAME")
    compact.add_argument("--instructions", metavar="TEXT", help="what to keep")
    compact.set_defaults(action="worker.compact", takes={"instructions": "TEXT"})
    _answer_command(workers, change)
    state = workers.add("state", "workers:state", "show what a worker's Pi is doing")
    state.add_argument("name", metavar="NAME")
    state.add_argument("--json", action="store_true", help="print the envelope")


def _answer_command(workers: _Commands, change: list[Any]) -> None:
    answer = workers.add("answer", "workers:answer", "answer an open dialog", change)
    answer.add_argument("name", metavar="NAME")
    answer.add_argument("dialog_ref", metavar="DIALOG", help="its dialogRef in workers state")
    one = answer.add_mutually_exclusive_group(required=True)
    one.add_argument("--option", metavar="N", help="the option, by its number from 0 or its text")
    one.add_argument("--text", metavar="TEXT", help="a text")
    one.add_argument("--confirm", choices=("yes", "no"), help="yes or no")
    one.add_argument("--cancel", action="store_true", help="no answer")


def _threads_commands(commands: _Commands, place: argparse.ArgumentParser) -> None:
    parser = commands.add("threads", "usage:show_and_fail", "Threads, and those that nobody uses")
    threads = _Commands(parser, [place])
    listing = threads.add("list", "threads:show", "list the workers' Threads")
    listing.add_argument("--json", action="store_true", help="as JSON")
    both = [place, _changing()]
    threads.add("review", "threads:review", "find inactive Threads; nothing is deleted", both)
    words = "delete what the newest review found"
    threads.add("delete-reviewed", "threads:delete_reviewed", words, both)


def _outbox_commands(commands: _Commands, place: argparse.ArgumentParser) -> None:
    parser = commands.add("outbox", "usage:show_and_fail", "answers that did not arrive")
    outbox = _Commands(parser, [place])
    inspect = outbox.add("inspect", "outbox:inspect", "list parked and dead deliveries")
    inspect.add_argument("--json", action="store_true", help="as JSON")
    retry = outbox.add("retry", "outbox:retry", "deliver one again", [place, _changing()])
    retry.add_argument("key", metavar="KEY")
