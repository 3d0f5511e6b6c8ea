"""C{pi-telegram service install|uninstall|status}: the daemon as a service of this user."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pitelegram.commands import output
from pitelegram.commands.background import BOOT, log_path
from pitelegram.commands.managers import (
    Manager,
    ServiceRefused,
    found,
    manager_for,
    run_program,
)
from pitelegram.commands.units import KEPT, Program, is_ours
from pitelegram.kernel.exits import EXIT_FAILED
from pitelegram.kernel.files import ensure_private_dir
from pitelegram.kernel.paths import Paths

UNIT_MODE = 0o644
"""Units hold no secret, and their managers want to read them."""

GIVEN = ("api-root", "network-family", "control-socket", "socket-group", "log-level", "proxy")
"""Options that are captured when they stand on the command line of the installation."""

LEADER_FACT = "service-leader"
"""File in the data directory: C{cluster.leader} was set by the installation, and what it was before."""


def install(args: argparse.Namespace, platform: str = sys.platform) -> int:
    """Write the unit, load it, and say what it means."""
    from pitelegram.commands.foreground import resolve

    resolved = resolve(args)
    manager = _manager(platform)
    program = program_of(args, resolved, os.environ)
    profile = program.profile
    file, text = manager.file(profile), manager.text(program)
    before = _read_ours(manager, Paths(resolved["agent_dir"], profile))
    if before != text:
        _write(file, text)
        print(f"Wrote {file}")
    ours = _want_daemon(resolved)
    try:
        ensure_private_dir(program.log.parent)
        manager.load(profile, changed=before not in (None, text))
    except ServiceRefused:
        if ours:  # no daemon will come, so nobody should wait for one
            _give_leader_back(Paths(resolved["agent_dir"], profile))
        raise
    print(f"The daemon runs as a service ({manager.name}); see: pi-telegram service status")
    for hint in (manager.hint(manager.known(profile)), _token_hint(resolved)):
        if hint is not None:
            print(f"pi-telegram: {hint}", file=sys.stderr)
    return 0


def uninstall(args: argparse.Namespace, platform: str = sys.platform) -> int:
    """Stop and remove exactly our own unit; workers go on."""
    from pitelegram.commands.place import paths_of

    paths = paths_of(args)
    manager = _manager(platform)
    file = manager.file(paths.profile)
    if _read_ours(manager, paths) is None:
        print("There is no service of pi-telegram for this profile.")
        return 0
    manager.unload(paths.profile)
    file.unlink()
    manager.forget()
    print(f"Removed {file}; workers go on running")
    if not _serves_another_profile(manager, file.parent, paths):
        _give_leader_back(paths)
    return 0


def status(args: argparse.Namespace) -> int:
    """Say whether the service is there and runs."""
    from pitelegram.commands.place import paths_of

    report, hint = report_of(paths_of(args))
    if args.json:
        output.print_json({"schema_version": 1, **report}, lambda value: value)
    else:
        rows = [(name.replace("_", " "), _word(value)) for name, value in report.items()]
        output.print_table(("service", ""), rows)
        if hint is not None:
            print(hint)
    return 0 if report["active"] else EXIT_FAILED


def report_of(paths: Paths) -> tuple[dict[str, Any], str | None]:
    """Return how a profile's service is, and what the operator should do about it.

    @raise ServiceRefused: there is no manager here, or the unit is somebody else's.
    """
    manager = _manager()
    installed = _read_ours(manager, paths)
    known = manager.known(paths.profile)
    report: dict[str, Any] = {
        "manager": manager.name,
        "installed": installed is not None,
        "up_to_date": installed is not None and _is_fresh(manager, installed),
        "enabled": known.enabled,
        "active": known.active,
        "lingering": known.lingers,
    }
    return report, manager.hint(known)


def active_service(paths: Paths) -> Manager | None:
    """Return the manager under which the daemon of this place runs as our service, if it does."""
    try:
        manager = _manager()
        if _read_ours(manager, paths) is None:
            return None
    except ServiceRefused:
        return None
    return manager if manager.known(paths.profile).active else None


def program_of(
    args: argparse.Namespace, resolved: Mapping[str, Any], environ: Mapping[str, str]
) -> Program:
    """Return what the unit runs: this Python, this Pi, and the options that were given.

    Programs are named by their absolute paths and C{PATH} is captured, since a service manager has
    its own idea of it.  What stands in C{telegram.json} is left there, so that changing it counts.  A
    proxy's password stays out: such a proxy belongs into that file.

    @param resolved: the options after precedence.
    """
    paths = Paths(resolved["agent_dir"], resolved["profile"])
    pi = found(shlex.split(resolved["pi"]), environ.get("PATH"))
    words = [sys.executable, "-c", BOOT, "run"]
    words += [f"--agent-dir={paths.agent_dir}", f"--profile={paths.profile}"]
    words.append(f"--pi={shlex.join(pi)}")
    if getattr(args, "root", None):
        words += [f"--root={root}" for root in resolved["root"]]
    for name in GIVEN:
        value = resolved[name.replace("-", "_")]
        if hasattr(args, name.replace("-", "_")) and value and "@" not in str(value):
            words.append(f"--{name}={value}")
    kept = {name: environ[name] for name in KEPT if environ.get(name)}
    return Program(words=words, environment=kept, profile=paths.profile, log=log_path(paths))


def _is_fresh(manager: Manager, installed: bytes) -> bool:
    """Whether installing again with the same options would write the same."""
    from pitelegram.commands import parser
    from pitelegram.commands.foreground import resolve

    try:
        words = manager.words(installed)
        options = words[words.index("run") + 1 :]
    except ValueError:
        return False
    args = parser.build().parse_args(["service", "install", *options])
    return manager.text(program_of(args, resolve(args), os.environ)) == installed


def _token_hint(resolved: Mapping[str, Any]) -> str | None:
    """A variable that holds the token is not there for a service."""
    from pitelegram.settings.file import SettingsFile

    paths = Paths(resolved["agent_dir"], resolved["profile"])
    document = SettingsFile(paths, os.environ).document(with_tokens=True)
    profile = document.get("profiles", {}).get(paths.profile, {})
    if str(profile.get("botToken", "")).startswith("$"):
        return (
            "the bot token is in an environment variable, which a service does not get: put it into"
            " a file and name that as botTokenFile"
        )
    return None


def _manager(platform: str = sys.platform) -> Manager:
    return manager_for(platform, run_program, os.environ, Path.home())


def _read_ours(manager: Manager, paths: Paths) -> bytes | None:
    """Return our unit's text, None when there is none.

    @raise ServiceRefused: a file of that name is there that we did not write, or wrote for another
        agent directory.
    """
    file = manager.file(paths.profile)
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return None
    if file.is_symlink() or not is_ours(data):
        raise ServiceRefused(
            f"a unit called {file.name} is there that pi-telegram did not write; move it away first"
        )
    place = f"--agent-dir={paths.agent_dir}"
    try:
        words = manager.words(data)
    except ValueError:  # edited: it is replaced
        return data
    if place not in words:
        raise ServiceRefused(
            f"{file.name} is the service of another agent directory; name that one with"
            " --agent-dir, or use another profile here"
        )
    return data


def _write(file: Path, text: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, UNIT_MODE)
    with os.fdopen(fd, "wb") as opened:
        os.fchmod(fd, UNIT_MODE)
        opened.write(text)
        opened.flush()
        os.fsync(fd)
    os.replace(fresh, file)


def _want_daemon(resolved: Mapping[str, Any]) -> bool:
    """Set C{cluster.leader}, and remember what it was if it was not that already.

    @return: whether this installation set it.
    """
    from pitelegram.commands.leading import want_daemon
    from pitelegram.kernel.files import write_private
    from pitelegram.settings.file import SettingsFile

    paths = Paths(resolved["agent_dir"], resolved["profile"])
    cluster = SettingsFile(paths, os.environ).document().get("cluster")
    before = cluster.get("leader") if isinstance(cluster, dict) else None
    if before != "daemon":
        ensure_private_dir(paths.data)
        write_private(paths.data / LEADER_FACT, json.dumps({"before": before}).encode())
    want_daemon(resolved, only_first=False)
    return before != "daemon"


def _serves_another_profile(manager: Manager, directory: Path, paths: Paths) -> bool:
    """Whether another unit of ours is there for the same agent directory: its setting is the same."""
    for file in directory.glob("pi-telegram*"):
        try:
            text = file.read_bytes()
            if is_ours(text) and f"--agent-dir={paths.agent_dir}" in manager.words(text):
                return True
        except (OSError, ValueError):
            continue
    return False


def _give_leader_back(paths: Paths) -> None:
    """Take back exactly what the installation set; what was changed since stays."""
    from pitelegram.kernel.files import read_private
    from pitelegram.settings.file import SettingsFile

    fact = paths.data / LEADER_FACT
    stored = read_private(fact, narrow=False)
    if stored is None:
        return
    before = json.loads(stored).get("before")

    def mutate(document: dict[str, Any]) -> None:
        cluster = document.get("cluster")
        if not isinstance(cluster, dict) or cluster.get("leader") != "daemon":
            return
        if before is None:
            del cluster["leader"]
        else:
            cluster["leader"] = before
        if not cluster:
            del document["cluster"]

    if SettingsFile(paths, os.environ).update_blocking(mutate):
        print("pi-telegram: took cluster.leader back in telegram.json", file=sys.stderr)
    fact.unlink()


def _word(value: Any) -> str:
    return {True: "yes", False: "no", None: "-"}.get(value, str(value))
