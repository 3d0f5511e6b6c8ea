"""Choosers: questions for whom a message is, and what was answered.

States and steps are drawn in C{docs/machines/chooser.md}; one that is done has no row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import attrs
from twisted.internet.defer import Deferred

from pitelegram.errors import StoreError
from pitelegram.store.database import Database

THREAD = "thread"
COMMAND = "command"

FORWARD = "forward"
RESTORE = "restore"

BOUND = "bound"
HOME = "home"
MAKING = "making"
WAITING = "waiting"

_CHOOSER = (
    "SELECT chooser_id, place, kind, chat_id, thread_id, source_seq, command, expires_ms,"
    " message_id, state, choice, recipient, old_thread_id FROM choosers"
)
_DEFERRED = "recipient IS NULL AND state NOT IN ('settled', 'failed')"

_AGAINST = (
    (
        BOUND,
        "SELECT 1 FROM bindings WHERE chat_id = :chat AND coalesce(thread_id, 0) = :thread",
    ),
    (HOME, "SELECT 1 FROM attachments WHERE chat_id = :chat AND thread_id = :thread"),
    (
        WAITING,
        "SELECT 1 FROM journal INDEXED BY journal_live WHERE state <> 'settled'"
        " AND state <> 'failed' AND kind <> 'callback_query'"
        " AND chat_id = :chat AND thread_id = :thread",
    ),
    (MAKING, "SELECT 1 FROM provisions WHERE chat_id = :chat"),
)
"""What speaks against deleting a Thread, the most lasting reason first."""


@attrs.frozen(kw_only=True)
class Chooser:
    """One question.

    @ivar place: what it is about: one chooser at a time for each.
    @ivar source_seq: the oldest update that it was made for.
    @ivar command: for one command, its exact text.
    @ivar message_id: the message that asks, once it is known to be there.
    @ivar old_thread_id: where the chosen worker was before a restore.
    """

    chooser_id: str
    place: str
    kind: str
    chat_id: int
    thread_id: int | None
    source_seq: int
    command: str = ""
    expires_ms: int | None = None
    message_id: int | None = None
    state: str = "open"
    choice: str | None = None
    recipient: str | None = None
    old_thread_id: int | None = None


@attrs.define(eq=False)
class Choosers:
    """The choosers that are not done.

    @param database: the leader's store.
    """

    _database: Database

    def all(self) -> list[Chooser]:
        """Return every chooser, the oldest source first."""
        rows = self._database.read(f"{_CHOOSER} ORDER BY source_seq, chooser_id")
        return [Chooser(**dict(row)) for row in rows]

    def rows(self, chooser_id: str) -> list[int]:
        """Return the C{seq} of the updates that a choice was made for."""
        found = self._database.read(
            "SELECT seq FROM chooser_rows WHERE chooser_id = ? ORDER BY seq", (chooser_id,)
        )
        return [row["seq"] for row in found]

    def remaining(self, chooser_id: str) -> tuple[int, int]:
        """Return how many chosen updates are not over yet, and how many have failed."""
        found = self._database.read(
            "SELECT count(*) FILTER (WHERE j.state NOT IN ('settled', 'failed')) AS waiting,"
            " count(*) FILTER (WHERE j.state = 'failed') AS failed"
            " FROM chooser_rows AS r JOIN journal AS j ON j.seq = r.seq WHERE r.chooser_id = ?",
            (chooser_id,),
        )[0]
        return found["waiting"], found["failed"]

    def open(self, chooser: Chooser) -> Deferred[None]:
        """Begin to ask.

        @raise StoreError: that place has a chooser.
        """
        now = self._database.now_ms()
        values = {**attrs.asdict(chooser), "now": now}

        def work(connection: sqlite3.Connection) -> None:
            try:
                connection.execute(
                    "INSERT INTO choosers (chooser_id, place, kind, chat_id, thread_id, source_seq,"
                    " command, expires_ms, state, changed_ms) VALUES (:chooser_id, :place, :kind,"
                    " :chat_id, :thread_id, :source_seq, :command, :expires_ms, 'open', :now)",
                    values,
                )
            except sqlite3.IntegrityError:
                raise StoreError("that place has a chooser already") from None

        return self._database.write("open a chooser", work)

    def sent(self, chooser_id: str, message_id: int) -> Deferred[None]:
        """The question is in the chat, as that message."""
        return self._step(
            "show a chooser", "state = 'sent', message_id = ?", chooser_id, "open", (message_id,)
        )

    def unsent(self, chooser_id: str) -> Deferred[None]:
        """Its message is gone; it is to be asked again."""
        return self._step("miss a chooser", "state = 'open', message_id = NULL", chooser_id, "sent")

    def choose(
        self,
        chooser_id: str,
        choice: str,
        recipient: str,
        old_thread_id: int | None,
        pins: Sequence[tuple[int, str]],
    ) -> Deferred[list[int]]:
        """Take the answer: the deferred updates belong to C{recipient}, with their delivery ids.

        Fires with the C{seq} of those that were still free, which are C{forwarding} now.

        @raise StoreError: nothing changed, because it was answered already, its Thread belongs to
            somebody, or no update waits any more.
        """
        now = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> list[int]:
            _step(
                connection,
                "state = 'dispatching', choice = ?, recipient = ?, old_thread_id = ?",
                (choice, recipient, old_thread_id, now),
                chooser_id,
                "sent",
            )
            _check_unbound(connection, chooser_id)
            pinned = _pin(connection, recipient, pins)
            if not pinned:
                raise StoreError("no message waits there any more")
            connection.executemany(
                "INSERT INTO chooser_rows (seq, chooser_id) VALUES (?, ?)",
                [(seq, chooser_id) for seq in pinned],
            )
            return pinned

        return self._database.write("choose", work)

    def put_back(self, chooser_id: str) -> Deferred[None]:
        """The answer cannot be followed, and none of its updates was offered to anybody."""
        now = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE journal SET state = 'held', recipient = NULL, delivery_id = NULL"
                " WHERE state NOT IN ('settled', 'failed') AND seq IN"
                " (SELECT seq FROM chooser_rows WHERE chooser_id = ?)",
                (chooser_id,),
            )
            _reopen(connection, chooser_id, "dispatching", now)

        return self._database.write("put a choice back", work)

    def returned(self, chooser_id: str, seq: int) -> Deferred[None]:
        """An update is proven not to be with the chosen worker, and free again."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "DELETE FROM chooser_rows WHERE chooser_id = ? AND seq = ?", (chooser_id, seq)
            )

        return self._database.write("return an update", work)

    def reopen(self, chooser_id: str, state: str) -> Deferred[None]:
        """Ask again, until the same deadline: there are updates that nobody was chosen for.

        @param state: the state that it must be in.
        """
        now = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> None:
            _reopen(connection, chooser_id, state, now)

        return self._database.write("reopen a chooser", work)

    def handed(self, chooser_id: str) -> Deferred[None]:
        """All chosen updates are over; what is left is to tidy up."""
        return self._step("end a choice", "state = 'cleaning'", chooser_id, "dispatching")

    def claim(self, chooser_id: str, chat_id: int, thread_id: int) -> Deferred[str | None]:
        """Prove, in this transaction and under the present epoch, that a Thread may be deleted.

        Fires with None, or with what speaks against it: L{BOUND}, L{HOME} (a worker may want to go
        back there), L{WAITING} (an update in it that is no press is not over) or L{MAKING} (it may
        be one that is being made).

        @raise StoreError: the chooser is not tidying up.
        """
        place = {"chat": chat_id, "thread": thread_id}

        def work(connection: sqlite3.Connection) -> str | None:
            if _state(connection, chooser_id) != "cleaning":
                raise StoreError("that chooser has nothing to delete")
            for reason, query in _AGAINST:
                if connection.execute(f"{query} LIMIT 1", place).fetchone() is not None:
                    return reason
            return None

        return self._database.write("claim a chooser's Thread", work)

    def end(self, chooser_id: str | None, settle: Sequence[int] = ()) -> Deferred[None]:
        """Nothing is left to ask; exactly those of the updates settle that are still deferred."""
        now = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "UPDATE journal SET state = 'settled', body = NULL, next_attempt_ms = NULL,"
                f" settled_ms = ?, confirmed = 1 WHERE seq = ? AND {_DEFERRED}",
                [(now, seq) for seq in settle],
            )
            connection.execute("DELETE FROM choosers WHERE chooser_id = ?", (chooser_id,))

        return self._database.write("end a chooser", work)

    def _step(
        self,
        name: str,
        assignments: str,
        chooser_id: str,
        state: str,
        parameters: tuple[object, ...] = (),
    ) -> Deferred[None]:
        values = (*parameters, self._database.now_ms())

        def work(connection: sqlite3.Connection) -> None:
            _step(connection, assignments, values, chooser_id, state)

        return self._database.write(name, work)


def _step(
    connection: sqlite3.Connection,
    assignments: str,
    parameters: tuple[object, ...],
    chooser_id: str,
    state: str,
) -> None:
    changed = connection.execute(
        f"UPDATE choosers SET {assignments}, changed_ms = ? WHERE chooser_id = ? AND state = ?",
        (*parameters, chooser_id, state),
    )
    if changed.rowcount != 1:
        raise StoreError(f"the chooser is not {state} any more")


def _state(connection: sqlite3.Connection, chooser_id: str) -> str | None:
    row = connection.execute(
        "SELECT state FROM choosers WHERE chooser_id = ?", (chooser_id,)
    ).fetchone()
    return None if row is None else str(row["state"])


def _check_unbound(connection: sqlite3.Connection, chooser_id: str) -> None:
    bound = connection.execute(
        "SELECT 1 FROM choosers AS c JOIN bindings AS b ON b.chat_id = c.chat_id"
        " AND coalesce(b.thread_id, 0) = coalesce(c.thread_id, 0) WHERE c.chooser_id = ?",
        (chooser_id,),
    ).fetchone()
    if bound is not None:
        raise StoreError("that Thread belongs to a worker now")


def _pin(
    connection: sqlite3.Connection, recipient: str, pins: Sequence[tuple[int, str]]
) -> list[int]:
    """Give updates to a binding; returns the C{seq} of those that were still free."""
    pinned = []
    for seq, delivery_id in pins:
        changed = connection.execute(
            "UPDATE journal SET state = 'forwarding', recipient = ?, delivery_id = ?,"
            f" next_attempt_ms = NULL WHERE seq = ? AND {_DEFERRED}",
            (recipient, delivery_id, seq),
        )
        if changed.rowcount == 1:
            pinned.append(seq)
    return pinned


def _reopen(connection: sqlite3.Connection, chooser_id: str, state: str, now: int) -> None:
    connection.execute("DELETE FROM chooser_rows WHERE chooser_id = ?", (chooser_id,))
    _step(
        connection,
        "state = CASE WHEN message_id IS NULL THEN 'open' ELSE 'sent' END, choice = NULL,"
        " recipient = NULL, old_thread_id = NULL",
        (now,),
        chooser_id,
        state,
    )
