"""What a worker that is gone left in its file: answers are sent, prompts are reported."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from pitelegram.delivery.interfaces import IDelivery
from pitelegram.errors import BusBadRequest, PiTelegramError, Refusal
from pitelegram.kernel.deferring import deferred
from pitelegram.kernel.flock import FileLock, is_free
from pitelegram.kernel.paths import Paths
from pitelegram.kernel.rounds import Rounds
from pitelegram.routing.interfaces import IExpectation, IInboxProbe, INotices
from pitelegram.store.database import Database
from pitelegram.store.inbox import Inbox
from pitelegram.store.interfaces import IBindings

PERIOD = 3600.0
"""Seconds between two looks at all files."""


@attrs.frozen(kw_only=True)
class Leftover:
    """What stays in a file after its answers were taken.

    @ivar waiting: prompts that Pi was not given.
    @ivar handed: prompts that Pi was given and nobody settled.
    @ivar unsendable: answers that the outbox did not take.
    @ivar damaged: the file was damaged and has been moved to C{recovery/}.
    """

    waiting: int = 0
    handed: int = 0
    unsendable: int = 0
    damaged: bool = False

    def sentences(self) -> list[str]:
        """Return what is to be said about it."""
        found = []
        if self.waiting:
            found.append(f"{_messages(self.waiting)} waiting for its next start")
        if self.handed:
            found.append(
                f"{_messages(self.handed)} with Pi when it ended; its next start tells more"
            )
        if self.unsendable:
            count = "1 answer" if self.unsendable == 1 else f"{self.unsendable} answers"
            found.append(f"{count} could not be taken over")
        if self.damaged:
            found.append("its file was damaged and has been moved to the recovery directory")
        return found


@implementer(IInboxProbe)
class Orphans(Rounds):
    """Opens a worker's file when its lock is free and no process of it is expected.

    The lock is held meanwhile, so that no worker can open the file at the same time; one that
    starts just then waits for it.  Only this profile's bindings are looked at: other profiles keep
    their files in the same directory.

    @param name: how a binding is called in C{problems}.
    @param compose: C{(database, directory)}: renders what the worker had not rendered; files that
        answers name are in that directory.
    """

    def __init__(
        self,
        clock: IReactorTime,
        paths: Paths,
        bindings: IBindings,
        expectation: IExpectation,
        delivery: IDelivery,
        notices: INotices,
        name: Callable[[str], str],
        compose: Callable[[Database, Path], Deferred[None]],
    ) -> None:
        super().__init__(clock, PERIOD)
        self._compose = compose
        self._clock = clock
        self._paths = paths
        self._bindings = bindings
        self._expectation = expectation
        self._delivery = delivery
        self._notices = notices
        self._name = name
        self._left: dict[str, Leftover] = {}

    def problems(self) -> list[str]:
        """Return one sentence per worker that left something behind and is not expected back."""
        return [
            f"{self._name(key)}: {'; '.join(left.sentences())}"
            for key, left in sorted(self._left.items())
            if not self._expectation.is_expected(key)
        ]

    @deferred
    async def examine(self, binding_key: str) -> None:
        """Look into one binding's file, if it is nobody's.  A failure is logged."""
        try:
            if self._bindings.get(binding_key) is None:
                return
            if not self._paths.worker_database(binding_key).exists():
                self._left.pop(binding_key, None)
                return
            with self._opened(binding_key) as database:
                if database is None:
                    return
                left = await self._take_over(binding_key, database)
        except PiTelegramError as error:
            self._log.warn("a worker's file cannot be examined: {why}", why=str(error))
            return
        if left.sentences():
            self._left[binding_key] = left
        else:
            self._left.pop(binding_key, None)

    @deferred
    async def clear(self, binding_key: str) -> None:
        """Remove all files of a binding that is given up; what Telegram has not seen yet is kept.

        Answers go to the outbox first.  Prompts that wait are gone with the file.

        @raise Refusal: C{still-running}: the files are somebody's.
        """
        with self._opened(binding_key) as database:
            if database is None:
                raise Refusal("still-running", "a process of that worker still lives; try again")
            inbox = Inbox(database)
            await self._compose(database, self._paths.worker_files(binding_key))
            for answer in inbox.answers():
                await self._rescue(binding_key, answer)
                await inbox.forget_answer(answer["delivery_id"])
            database.close()
            shutil.rmtree(self._paths.worker_files(binding_key), ignore_errors=True)
            path = self._paths.worker_database(binding_key)
            for file in (path, *(path.with_name(path.name + tail) for tail in ("-wal", "-shm"))):
                file.unlink(missing_ok=True)
            self._paths.worker_log(binding_key).unlink(missing_ok=True)
            self._paths.worker_lock(binding_key).unlink(missing_ok=True)
        self._left.pop(binding_key, None)

    @deferred
    async def admitted(self, binding_key: str, delivery_id: str) -> bool | None:
        """Whether that worker had admitted the id.

        None while its file is somebody's, or when the file cannot tell (it was damaged).
        """
        try:
            if self._expectation.is_expected(binding_key):
                return None
            if not self._paths.worker_database(binding_key).exists():
                return False if is_free(self._paths.worker_lock(binding_key)) else None
            with self._opened(binding_key) as database:
                if database is None:
                    return None
                if database.recovered is not None:
                    self._left[binding_key] = Leftover(damaged=True)
                    return None
                return Inbox(database).row(delivery_id) is not None
        except PiTelegramError as error:
            self._log.warn("a worker's file cannot be examined: {why}", why=str(error))
            return None

    @deferred
    async def round(self) -> None:
        """Look at all files of this profile's bindings."""
        for binding in self._bindings.list():
            if binding.kind != "daemon":
                await self.examine(binding.binding_key)

    @contextlib.contextmanager
    def _opened(self, binding_key: str) -> Iterator[Database | None]:
        """Yield the open database, None when it is somebody's."""
        lock = None
        if not self._expectation.is_expected(binding_key):
            lock = FileLock.try_acquire(self._paths.worker_lock(binding_key))
        if lock is None:
            yield None
            return
        path = self._paths.worker_database(binding_key)
        database = Database(path, "worker", self._clock)
        try:
            database.open()
            yield database
        finally:
            database.close()
            lock.release()

    async def _take_over(self, binding_key: str, database: Database) -> Leftover:
        inbox = Inbox(database)
        await self._compose(database, self._paths.worker_files(binding_key))
        unsendable = 0
        for answer in inbox.answers():
            if await self._rescue(binding_key, answer):
                await inbox.forget_answer(answer["delivery_id"])
            else:
                unsendable += 1
        waiting = inbox.rows("admitted", "held")
        handed = inbox.rows("handed")
        left = Leftover(
            waiting=len(waiting),
            handed=len(handed),
            unsendable=unsendable,
            damaged=database.recovered is not None,
        )
        if left.sentences():
            ids = [f"{row.delivery_id} {row.state}" for row in (*waiting, *handed)]
            await self._report(binding_key, left, ids)
        return left

    async def _rescue(self, binding_key: str, answer: dict[str, Any]) -> bool:
        """Hand an answer to the outbox under its own id; False when it will never be taken."""
        files = self._paths.worker_files(binding_key)
        try:
            await self._delivery.submit(
                binding_key, answer["delivery_id"], answer["delivery"], files
            )
        except (Refusal, BusBadRequest) as error:
            self._log.error("an answer left behind cannot be sent: {why}", why=str(error))
            return False
        return True

    async def _report(self, binding_key: str, left: Leftover, ids: list[str]) -> None:
        """Tell it in the Thread, once for the same state of things."""
        text = "📥 This worker is not running. " + "; ".join(left.sentences()) + "."
        state = "\n".join([*left.sentences(), *ids])
        notice_id = f"orphan-{hashlib.sha256(state.encode()).hexdigest()[:24]}"
        await self._notices.post(binding_key, text, notice_id)


def _messages(count: int) -> str:
    return "1 message was" if count == 1 else f"{count} messages were"
