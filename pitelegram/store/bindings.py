"""Whose Thread is whose, and who sent which message."""

from __future__ import annotations

import builtins
import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from zope.interface import implementer

from pitelegram.errors import StoreError
from pitelegram.store.database import Database
from pitelegram.store.interfaces import IBindings
from pitelegram.store.rows import Binding

Target = tuple[int, "int | None"]

_BINDING = (
    "SELECT binding_key, kind, directory, chat_id, thread_id, slot, thread_name, title,"
    " user_title, manual_name, suffixed, closed"
    " FROM bindings"
)


@implementer(IBindings)
@attrs.define(eq=False)
class Bindings:
    """See L{IBindings}.

    @param database: the leader's store.
    """

    _database: Database

    def get(self, binding_key: str) -> Binding | None:
        """Return a binding's row."""
        rows = self._database.read(f"{_BINDING} WHERE binding_key = ?", (binding_key,))
        return _binding(rows[0]) if rows else None

    def list(self) -> list[Binding]:
        """Return all bindings by key."""
        rows = self._database.read(f"{_BINDING} ORDER BY binding_key")
        return [_binding(row) for row in rows]

    def by_target(self, chat_id: int, thread_id: int | None) -> Binding | None:
        """Return the binding that owns a chat's Thread (None: the chat itself)."""
        rows = self._database.read(
            f"{_BINDING} WHERE chat_id = ? AND coalesce(thread_id, 0) = ?",
            (chat_id, thread_id or 0),
        )
        return _binding(rows[0]) if rows else None

    def ensure(self, binding_key: str, kind: str, directory: str | None) -> Deferred[Binding]:
        """Create the row if it is missing; fires with it."""
        now = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> Binding:
            connection.execute(
                "INSERT OR IGNORE INTO bindings (binding_key, kind, directory, updated_ms)"
                " VALUES (?, ?, ?, ?)",
                (binding_key, kind, directory, now),
            )
            found = connection.execute(f"{_BINDING} WHERE binding_key = ?", (binding_key,))
            return _binding(found.fetchone())

        return self._database.write("ensure binding", work)

    def assign_slot(self, binding_key: str, slot: str, thread_name: str) -> Deferred[None]:
        """Give a binding its slot and palette name.

        @raise StoreError: another binding has the slot, or there is no such binding.
        """
        return self._change(binding_key, slot=slot, thread_name=thread_name)

    def set_target(
        self,
        binding_key: str,
        chat_id: int,
        thread_id: int | None,
        expected: Target | None,
    ) -> Deferred[bool]:
        """Compare-and-swap on the row's previous target.

        Takes the target from another binding.  Fires with False, and changes nothing, when the
        row's target is not C{expected} or there is no such row.
        """
        now = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> bool:
            if not _has_target(connection, binding_key, expected):
                return False
            _give_target(connection, binding_key, (chat_id, thread_id), now)
            return True

        return self._database.write("set target", work)

    def set_title(
        self, binding_key: str, title: str, target: Target | None = None
    ) -> Deferred[None]:
        """Remember the Thread's last known title.

        @param target: the Thread that got it; nothing changes when the binding has another by now.
        """
        if target is None:
            return self._change(binding_key, title=title)
        return self._changed_in(binding_key, target, title=title).addCallback(lambda _: None)

    def set_user_title(
        self, binding_key: str, target: Target, title: str, keep: bool
    ) -> Deferred[None]:
        """The user named a Thread; C{keep}: it is to stay called so.

        Nothing changes when the Thread is another's by now.
        """
        changed = self._changed_in(
            binding_key, target, title=title, user_title=title if keep else None
        )
        return changed.addCallback(lambda _: None)

    def set_manual_name(
        self, binding_key: str, target: Target, name: str | None, title: str
    ) -> Deferred[bool]:
        """Keep a name that was given by C{/name} (None: none any more) with the title that follows.

        What the user called the Thread himself is replaced.  Fires with False, and changes nothing,
        when the Thread is another's by now.
        """
        return self._changed_in(binding_key, target, title=title, user_title=None, manual_name=name)

    def set_closed(self, binding_key: str, target: Target, closed: bool) -> Deferred[bool]:
        """The user closed a Thread, or opened it again; False when it is another's by now."""
        return self._changed_in(binding_key, target, closed=int(closed))

    def set_directory(
        self, binding_key: str, expected: str | None, directory: str
    ) -> Deferred[bool]:
        """Compare-and-swap on the directory that a binding works in."""
        row = (directory, self._database.now_ms(), binding_key, expected)

        def work(connection: sqlite3.Connection) -> bool:
            changed = connection.execute(
                "UPDATE bindings SET directory = ?, updated_ms = ?"
                " WHERE binding_key = ? AND directory IS ?",
                row,
            )
            return changed.rowcount == 1

        return self._database.write("set directory", work)

    def set_suffixed(self, binding_keys: Iterable[str]) -> Deferred[None]:
        """These titles show their letters from now on; nothing takes that back."""
        rows = [(key,) for key in binding_keys]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany("UPDATE bindings SET suffixed = 1 WHERE binding_key = ?", rows)

        return self._database.write("set suffixed", work)

    def clear_target(self, binding_key: str, expected: Target) -> Deferred[bool]:
        """Compare-and-swap to no target."""
        now = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> bool:
            if not _has_target(connection, binding_key, expected):
                return False
            connection.execute(
                "UPDATE bindings SET chat_id = NULL, thread_id = NULL, updated_ms = ?"
                " WHERE binding_key = ?",
                (now, binding_key),
            )
            return True

        return self._database.write("clear target", work)

    def set_inactive(self, binding_key: str, since_ms: int | None) -> Deferred[None]:
        """Remember since when no process of the binding lives; None: one does."""
        return self._change(binding_key, inactive_since_ms=since_ms)

    def inactive(self) -> dict[str, int]:
        """Return since when (ms) the bindings without a living process have none, by key."""
        rows = self._database.read(
            "SELECT binding_key, inactive_since_ms FROM bindings WHERE inactive_since_ms IS NOT NULL"
        )
        return {row["binding_key"]: row["inactive_since_ms"] for row in rows}

    def forget(self, binding_key: str) -> Deferred[None]:
        """Delete the binding and all that is kept of it; nobody is left to confirm to."""

        def work(connection: sqlite3.Connection) -> None:
            for table in ("bindings", "workers", "provisions", "attachments"):
                connection.execute(f"DELETE FROM {table} WHERE binding_key = ?", (binding_key,))
            connection.execute(
                "UPDATE journal SET confirmed = 1 WHERE state = 'settled' AND confirmed = 0"
                " AND recipient IS NOT NULL AND recipient = ?",
                (binding_key,),
            )

        return self._database.write("forget binding", work)

    def record_worker(
        self,
        binding_key: str,
        worker_id: str,
        kind: str,
        pid: int,
        birth: str,
        generation: str,
        instance_id: str,
    ) -> Deferred[None]:
        """Keep the newest registration of a binding, which is not inactive any more."""
        now = self._database.now_ms()
        row = (binding_key, worker_id, kind, pid, birth, generation, instance_id, now)

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT OR REPLACE INTO workers (binding_key, worker_id, kind, pid, birth,"
                " generation, instance_id, registered_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
            # A life between two looks at it counts: whoever deletes Threads goes by this.
            connection.execute(
                "UPDATE bindings SET inactive_since_ms = NULL WHERE binding_key = ?", (binding_key,)
            )

        return self._database.write("record worker", work)

    def last_worker(self, binding_key: str) -> dict[str, Any] | None:
        """Return the newest registration: the columns of C{workers}."""
        rows = self._database.read("SELECT * FROM workers WHERE binding_key = ?", (binding_key,))
        return dict(rows[0]) if rows else None

    def begin_provision(self, binding_key: str, chat_id: int, title: str) -> Deferred[None]:
        """Commit the intent to make a Thread, before the call."""
        row = (binding_key, chat_id, title, self._database.now_ms())

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT OR REPLACE INTO provisions (binding_key, chat_id, title, state, started_ms)"
                " VALUES (?, ?, ?, 'in-flight', ?)",
                row,
            )

        return self._database.write("begin provision", work)

    def provisions(self) -> builtins.list[dict[str, Any]]:
        """Return the open intents, oldest first: the columns of C{provisions}."""
        rows = self._database.read("SELECT * FROM provisions ORDER BY started_ms, binding_key")
        return [dict(row) for row in rows]

    def mark_ambiguous(self, binding_key: str) -> Deferred[None]:
        """Nobody can tell whether the Thread was made."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE provisions SET state = 'ambiguous' WHERE binding_key = ?", (binding_key,)
            )

        return self._database.write("mark ambiguous", work)

    def end_provision(self, binding_key: str, thread_id: int | None) -> Deferred[None]:
        """Remove the intent; with a thread id also make it the binding's target and title."""
        now = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> None:
            found = connection.execute(
                "SELECT chat_id, title FROM provisions WHERE binding_key = ?", (binding_key,)
            ).fetchone()
            connection.execute("DELETE FROM provisions WHERE binding_key = ?", (binding_key,))
            if thread_id is None:
                return
            if found is None:
                raise StoreError("there is no intent to make that Thread")
            _give_target(connection, binding_key, (found["chat_id"], thread_id), now)
            connection.execute(
                "UPDATE bindings SET title = ? WHERE binding_key = ?",
                (found["title"], binding_key),
            )

        return self._database.write("end provision", work)

    def remember_messages(
        self, chat_id: int, message_ids: Iterable[int], binding_key: str, outgoing: bool
    ) -> Deferred[None]:
        """Remember whom messages belong to (30 days)."""
        now = self._database.now_ms()
        rows = [(chat_id, each, binding_key, int(outgoing), now) for each in message_ids]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "INSERT OR REPLACE INTO messages (chat_id, message_id, binding_key, outgoing,"
                " at_ms) VALUES (?, ?, ?, ?, ?)",
                rows,
            )

        return self._database.write("remember messages", work)

    def message_owner(self, chat_id: int, message_id: int) -> tuple[str, bool] | None:
        """Return C{(binding_key, outgoing)}, or None."""
        rows = self._database.read(
            "SELECT binding_key, outgoing FROM messages WHERE chat_id = ? AND message_id = ?",
            (chat_id, message_id),
        )
        return (rows[0]["binding_key"], bool(rows[0]["outgoing"])) if rows else None

    def forget_messages(self, before_ms: int, limit: int) -> Deferred[int]:
        """Delete what is known of messages older than that; fires with how many rows went."""

        def work(connection: sqlite3.Connection) -> int:
            return connection.execute(
                "DELETE FROM messages WHERE (chat_id, message_id) IN"
                " (SELECT chat_id, message_id FROM messages WHERE at_ms < ? LIMIT ?)",
                (before_ms, limit),
            ).rowcount

        return self._database.write("forget messages", work)

    def _changed_in(self, binding_key: str, target: Target, **values: object) -> Deferred[bool]:
        """Change a row while its target is that one; fires with whether it was."""
        assignments = ", ".join(f"{column} = ?" for column in values)
        parameters = (*values.values(), self._database.now_ms(), binding_key)

        def work(connection: sqlite3.Connection) -> bool:
            if not _has_target(connection, binding_key, target):
                return False
            connection.execute(
                f"UPDATE bindings SET {assignments}, updated_ms = ? WHERE binding_key = ?",
                parameters,
            )
            return True

        return self._database.write("change binding", work)

    def _change(self, binding_key: str, **values: object) -> Deferred[None]:
        assignments = ", ".join(f"{column} = ?" for column in values)
        parameters = (*values.values(), self._database.now_ms(), binding_key)
        work = _update_one(
            f"UPDATE bindings SET {assignments}, updated_ms = ? WHERE binding_key = ?", parameters
        )
        return self._database.write("change binding", work)


def _binding(row: sqlite3.Row) -> Binding:
    values = dict(row)
    flags = {name: bool(values[name]) for name in ("suffixed", "closed")}
    return Binding(**{**values, **flags})


def _update_one(sql: str, parameters: tuple[object, ...]) -> Callable[[sqlite3.Connection], None]:
    def work(connection: sqlite3.Connection) -> None:
        if connection.execute(sql, parameters).rowcount != 1:
            raise StoreError("there is no such binding")

    return work


def _has_target(connection: sqlite3.Connection, binding_key: str, expected: Target | None) -> bool:
    row = connection.execute(
        "SELECT chat_id, thread_id FROM bindings WHERE binding_key = ?", (binding_key,)
    ).fetchone()
    if row is None:
        return False
    current = None if row["chat_id"] is None else (row["chat_id"], row["thread_id"])
    return current == (None if expected is None else tuple(expected))


def _give_target(
    connection: sqlite3.Connection, binding_key: str, target: Target, now: int
) -> None:
    connection.execute(
        "UPDATE bindings SET chat_id = NULL, thread_id = NULL, updated_ms = ?"
        " WHERE chat_id = ? AND coalesce(thread_id, 0) = ? AND binding_key <> ?",
        (now, target[0], target[1] or 0, binding_key),
    )
    connection.execute(
        "UPDATE bindings SET chat_id = ?, thread_id = ?, user_title = NULL, title = NULL,"
        " closed = 0, updated_ms = ?, epoch = (SELECT epoch FROM leader WHERE one = 1)"
        " WHERE binding_key = ?",
        (*target, now, binding_key),
    )
