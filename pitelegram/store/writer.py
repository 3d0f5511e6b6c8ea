"""Group commit: many writes, one transaction, one C{fsync}."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from pitelegram.errors import Fenced, StoreError, StoreFull
from pitelegram.store.timings import CommitTimes

GROUP_LIMIT = 512
"""At most so many writes share a commit."""


@attrs.define(eq=False)
class Write:
    """One asked-for write.

    @ivar epoch: set for the one unfenced write, which makes this epoch the process's own.
    @ivar bare: runs in no transaction, for what SQLite does in none (a checkpoint).
    @ivar done: fired on the reactor thread after the commit.
    """

    name: str
    work: Callable[[sqlite3.Connection], Any]
    epoch: str | None = None
    bare: bool = False
    done: Deferred[Any] = attrs.field(factory=Deferred)


Outcome = tuple[Write, Any]


def deliver(outcomes: Sequence[Outcome]) -> None:
    """Fire the Deferreds of a committed (or failed) group; on the reactor thread."""
    for write, result in outcomes:
        write.done.callback(result)


class Committer:
    """Commits groups of writes on one connection; on the writer thread (or inline).

    @param fenced: compare the leader epoch once per group.
    @param monotonic: seconds that only run forward.
    @ivar times: how long commits took.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        fenced: bool,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._fenced = fenced
        self._monotonic = monotonic
        self.times = CommitTimes()
        self._epoch: str | None = None

    def commit(self, group: Sequence[Write]) -> list[Outcome]:
        """Commit a group; returns each write with its result or Failure, never raises.

        A write that fails rolls back only itself.  When the transaction as a whole is lost (no
        space, input/output error) every write of the group fails.
        """
        if group[0].bare:
            return [(group[0], self._run_bare(group[0]))]
        began = self._monotonic()
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            outcomes = self._run(group)
            self._connection.execute("COMMIT")
        except Exception as error:
            self._roll_back()
            failures = [(write, _failure(write, error)) for write in group]
            self._note_loss(failures)
            return failures
        self.times.committed(self._monotonic() - began)
        self._note_loss(outcomes)
        if group[0].epoch is not None:
            self._epoch = group[0].epoch
        return outcomes

    def close(self) -> None:
        """Close the connection (SQLite then checkpoints, if nobody else has the file open)."""
        self._connection.close()

    def _run(self, group: Sequence[Write]) -> list[Outcome]:
        if self._fenced and group[0].epoch is None and not self._leads():
            error = Fenced("the database belongs to another leader; nothing was stored")
            return [(write, Failure(error)) for write in group]
        if len(group) == 1:
            # Nothing else is in the transaction that a failure would take along.
            return [(group[0], group[0].work(self._connection))]
        return [(write, self._run_one(write)) for write in group]

    def _note_loss(self, outcomes: Sequence[Outcome]) -> None:
        """The store's own failures are remembered; what is wrong with one write alone is not."""
        for _, result in outcomes:
            if isinstance(result, Failure) and result.check(StoreFull):
                self.times.lost("no space is left")
            elif isinstance(result, Failure) and isinstance(
                result.value.__cause__, sqlite3.OperationalError
            ):
                self.times.lost("it cannot be written")

    def _run_bare(self, write: Write) -> Any:
        try:
            return write.work(self._connection)
        except Exception as error:
            return _failure(write, error)

    def _leads(self) -> bool:
        row = self._connection.execute("SELECT epoch FROM leader WHERE one = 1").fetchone()
        return self._epoch is not None and row is not None and row["epoch"] == self._epoch

    def _run_one(self, write: Write) -> Any:
        self._connection.execute("SAVEPOINT one_write")
        try:
            result = write.work(self._connection)
        except Exception as error:
            if not self._connection.in_transaction:
                raise
            self._connection.execute("ROLLBACK TO one_write")
            result = _failure(write, error)
        self._connection.execute("RELEASE one_write")
        return result

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def run_writer(
    queue: SimpleQueue[Write | None],
    committer: Committer,
    call_from_thread: Callable[..., Any],
    closed: Callable[[], None],
) -> None:
    """Take writes until C{None}, commit them in groups; the body of the writer thread.

    Each group's Deferreds are fired through one C{call_from_thread}; after C{None} everything that
    was asked for before is committed, the connection is closed, and C{closed} is called.
    """
    ending = False
    while not ending:
        waiting: list[Write | None] = [queue.get()]
        while len(waiting) < GROUP_LIMIT:
            try:
                waiting.append(queue.get_nowait())
            except Empty:
                break
        ending = waiting[-1] is None
        for group in _grouped([write for write in waiting if write is not None]):
            call_from_thread(deliver, committer.commit(group))
    committer.close()
    call_from_thread(closed)


def _grouped(writes: Sequence[Write]) -> list[list[Write]]:
    """Keep the order; an unfenced or bare write stands alone."""
    groups: list[list[Write]] = []
    for write in writes:
        if groups and not _stands_alone(write) and not _stands_alone(groups[-1][0]):
            groups[-1].append(write)
        else:
            groups.append([write])
    return groups


def _stands_alone(write: Write) -> bool:
    return write.bare or write.epoch is not None


def _failure(write: Write, error: Exception) -> Failure:
    if isinstance(error, sqlite3.Error):
        full = "is full" in str(error)
        refusal = (
            StoreFull(f"no space is left for the database ({write.name})")
            if full
            else StoreError(f"the database refused a write ({write.name}: {error})")
        )
        refusal.__cause__ = error
        return Failure(refusal)
    return Failure(error)
