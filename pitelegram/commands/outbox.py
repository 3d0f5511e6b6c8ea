"""C{pi-telegram outbox …}."""

from __future__ import annotations

import argparse
import time

from pitelegram.commands import output
from pitelegram.commands.asking import change, client_of
from pitelegram.control import outward


def inspect(args: argparse.Namespace) -> int:
    """C{outbox inspect}: opaque keys, times, attempts and reasons only."""
    document = client_of(args).get("/v1/outbox")
    if args.json:
        output.print_json(document, outward.outbox)
        return 0
    items = document.get("items") or []
    if not items:
        print("Nothing waits, nothing is parked.")
        return 0
    output.print_table(
        ["KEY", "STATE", "ATTEMPTS", "SINCE", "REASON"],
        [
            [
                item.get("key"),
                item.get("state"),
                item.get("attempts"),
                _when(item.get("created_at_ms")),
                item.get("reason"),
            ]
            for item in items
        ],
    )
    return 0


def retry(args: argparse.Namespace) -> int:
    """C{outbox retry KEY}."""
    code, envelope = change(args, "outbox.retry", {}, {"key": args.key})
    if code == 0 and envelope is not None and not args.json:
        print("It would be sent again (dry run)." if envelope["dry_run"] else "It is sent again.")
    return code


def _when(at_ms: object) -> str:
    if not isinstance(at_ms, int):
        return "-"
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ms / 1000))
