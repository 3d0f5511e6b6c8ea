"""C{locks.json}: the registry that extensions of Pi share.

Only our own key is ever changed.  It is informative: the transport lock is C{owners.json}.  A live
entry of the extension that this program replaces is a reason not to lead.
"""

from __future__ import annotations

import json
import os
from typing import Any

from pitelegram.errors import LiveOwner, OwnershipError
from pitelegram.kernel import jsonio
from pitelegram.kernel.birth import process_birth
from pitelegram.kernel.files import read_private, write_private
from pitelegram.kernel.guard import TransactionGuard
from pitelegram.kernel.paths import Paths

OUR_KEY = "pi-telegram"
FOREIGN_KEY = "@llblab/pi-telegram"


def refuse_foreign(paths: Paths) -> None:
    """Make sure that no live process of the other extension polls.

    @raise LiveOwner: one does.
    @raise OwnershipError: the registry is damaged.
    """
    entry = _read(paths).get(FOREIGN_KEY)
    pid = entry.get("pid") if isinstance(entry, dict) else None
    if type(pid) is int and pid > 0 and pid != os.getpid() and process_birth(pid) is not None:
        raise LiveOwner(pid, "worker")


def claim(paths: Paths, cwd: str) -> None:
    """Say in the registry that this process leads from C{cwd}."""

    def change(registry: dict[str, Any]) -> None:
        registry[OUR_KEY] = {"pid": os.getpid(), "cwd": cwd}

    _change(paths, change)


def withdraw(paths: Paths) -> None:
    """Remove our entry, if it is this process's."""

    def change(registry: dict[str, Any]) -> None:
        entry = registry.get(OUR_KEY)
        if isinstance(entry, dict) and entry.get("pid") == os.getpid():
            del registry[OUR_KEY]

    _change(paths, change)


def _change(paths: Paths, change: Any) -> None:
    def transaction() -> None:
        before = _read(paths)
        after = dict(before)
        change(after)
        if after != before:
            write_private(paths.locks_json, (json.dumps(after, indent=2) + "\n").encode())

    TransactionGuard(paths.locks_guard).run_blocking(transaction, attempts=1)


def _read(paths: Paths) -> dict[str, Any]:
    data = read_private(paths.locks_json, narrow=False)
    try:
        value = {} if data is None else jsonio.exact(data)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise OwnershipError(
            "the file locks.json is damaged and was left alone; repair or remove it"
        )
    return value
