"""C{pi-telegram workers …}."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from pitelegram.commands import output
from pitelegram.commands.asking import ask, client_of, report
from pitelegram.commands.asking import change as send_change
from pitelegram.commands.client import ControlClient, Unreachable
from pitelegram.control import outward
from pitelegram.kernel.exits import EXIT_FAILED, EXIT_USAGE

READY_SECONDS = 75.0
"""A start may take 60 s; then the daemon itself gives it up."""

_COLUMNS = (
    ("NAME", "name"),
    ("STATE", "state"),
    ("ACTIVITY", "activity"),
    ("QUEUED", "queued"),
    ("RESTARTS", "restarts"),
    ("THREAD", "slot"),
)
_PRIVATE_COLUMNS = (
    ("DIRECTORY", "directory"),
    ("PID", "pid"),
    ("PI", "pi_pid"),
    ("SESSION", "session_file"),
    ("LAST ERROR", "last_error"),
)

_DONE = {
    "worker.prompt": "taken; the answer comes in its Thread",
    "worker.steer": "taken; the answer comes in its Thread",
    "worker.restart": "done; it is starting",
}
"""What is said of changes whose effect is still to come."""


def show(args: argparse.Namespace) -> int:
    """C{workers list}."""
    document = client_of(args).get("/v1/workers" + ("?private=1" if args.private else ""))
    if args.json:
        output.print_json(document, lambda shown: outward.workers(shown, args.private))
        return 0
    workers = document.get("workers") or []
    if not workers:
        print("No workers yet. Start one with: pi-telegram workers start DIR")
        return 0
    columns = _COLUMNS + (_PRIVATE_COLUMNS if args.private else ())
    output.print_table(
        [title for title, _ in columns],
        [[worker.get(key) for _, key in columns] for worker in workers],
    )
    return 0


def start(args: argparse.Namespace) -> int:
    """C{workers start DIR}: accepted when the process exists, then waits until it is ready."""
    directory = os.path.abspath(os.path.expanduser(args.directory))
    code, envelope = send_change(args, "worker.start", {}, {"directory": directory})
    if envelope is None or not envelope["ok"]:
        return code
    if envelope["dry_run"]:
        _say(args, f"A worker would be asked for in {directory} (dry run).")
        return code
    name = str(envelope["result"].get("name", ""))
    if args.no_wait:
        _say(args, f"Worker {name} is starting.")
        return code
    return wait_until_ready(client_of(args), name, lambda text: _say(args, text))


def wait_until_ready(
    client: ControlClient,
    name: str,
    say: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> int:
    """Wait for a worker that was started; returns the exit code."""
    until = now() + READY_SECONDS
    shown = ""
    while now() < until:
        try:
            worker = _find(client, name)
        except Unreachable as error:
            output.complain(f"{error} while the worker was starting")
            return EXIT_FAILED
        state = "gone" if worker is None else str(worker.get("state"))
        if state == "running":
            say(
                f"Worker {name} is ready. Write to it in its Thread, or:"
                f" pi-telegram workers prompt {name} TEXT"
            )
            return 0
        if state in ("failed", "stopped", "backoff", "gone"):
            reason = (worker or {}).get("last_error") or "its log has the reason"
            output.complain(f"worker {name} did not start ({state}): {reason}")
            return EXIT_FAILED
        if state != shown and sys.stderr.isatty():
            print(f"… {name}: {state}", file=sys.stderr)
            shown = state
        sleep(0.2)
    output.complain(f"worker {name} is not ready yet; see pi-telegram workers list")
    return EXIT_FAILED


def change(args: argparse.Namespace) -> int:
    """All changes of one worker that need no more than its name and simple values."""
    values = {key: getattr(args, key) for key in args.takes if getattr(args, key) is not None}
    if values.get("text") == "-":
        values["text"] = sys.stdin.read()
    if args.action == "worker.set_model":
        provider, slash, model = values["model"].partition("/")
        if not (provider and slash and model):
            output.complain("the model is written PROVIDER/MODEL")
            return EXIT_USAGE
        values = {"provider": provider, "model": model}
    code, envelope = send_change(args, args.action, {"name": args.name}, values)
    if code == 0 and envelope is not None:
        done = _DONE.get(args.action, "done")
        if envelope["dry_run"]:
            done = "would be asked (dry run)"
        _say(args, f"{args.action.removeprefix('worker.').replace('_', ' ')} {args.name}: {done}.")
    return code


def answer(args: argparse.Namespace) -> int:
    """C{workers answer NAME DIALOG …}."""
    values: dict[str, Any] = {"dialog_ref": args.dialog_ref}
    if args.option is not None:
        values["option"] = int(args.option) if args.option.isdecimal() else args.option
    elif args.text is not None:
        values["text"] = args.text
    elif args.confirm is not None:
        values["confirm"] = args.confirm == "yes"
    else:
        values["cancel"] = True
    code, envelope = send_change(args, "worker.answer", {"name": args.name}, values)
    if code == 0 and envelope is not None:
        done = "would be given (dry run)" if envelope["dry_run"] else "given"
        _say(args, f"answer {args.name}: {done}.")
    return code


def state(args: argparse.Namespace) -> int:
    """C{workers state NAME}."""
    value = {"schema_version": 1, "action": "worker.get_state", "target": {"name": args.name}}
    envelope = ask(args, value)
    code = report(args.json, envelope)
    if code == 0 and not args.json:
        for key, item in (envelope["result"] or {}).items():
            print(f"{key}: {output.shown(item)}")
    return code


def _find(client: ControlClient, name: str) -> dict[str, Any] | None:
    for worker in client.get("/v1/workers?private=1").get("workers") or []:
        if worker.get("name") == name:
            return dict(worker)
    return None


def _say(args: argparse.Namespace, text: str) -> None:
    """Say something to a person; with C{--json} standard output belongs to the envelope."""
    if not args.json:
        print(text)
