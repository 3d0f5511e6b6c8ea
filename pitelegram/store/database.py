"""One SQLite file as a service: group commit on its own thread, reads on the reactor's."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar, cast

from twisted.application.service import Service
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.interfaces import IReactorFromThreads, IReactorTime
from zope.interface import implementer

from pitelegram.errors import StoreError
from pitelegram.store.interfaces import IDatabase
from pitelegram.store.migrations import Migration, load_migrations
from pitelegram.store.opening import Opened, open_file, open_memory
from pitelegram.store.timings import CommitTimes
from pitelegram.store.writer import Committer, Write, deliver, run_writer

T = TypeVar("T")

LARGE_LOG = 8 * 1024 * 1024
"""Bytes of the write-ahead log; SQLite itself keeps it at half of that unless a reader hinders it."""


@implementer(IDatabase)
class Database(Service):
    """See L{IDatabase}.  Nothing is touched before L{startService} (or L{open}).

    @param path: the file, None for one in memory (needs C{reactor=None}).
    @param schema: C{leader} (writes are fenced by the leader epoch) or C{worker}.
    @param clock: where L{now_ms} comes from.
    @param reactor: fires the Deferreds; None for the inline mode, in which the same code runs
        inside L{write} and no thread is made.
    @param migrations: other schema files than the packaged ones.
    @ivar recovered: where a damaged file was moved at the start, else None.
    @ivar times: how long commits take, and whether they fail.
    """

    recovered: Path | None = None
    times = CommitTimes()

    def __init__(
        self,
        path: Path | None,
        schema: str,
        clock: IReactorTime,
        reactor: IReactorFromThreads | None = None,
        migrations: Sequence[Migration] | None = None,
    ) -> None:
        if path is None and reactor is not None:
            raise ValueError("a database in memory has one connection, so it works inline only")
        self._path = path
        self._schema = schema
        self._clock = clock
        self._reactor = reactor
        self._migrations = migrations
        self._opened: Opened | None = None
        self._committer: Committer | None = None
        self._queue: SimpleQueue[Write | None] = SimpleQueue()
        self._closed: Deferred[None] = Deferred()
        self._accepting = False

    def startService(self) -> None:
        """Open the file; see L{open}."""
        self.open()
        super().startService()

    def stopService(self) -> Deferred[None]:
        """Finish what was asked for, then close; later writes fail with StoreError."""
        if self.running:
            super().stopService()
        return self.close()

    def open(self) -> None:
        """Open, create or migrate the file and start the writer.

        @raise pitelegram.errors.StoreError: it cannot be used (C{StoreTooNew} included).
        @raise pitelegram.errors.UnsafeFile: it breaks the permission policy.
        """
        if self._opened is not None:
            raise StoreError("the database is open already")
        migrations = self._migrations or load_migrations(self._schema)
        opened = (
            open_memory(migrations) if self._path is None else open_file(self._path, migrations)
        )
        self._opened = opened
        self.recovered = opened.recovered
        self._committer = Committer(opened.writer, fenced=self._schema == "leader")
        self.times = self._committer.times
        self._closed = Deferred()
        self._accepting = True
        if self._reactor is not None:
            arguments = (self._queue, self._committer, self._reactor.callFromThread, self._ended)
            Thread(target=run_writer, args=arguments, name="store-writer", daemon=True).start()

    def close(self) -> Deferred[None]:
        """Drain, close; fires when both connections are closed.  Closing twice is harmless."""
        if self._opened is None:
            return succeed(None)
        if self._accepting:
            self._accepting = False
            if self._reactor is not None:
                self._queue.put(None)
            else:
                cast(Committer, self._committer).close()
                self._ended()
        waiter: Deferred[None] = Deferred()
        self._closed.addCallback(_pass_on, waiter)
        return waiter

    def write(self, name: str, work: Callable[[sqlite3.Connection], T]) -> Deferred[T]:
        """Run C{work} in a transaction on the writer thread; fires after the commit.

        C{work} may use nothing but its connection.  Cancelling the Deferred does not undo the
        write.

        @raise pitelegram.errors.Fenced: a newer leader took over; nothing was stored.
        @raise pitelegram.errors.StoreFull: no space; nothing of this write was stored.
        @raise StoreError: the database is closed, or SQLite refused.
        """
        return self._submit(Write(name, work))

    def acquire(self, epoch: str) -> Deferred[None]:
        """Make C{epoch} the only one whose writes may commit; the one write that is not fenced."""
        now = self.now_ms()

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT OR REPLACE INTO leader (one, epoch, acquired_ms) VALUES (1, ?, ?)",
                (epoch, now),
            )

        return self._submit(Write("acquire leadership", work, epoch))

    def checkpoint(self) -> Deferred[None]:
        """Move what stands in the write-ahead log into the file; waits for no reader.

        A log that has grown large, because somebody read for long, is cut off as well.
        """
        large = self.sizes()[1] > LARGE_LOG

        def work(connection: sqlite3.Connection) -> None:
            if not large:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                return
            (waits,) = connection.execute("PRAGMA busy_timeout").fetchone()
            connection.execute("PRAGMA busy_timeout = 0").fetchall()
            try:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                connection.execute(f"PRAGMA busy_timeout = {int(waits)}").fetchall()

        return self._submit(Write("checkpoint", work, bare=True))

    def sizes(self) -> tuple[int, int]:
        """Return the bytes of the file and of its write-ahead log; 0 for what is not there."""
        if self._path is None:
            return 0, 0
        return _size(self._path), _size(self._path.with_name(self._path.name + "-wal"))

    def read(self, sql: str, parameters: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """Run one SELECT now; sees everything that was committed before.

        @raise StoreError: the database is closed, or SQLite refused.
        """
        if self._opened is None:
            raise StoreError("the database is not open")
        try:
            return self._opened.reader.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"the database refused a read ({error})") from error

    def now_ms(self) -> int:
        """Milliseconds since the epoch by the injected clock."""
        return int(self._clock.seconds() * 1000)

    def _submit(self, write: Write) -> Deferred[Any]:
        if not self._accepting:
            return fail(StoreError(f"the database is closed ({write.name})"))
        if self._reactor is not None:
            self._queue.put(write)
        else:
            deliver(cast(Committer, self._committer).commit([write]))
        return write.done

    def _ended(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.reader.close()
        self._closed.callback(None)


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _pass_on(result: None, waiter: Deferred[None]) -> None:
    waiter.callback(None)
