"""The transaction guard: one process at a time changes a shared file.

The guard is a directory that holds one small file which names its owner.  It is made complete under
another name and published by C{rename}, which fails while another guard stands there.  Other programs
lock the same files in the same way, so names and contents are fixed (docs/ownership.md).

What runs inside is one ordinary function call: nothing can be awaited there.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import attrs
import psutil
from twisted.internet.interfaces import IReactorTime

from pitelegram.errors import OwnershipError
from pitelegram.kernel import jsonio
from pitelegram.kernel.birth import process_birth
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.kernel.files import unsafe

T = TypeVar("T")

ATTEMPTS = 80
PAUSE = 0.025
"""Seconds between attempts; 80 of them are two seconds."""

REUSE_SECONDS = 2.0
"""A process that started this much after the guard was taken is not the one that took it."""

LEFTOVER_SECONDS = 60.0

_OWNER = re.compile(r"owner\.(?P<uuid>[0-9a-fA-F-]{8,64})\.json")
_RECLAIMED = re.compile(r"owner\.reclaim\.(?P<pid>[0-9]{1,10})\.(?P<uuid>[0-9a-fA-F-]{8,64})\.json")

_TAKEN = {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR}


class GuardBusy(OwnershipError):
    """Another process kept the guard for two seconds; try again."""


class GuardDamaged(OwnershipError):
    """What stands in the guard's place is not a guard; it was left alone."""


@attrs.frozen
class _Occupant:
    """Who stands in the guard.

    @ivar name: the inner file's name.
    @ivar actor: the pid whose death makes the guard reclaimable (owner, or a crashed reclaimer).
    @ivar since: seconds since the epoch when that pid began to act.
    """

    name: str
    uuid: str
    pid: int
    acquired_ms: int
    actor: int
    since: float


class TransactionGuard:
    """One guard directory.

    @param path: the guard, C{<file>.transaction}.
    @param now: wall clock, seconds since the epoch.
    """

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self._path = path
        self._now = now
        self._swept = False

    @deferred
    async def run(self, clock: IReactorTime, work: Callable[[], T]) -> T:
        """Call C{work} inside the guard, waiting up to two seconds without blocking the reactor.

        @raise GuardBusy: it stayed taken.
        @raise GuardDamaged: it is no guard.
        """
        for _ in range(ATTEMPTS):
            done, result = self._attempt(work)
            if done:
                return result  # type: ignore[return-value]
            await sleep(clock, PAUSE)
        raise self._reason()

    def run_blocking(
        self,
        work: Callable[[], T],
        attempts: int = ATTEMPTS,
        pause: Callable[[float], object] = time.sleep,
    ) -> T:
        """As L{run}, for programs without a running reactor."""
        for attempt in range(attempts):
            if attempt:
                pause(PAUSE)
            done, result = self._attempt(work)
            if done:
                return result  # type: ignore[return-value]
        raise self._reason()

    def _attempt(self, work: Callable[[], T]) -> tuple[bool, T | None]:
        try:
            generation = self._enter()
        except OSError:
            raise unsafe("operation_failed") from None
        if generation is None:
            return False, None
        try:
            return True, work()
        finally:
            self._leave(generation)

    def _enter(self) -> str | None:
        """Publish a guard of ours; its generation, or None while another one stands there."""
        self._sweep()
        occupant = self._occupant()
        if occupant is not None and not (self._abandoned(occupant) and self._reclaim(occupant)):
            return None
        generation = str(uuid.uuid4())
        staged = self._stage(generation)
        try:
            os.rename(staged, self._path)
        except OSError as error:
            shutil.rmtree(staged, ignore_errors=True)
            if error.errno in _TAKEN:
                return None
            raise
        return generation if self._is_mine(generation) else None

    def _stage(self, generation: str) -> str:
        staged = tempfile.mkdtemp(prefix=f"{self._path.name}.staged.", dir=self._path.parent)
        payload = {
            "pid": os.getpid(),
            "acquiredAtMs": int(self._now() * 1000),
            "generation": generation,
        }
        inner = os.path.join(staged, f"owner.{generation}.json")
        fd = os.open(inner, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w") as file:
            json.dump(payload, file)
        return staged

    def _is_mine(self, generation: str) -> bool:
        occupant = self._occupant()
        return (
            occupant is not None
            and occupant.uuid == generation
            and occupant.pid == os.getpid()
            and occupant.name == f"owner.{generation}.json"
        )

    def _leave(self, generation: str) -> None:
        """Take our guard away; one that is not ours any more is left alone."""
        if not self._is_mine(generation):
            return
        released = self._path.with_name(f"{self._path.name}.released.{uuid.uuid4()}")
        os.rename(self._path, released)
        shutil.rmtree(released, ignore_errors=True)

    def _occupant(self) -> _Occupant | None:
        """Who stands there; None for nobody, and for what cannot be read as a guard."""
        try:
            names = os.listdir(self._path)
            since = os.stat(self._path).st_mtime
        except OSError:
            return None
        if len(names) != 1:
            return None
        match = _OWNER.fullmatch(names[0]) or _RECLAIMED.fullmatch(names[0])
        if match is None:
            return None
        try:
            payload = jsonio.exact((self._path / names[0]).read_bytes()[:4096])
            pid, acquired = payload["pid"], payload["acquiredAtMs"]
            well_formed = payload["generation"] == match["uuid"]
        except (OSError, ValueError, TypeError, KeyError):
            return None
        if not well_formed or not _is_pid(pid) or not isinstance(acquired, int | float):
            return None
        reclaimer = match.groupdict().get("pid")
        return _Occupant(
            name=names[0],
            uuid=match["uuid"],
            pid=pid,
            acquired_ms=int(acquired),
            actor=int(reclaimer) if reclaimer else pid,
            since=since if reclaimer else acquired / 1000,
        )

    def _abandoned(self, occupant: _Occupant) -> bool:
        """Whether its process is gone for certain; age alone never says so."""
        if occupant.since < psutil.boot_time() - REUSE_SECONDS:
            return True
        if process_birth(occupant.actor) is None:
            return True
        try:
            started = psutil.Process(occupant.actor).create_time()
        except psutil.NoSuchProcess:
            return True
        except psutil.Error:
            return False
        return started > occupant.since + REUSE_SECONDS

    def _reclaim(self, occupant: _Occupant) -> bool:
        """Take an abandoned guard away; only one process can win the inner rename."""
        mine = f"owner.reclaim.{os.getpid()}.{occupant.uuid}.json"
        inner, claimed = self._path / occupant.name, self._path / mine
        try:
            os.rename(inner, claimed)
        except OSError:
            return False
        stale = self._path.with_name(f"{self._path.name}.stale.{os.getpid()}.{uuid.uuid4()}")
        try:
            os.rename(self._path, stale)
        except OSError:
            with contextlib.suppress(OSError):
                os.rename(claimed, inner)
            return False
        shutil.rmtree(stale, ignore_errors=True)
        return True

    def _reason(self) -> OwnershipError:
        if os.path.lexists(self._path) and self._occupant() is None:
            return GuardDamaged(
                "a lock of pi-telegram is damaged and was left alone; when no Telegram bridge runs,"
                " remove the .transaction entry beside the file it protects"
            )
        return GuardBusy("another process keeps a lock of pi-telegram; try again in a moment")

    def _sweep(self) -> None:
        """Once: remove what processes killed in the middle have left beside the guard."""
        if self._swept:
            return
        self._swept = True
        prefix = self._path.name + "."
        with contextlib.suppress(OSError):
            for entry in list(os.scandir(self._path.parent)):
                rest = entry.name[len(prefix) :] if entry.name.startswith(prefix) else ""
                kind = rest.split(".", 1)[0]
                if kind not in ("staged", "released", "stale"):
                    continue
                if self._now() - entry.stat(follow_symlinks=False).st_mtime > LEFTOVER_SECONDS:
                    shutil.rmtree(entry.path, ignore_errors=True)


def _is_pid(value: object) -> bool:
    return type(value) is int and 0 < value < 2**31
