"""C{pi-telegram doctor}: looks at everything, changes nothing, and names the cures."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pitelegram.commands import output
from pitelegram.commands.client import ControlClient, Unreachable
from pitelegram.commands.finding import Finding
from pitelegram.commands.ground import disk, memory
from pitelegram.commands.place import command_line, control_socket, given, live_owner, paths_of
from pitelegram.errors import PiTelegramError, TelegramError, UnsafeFile
from pitelegram.kernel.exits import EXIT_FAILED
from pitelegram.kernel.paths import Paths
from pitelegram.settings.file import SettingsFile
from pitelegram.settings.model import Settings
from pitelegram.settings.options import RunOptions, resolve_options

NODE_MINIMUM = (22, 19)


def doctor(args: argparse.Namespace) -> int:
    """Print one line for each thing that was looked at; exit code 1 if any failed."""
    failed = False
    for finding in examine(args):
        failed = failed or finding.level == "fail"
        print(line(finding, public=args.report), flush=True)
    return EXIT_FAILED if failed else 0


def line(finding: Finding, public: bool) -> str:
    """Return a finding as one line; C{public} takes out what must not be pasted anywhere."""
    parts = [finding.text, finding.cure] if finding.cure else [finding.text]
    if public:
        from pitelegram.kernel.redact import redact_public

        parts = [redact_public(part) for part in parts]
    text = f"{finding.subject}: {' -> '.join(parts)}"
    colour = output.WORDS.get(finding.level)
    return f"{output.coloured(f'{finding.level:<5}', colour)} {output.shown(text)}"


def examine(args: argparse.Namespace) -> Iterator[Finding]:
    """Look at everything.  What is not private is not opened: opening would narrow it."""
    yield _versions()
    paths = paths_of(args)
    insecure = list(_insecure(paths))
    yield from insecure
    if not insecure:
        yield Finding("ok", "files", "private")
    yield from _from_settings(args, paths, {finding.text for finding in insecure})
    if not insecure:
        yield from _kept(paths)
    yield from _service(paths)
    yield disk(paths)
    yield memory()


def _service(paths: Paths) -> Iterator[Finding]:
    """Only where one is installed: nobody has to have one."""
    from pitelegram.commands.managers import ServiceRefused
    from pitelegram.commands.service import report_of

    try:
        report, hint = report_of(paths)
    except ServiceRefused as error:
        yield Finding("warn", "service", str(error), "see pi-telegram service status")
        return
    if not report["installed"]:
        return
    if report["active"] is None:
        yield Finding("warn", "service", "installed; its manager does not answer", hint or "")
    elif not report["active"]:
        yield Finding("warn", "service", "installed and not running", "pi-telegram service install")
    elif not report["up_to_date"]:
        words = "runs with paths or options of another time"
        yield Finding("warn", "service", words, "pi-telegram service install")
    elif hint is not None:
        yield Finding("warn", "service", "runs", hint)
    else:
        yield Finding("ok", "service", "runs")


def _kept(paths: Paths) -> Iterator[Finding]:
    """The store and the installation's key."""
    from pitelegram.commands.kept import key, store

    try:
        lives = live_owner(paths) is not None
    except PiTelegramError:
        lives = True  # then the store is only looked at from outside
    found, recorded = store(paths, lives)
    yield found
    yield key(paths, recorded)


def _from_settings(args: argparse.Namespace, paths: Paths, insecure: set[str]) -> Iterator[Finding]:
    if any(text.startswith("telegram.json") for text in insecure):
        yield Finding("warn", "configuration", "not read, because it is not private")
        return
    try:
        file = SettingsFile(paths, os.environ)
        file.document()  # invalid JSON is reported, not moved aside
        settings = file.load()
        options = resolve_options(given(args), os.environ, settings)
    except PiTelegramError as error:
        yield Finding("fail", "configuration", str(error), "repair telegram.json or the option")
        return
    yield from _configuration(settings)
    yield from _telegram(settings, options)
    yield _pi(options)
    yield _node(options)
    if not any(text.startswith("owners.json") for text in insecure):
        yield from _owner(paths)
        yield _daemon(args, paths)
    yield from _roots(options)


def _versions() -> Finding:
    import sqlite3

    import twisted
    from pitelegram import __version__

    text = (
        f"pi-telegram {__version__}, Python {platform.python_version()},"
        f" Twisted {twisted.__version__}, SQLite {sqlite3.sqlite_version}"
    )
    if sqlite3.sqlite_version_info < (3, 37):
        return Finding("fail", "versions", text, "SQLite 3.37 or newer is needed")
    return Finding("ok", "versions", text)


def _configuration(settings: Settings) -> Iterator[Finding]:
    for problem in settings.problems:
        yield Finding("warn", "configuration", problem, "correct it; its default is used")
    if not settings.problems:
        yield Finding("ok", "configuration", f"profile {settings.profile}")
    if settings.allowed_user_id is None:
        how = "first contact pairs" if settings.pairing_first_contact else "nobody is paired"
        yield Finding("warn", "owner", how, "pi-telegram setup shows a pairing code")
    else:
        yield Finding("ok", "owner", "paired")
    if settings.pairing_first_contact:
        cure = "set pairing.firstContact to false in telegram.json"
        yield Finding("warn", "pairing", "whoever writes first becomes the owner", cure)


def _telegram(settings: Settings, options: RunOptions) -> Iterator[Finding]:
    from pitelegram.commands.telegram import THREADS_ON, ask_telegram

    if settings.bot_token is None:
        problem = settings.token_problem
        cure = "" if "pi-telegram setup" in problem else "pi-telegram setup"
        yield Finding("fail", "token", problem, cure)
        return
    token = settings.bot_token.reveal()
    way = "through the proxy" if options.proxy else "directly"
    try:
        bot = ask_telegram(token, options.api_root, options.proxy, options.network_family)
    except TelegramError as error:
        if error.code in (401, 404):
            cure = "copy it again from @BotFather and run pi-telegram setup"
            yield Finding("fail", "token", "Telegram refuses it", cure)
        else:
            cure = "check network, --proxy, --network-family and --api-root"
            yield Finding("fail", "network", f"no answer {way}: {error.description}", cure)
        return
    yield Finding("ok", "network", f"the Bot API answers {way}")
    yield Finding("ok", "token", f"it is @{bot.username}'s")
    if bot.webhook:
        cure = "remove it where it was set, or with the Bot API method deleteWebhook"
        yield Finding("fail", "webhook", "one is set, so nothing can be received", cure)
    else:
        yield Finding("ok", "webhook", "none")
    if bot.threads:
        yield Finding("ok", "threads", "Threaded Mode is on")
    else:
        yield Finding("warn", "threads", "Threaded Mode is off: one worker at a time", THREADS_ON)


def _pi(options: RunOptions) -> Finding:
    from pitelegram.supervisor.version import MINIMUM, PACKAGE, is_another, read_version

    wanted = ".".join(map(str, MINIMUM))
    cure = f"install {PACKAGE} {wanted} or newer, or name it with --pi"
    program = shutil.which(options.pi_command[0])
    if program is None:
        return Finding("fail", "Pi", f"{options.pi_command[0]!r} was not found", cure)
    words = [os.path.abspath(program), *options.pi_command[1:]]
    said = _ask_version(words)
    if is_another(words, said):
        return Finding("fail", "Pi", "this is oh-my-pi, which cannot be used", cure)
    found = read_version(said)
    if found is None:
        return Finding("fail", "Pi", "it does not tell its version", cure)
    text = "version " + ".".join(map(str, found))
    return Finding("ok", "Pi", text) if found >= MINIMUM else Finding("fail", "Pi", text, cure)


def _node(options: RunOptions) -> Finding:
    if not _runs_on_path_node(shutil.which(options.pi_command[0])):
        return Finding("ok", "Node", "the one that the Pi command brings")
    from pitelegram.supervisor.version import read_version

    program = shutil.which("node")
    found = None if program is None else read_version(_ask_version([program]))
    if found is None:
        return Finding("fail", "Node", "none on PATH", "install Node 22.19 or newer")
    text = "version " + ".".join(map(str, found))
    if found < NODE_MINIMUM:
        return Finding("fail", "Node", text, "Pi needs Node 22.19 or newer")
    return Finding("ok", "Node", text)


def _runs_on_path_node(program: str | None) -> bool:
    """Whether a program is a script for the Node on PATH, as npm installs them."""
    if program is None:
        return True
    try:
        with open(program, "rb") as file:
            first = file.readline(200)
    except OSError:
        return True
    return first.startswith(b"#!") and b"env node" in first


def _ask_version(words: list[str]) -> str:
    """Return what a program says to C{--version}; nothing when it cannot be asked."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    try:
        done = subprocess.run(
            [*words, "--version"],
            cwd="/",
            env=kept,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout + done.stderr


def _owner(paths: Paths) -> Iterator[Finding]:
    from pitelegram.ownership.locks_json import refuse_foreign
    from pitelegram.ownership.owners import read_owner

    try:
        record = read_owner(paths.owners, paths.profile)
    except PiTelegramError as error:
        yield Finding("fail", "ownership", str(error), "see the message")
        return
    if record is None:
        yield Finding("ok", "ownership", "nobody owns this profile's transport")
    elif record.is_alive():
        yield Finding("ok", "ownership", f"a live {record.shown_role} (pid {record.pid}) owns it")
    else:
        text = f"the last owner (pid {record.pid}) ended without a word"
        yield Finding("ok", "ownership", text + "; the next start takes over")
    try:
        refuse_foreign(paths)
    except PiTelegramError as error:
        yield Finding("fail", "other bridges", str(error), "stop the other bridge")


def _daemon(args: argparse.Namespace, paths: Paths) -> Finding:
    client = ControlClient(control_socket(args, paths))
    try:
        status = client.get("/v1/status")
    except Unreachable as error:
        return Finding("warn", "daemon", str(error), command_line(args, "start"))
    health = str(status.get("health"))
    problems = "; ".join(str(problem) for problem in status.get("problems") or [])
    level = {"ok": "ok", "degraded": "warn"}.get(health, "fail")
    return Finding(level, "daemon", f"health {health}" + (f": {problems}" if problems else ""))


def _insecure(paths: Paths) -> Iterator[Finding]:
    from pitelegram.kernel.files import check_private_dir, check_private_file

    directories = (paths.runtime, paths.data, paths.workers, paths.spool, paths.downloads)
    files = (paths.owners, paths.database, paths.pairing, paths.logs)
    looks: list[tuple[Callable[[Path], Any], Path]] = [
        *((check_private_dir, path) for path in directories),
        *((check_private_file, path) for path in files),
    ]
    if not paths.telegram_json.is_symlink():
        looks.append((check_private_file, paths.telegram_json))
    for check, path in looks:
        try:
            check(path)
        except UnsafeFile as error:
            if error.code != "missing_entry":
                cure = f"look at {path}; a start narrows what is ours"
                yield Finding("fail", "files", f"{path.name}: {error}", cure)


def _roots(options: RunOptions) -> Iterator[Finding]:
    for root in options.roots:
        if not root.is_dir():
            yield Finding("warn", "roots", f"{root} is not a directory", "correct workers.roots")
