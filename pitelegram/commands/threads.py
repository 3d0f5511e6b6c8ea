"""C{pi-telegram threads …}."""

from __future__ import annotations

import argparse

from pitelegram.commands import output
from pitelegram.commands.asking import change, client_of
from pitelegram.control import outward

_COLUMNS = (("LETTER", "slot"), ("NAME", "thread_name"), ("WORKER", "name"), ("STATE", "state"))


def show(args: argparse.Namespace) -> int:
    """C{threads list}: the Threads of managed workers, with what their worker does."""
    workers = client_of(args).get("/v1/workers").get("workers") or []
    workers = outward.workers({"workers": workers}, private=False)["workers"]
    threads = [{key: worker.get(key) for _, key in _COLUMNS} for worker in workers]
    if args.json:
        output.print_json({"schema_version": 1, "threads": threads}, lambda document: document)
    elif threads:
        titles = [title for title, _ in _COLUMNS]
        output.print_table(titles, [[thread[key] for _, key in _COLUMNS] for thread in threads])
    else:
        print("No worker has a Thread yet.")
    return 0


def review(args: argparse.Namespace) -> int:
    """C{threads review}: what could be deleted, by proof; nothing is."""
    code, envelope = change(args, "threads.review", {}, {})
    if code == 0 and envelope is not None and not args.json:
        inactive = (envelope["result"] or {}).get("inactive") or []
        if envelope["dry_run"]:
            print("It would be reviewed (dry run).")
        elif inactive:
            for name in inactive:
                print(output.shown(name))
            print("Delete them with: pi-telegram threads delete-reviewed")
        else:
            print("Nothing is inactive.")
    return code


def delete_reviewed(args: argparse.Namespace) -> int:
    """C{threads delete-reviewed}: each one is proven again right before it goes."""
    code, envelope = change(args, "threads.delete_reviewed", {}, {})
    if code == 0 and envelope is not None and not args.json:
        result = envelope["result"] or {}
        if envelope["dry_run"]:
            print("What was reviewed would be deleted (dry run).")
        else:
            print(
                f"Deleted: {result.get('deleted')}, kept because they are in use: {result.get('kept')}."
            )
    return code
