"""Files of messages, fetched through the leader and kept while a prompt needs them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import attrs
from twisted.internet.defer import CancelledError, Deferred, DeferredSemaphore, TimeoutError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from pitelegram.bridge import intakewords as words
from pitelegram.bridge.filerefs import FileRef
from pitelegram.bridge.interfaces import FileItem
from pitelegram.bus.interfaces import ILeaderLink
from pitelegram.errors import BusError, Refusal
from pitelegram.kernel.backoff import Backoff
from pitelegram.kernel.deferring import deferred, sleep
from pitelegram.kernel.observers import OneShot

AT_ONCE = 10
"""Downloads at the same time: an album's."""
PATIENCE = 600.0
"""Seconds until a prompt goes without a file that cannot be fetched."""
RECENT = 64
RECENT_SECONDS = 60.0
_PREFIX = 12


@attrs.frozen
class Missing:
    """A file that Pi does not get.

    @ivar words: its name and why, for the prompt and for the operator.
    """

    words: str


@attrs.frozen
class _Refused(Exception):
    """The leader said no for good."""

    refusal: Refusal


class Files:
    """Fetches each file once, whoever asks for it within a minute.

    @param link: returns the link to the leader, None while there is none.
    """

    _log = Logger()

    def __init__(
        self, clock: IReactorTime, random: Random, link: Callable[[], ILeaderLink | None]
    ) -> None:
        self._clock = clock
        self._random = random
        self._link = link
        self._lines = DeferredSemaphore(AT_ONCE)
        self._known: dict[str, tuple[float, OneShot[FileItem | Missing]]] = {}
        self._running: set[Deferred[None]] = set()

    def fetch(self, ref: FileRef) -> Deferred[FileItem | Missing]:
        """Fire with the file on this disk, or why it is not; never fails.

        While the leader or Telegram is away it is tried again, for L{PATIENCE} seconds.
        """
        now = self._clock.seconds()
        since, shared = self._known.get(ref.unique_id, (0.0, None))
        if shared is None or (shared.fired and now - since > RECENT_SECONDS):
            shared = OneShot()
            self._known.pop(ref.unique_id, None)
            self._known[ref.unique_id] = now, shared
            self._forget_old()
            running = Deferred.fromCoroutine(self._fetch(ref, shared))
            running.addErrback(self._broken, ref, shared)
            self._running.add(running)
            running.addBoth(lambda _: self._running.discard(running))
        return self._as_named(ref, shared)

    def _broken(self, failure: Failure, ref: FileRef, shared: OneShot[FileItem | Missing]) -> None:
        """An error of ours costs the file, not the prompt."""
        if not failure.check(CancelledError):
            self._log.failure("a download failed", failure)
            shared.fire(Missing(words.file_failed(ref.name)))

    @deferred
    async def _as_named(
        self, ref: FileRef, shared: OneShot[FileItem | Missing]
    ) -> FileItem | Missing:
        found = await shared.when()
        if isinstance(found, FileItem) and not exists(found.path):
            self._known.pop(ref.unique_id, None)
            return await self.fetch(ref)
        return found

    def stop(self) -> None:
        """Give up what is on its way; nobody is told."""
        for running in list(self._running):
            running.cancel()
        self._running.clear()

    def keep(self, paths: Iterable[str]) -> None:
        """Have files that are still needed not age out."""
        for path in paths:
            try:
                os.utime(path, follow_symlinks=False)
            except OSError as error:
                self._log.info("a kept file is gone: {kind}", kind=type(error).__name__)

    def _forget_old(self) -> None:
        for unique_id, (_, shared) in list(self._known.items())[:-RECENT]:
            if shared.fired:
                del self._known[unique_id]

    async def _fetch(self, ref: FileRef, shared: OneShot[FileItem | Missing]) -> None:
        until = self._clock.seconds() + PATIENCE
        backoff = Backoff(1.0, 10.0, self._random)
        while True:
            again = backoff.next()
            try:
                answer = await self._ask(ref.file_id)
                if answer is not None:
                    shared.fire(self._placed(ref, answer))
                    return
            except _Refused as refused:
                shared.fire(Missing(words.refused_file(ref.name, refused.refusal)))
                return
            except Refusal as refusal:
                again = max(again, _seconds(refusal.fields.get("retryAfter")))
            except (BusError, TimeoutError, OSError) as error:
                self._log.info("a file could not be fetched: {kind}", kind=type(error).__name__)
            if self._clock.seconds() + again >= until:
                shared.fire(Missing(words.file_given_up(ref.name, PATIENCE)))
                return
            await sleep(self._clock, again)

    async def _ask(self, file_id: str) -> dict[str, Any] | None:
        """Return the leader's answer, None when there is no leader."""
        await self._lines.acquire()
        try:
            link = self._link()
            return None if link is None else await link.download_file(file_id)
        except Refusal as refusal:
            if not _passing(refusal):
                raise _Refused(refusal) from None
            raise
        finally:
            self._lines.release()

    def _placed(self, ref: FileRef, answer: dict[str, Any]) -> FileItem | Missing:
        """Give a file its own name beside where the leader stored it.

        @raise OSError: it cannot be used.
        """
        path, size = answer.get("path"), answer.get("size")
        if not isinstance(path, str) or not os.path.isabs(path) or type(size) is not int:
            raise OSError("the leader named no file")
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise OSError("that is no regular file")
        stored = Path(path)
        named = stored.with_name(f"{stored.name[:_PREFIX]}-{ref.name}")
        if not os.path.lexists(named):
            os.rename(stored, named)
            stored = named
        return FileItem(kind=ref.kind, path=str(stored), name=ref.name, mime=ref.mime, size=size)


def exists(path: str) -> bool:
    """Whether a fetched file is still there."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def _passing(refusal: Refusal) -> bool:
    """Whether it may be granted later."""
    if refusal.code in ("unavailable", "rate-limited", "commit-unknown"):
        return True
    code = refusal.fields.get("errorCode")
    return refusal.code == "api" and (
        type(code) is not int or code in (401, 409, 429) or code >= 500
    )


def _seconds(value: Any) -> float:
    return min(float(value), 60.0) if type(value) in (int, float) and value > 0 else 0.0
