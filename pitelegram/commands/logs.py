"""C{pi-telegram logs}: the redacted events, as text or JSON lines."""

from __future__ import annotations

import argparse
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pitelegram.commands import output
from pitelegram.commands.place import paths_of
from pitelegram.control import outward
from pitelegram.kernel import jsonio
from pitelegram.kernel.exits import EXIT_FAILED
from pitelegram.kernel.paths import Paths

_COLOURS = {"warn": "yellow", "error": "red", "critical": "red", "debug": "dim"}


def logs(args: argparse.Namespace, sleep: Callable[[float], None] = time.sleep) -> int:
    """Show the newest events, and with C{-f} each new one."""
    paths = paths_of(args)
    if not paths.logs.exists() and not args.follow:
        output.complain("there are no events yet")
        return EXIT_FAILED
    newest: deque[dict[str, Any]] = deque(maxlen=max(0, args.lines))
    follower = Follower(paths)
    for event in follower.past():
        if _is_wanted(event, args.worker):
            newest.append(event)
    for event in newest:
        _show(event, args.json)
    if args.worker is not None and not newest and args.lines > 0 and not args.follow:
        output.complain(f"there are no events of a worker {args.worker}")
    while args.follow:
        for event in follower.new():
            if _is_wanted(event, args.worker):
                _show(event, args.json)
        sleep(0.3)
    return 0


class Follower:
    """Reads the event log across its rotation."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._inode: int | None = None
        self._offset = 0

    def past(self) -> Iterator[dict[str, Any]]:
        """All events that are there, oldest first."""
        yield from self._read(self._paths.logs_previous, 0)
        yield from self.new()

    def new(self) -> Iterator[dict[str, Any]]:
        """Events since the last call."""
        inode = _inode(self._paths.logs)
        if self._inode is not None and inode != self._inode:
            # Rotated: what we read so far has the other name now.
            if _inode(self._paths.logs_previous) == self._inode:
                yield from self._read(self._paths.logs_previous, self._offset)
            self._offset = 0
        self._inode = inode
        if inode is not None:
            yield from self._read(self._paths.logs, self._offset)

    def _read(self, path: Path, offset: int) -> Iterator[dict[str, Any]]:
        try:
            file = open(path, "rb")
        except FileNotFoundError:
            return
        with file:
            if os.fstat(file.fileno()).st_size < offset:
                offset = 0  # somebody emptied it
            file.seek(offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                offset += len(line)
                if path == self._paths.logs:
                    self._offset = offset
                try:
                    event = jsonio.exact(line)
                except ValueError:
                    continue
                if isinstance(event, dict):
                    yield event


def _inode(path: Path) -> int | None:
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None


def _is_wanted(event: dict[str, Any], worker: str | None) -> bool:
    if worker is None:
        return True
    fields = event.get("fields")
    return isinstance(fields, dict) and worker in (fields.get("worker"), fields.get("name"))


def _show(event: dict[str, Any], as_json: bool) -> None:
    if as_json:
        output.print_json(event, outward.event)
        return
    level = str(event.get("level", "info"))
    at = event.get("at_ms")
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at / 1000)) if at else "-"
    word = output.coloured(f"{level:<8}", _COLOURS.get(level))
    print(f"{stamp} {word} {output.shown(event.get('message'))}", flush=True)
    for line in str(event.get("traceback") or "").splitlines():
        print(f"    {output.shown(line)}")
