"""C{pi-telegram status}."""

from __future__ import annotations

import argparse
import time
from typing import Any

from pitelegram.commands import output
from pitelegram.commands.asking import client_of
from pitelegram.commands.client import Unreachable
from pitelegram.commands.place import command_line, live_owner, paths_of
from pitelegram.control import outward
from pitelegram.errors import PiTelegramError
from pitelegram.kernel.exits import EXIT_FAILED
from pitelegram.kernel.paths import Paths


def status(args: argparse.Namespace) -> int:
    """Show the status document; without a daemon C{health} is C{down} and the exit code 1."""
    paths = paths_of(args)
    try:
        document, code = client_of(args).get("/v1/status"), 0
    except Unreachable as error:
        document, code = without_daemon(args, paths, str(error)), EXIT_FAILED
    if args.json:
        output.print_json(document, outward.status)
    else:
        _show(document)
    return code


def without_daemon(args: argparse.Namespace, paths: Paths, problem: str) -> dict[str, Any]:
    """Return the document that says why nobody answers."""
    from pitelegram.control.status import down

    return down(paths.profile, int(time.time() * 1000), _reason(args, paths, problem))


def _reason(args: argparse.Namespace, paths: Paths, problem: str) -> str:
    try:
        owner = live_owner(paths)
    except PiTelegramError as error:
        return str(error)
    if owner is None:
        cure = command_line(args, "start")
        return f"no daemon runs for profile {paths.profile}; start it with: {cure}"
    return f"a {owner.shown_role} (pid {owner.pid}) owns this bot profile, but {problem}"


def _show(document: dict[str, Any]) -> None:
    health = str(document.get("health"))
    print(f"health    {output.coloured(health, output.WORDS.get(health))}")
    print(f"profile   {output.shown(document.get('profile'))}")
    daemon = document.get("daemon")
    if isinstance(daemon, dict):
        _show_daemon(document, daemon)
    for problem in document.get("problems") or []:
        print(f"problem   {output.shown(problem)}")
    workers = document.get("workers") or []
    if workers:
        print()
        keys = ("name", "state", "activity", "queued", "restarts", "slot")
        output.print_table(
            ["WORKER", "STATE", "ACTIVITY", "QUEUED", "RESTARTS", "THREAD"],
            [[worker.get(key) for key in keys] for worker in workers],
        )


def _show_daemon(document: dict[str, Any], daemon: dict[str, Any]) -> None:
    bot, polling = document.get("bot") or {}, document.get("polling") or {}
    print(f"daemon    pid {output.shown(daemon.get('pid'))}, {_age(daemon.get('started_at_ms'))}")
    threads = output.shown(bot.get("thread_mode"))
    paired = "paired" if bot.get("paired") else "not paired"
    print(f"bot       @{output.shown(bot.get('username'))}, threads {threads}, {paired}")
    receiving = "receiving" if polling.get("receiving") else "NOT receiving"
    print(f"polling   {output.shown(polling.get('phase'))}, {receiving}")
    stored = document.get("storage_pressure") or {}
    if stored:
        slow = (stored.get("commits") or {}).get("p99_us", 0) / 1000
        room = output.shown(stored.get("disk"))
        size = stored.get("database_bytes", 0) // 1024
        print(f"store     {size} KiB, disk {room}, commits within {slow:.1f} ms")
    for part in ("journal", "outbox"):
        counts = document.get(part) or {}
        print(f"{part:<9} " + ", ".join(f"{key} {value}" for key, value in counts.items()))


def _age(at_ms: object) -> str:
    if not isinstance(at_ms, int):
        return "up"
    seconds = max(0, int(time.time()) - at_ms // 1000)
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    return f"up {days}d {hours}h {minutes}m" if days else f"up {hours}h {minutes}m"
