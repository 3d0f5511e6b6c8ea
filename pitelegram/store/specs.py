"""Desired workers, and each attempt to make one."""

from __future__ import annotations

import builtins
import sqlite3
from collections.abc import Sequence

import attrs
from twisted.internet.defer import Deferred
from zope.interface import implementer

from pitelegram.errors import StoreError
from pitelegram.store.commands import mark_effect
from pitelegram.store.database import Database
from pitelegram.store.interfaces import ISpecs
from pitelegram.store.rows import Spawn, Spec

_SPEC = (
    "SELECT spec_id, name, directory, desired, trust, restart, slot_id, session_id,"
    " session_file, session_entries, restarts, crashes, failure FROM specs"
)
_SPAWN = (
    "SELECT spawn_id, spec_id, credential, state, pid, birth, pi_pid, pi_birth, intended_ms"
    " FROM spawns WHERE state <> 'ended' AND spec_id = ? ORDER BY intended_ms DESC, rowid DESC"
)


@implementer(ISpecs)
@attrs.define(eq=False)
class Specs:
    """See L{ISpecs}.

    @param database: the leader's store.
    """

    _database: Database

    def list(self) -> list[Spec]:
        """Return all specs by name."""
        return self._find("ORDER BY name")

    def get(self, spec_id: str) -> Spec | None:
        """Return a spec by its id."""
        return next(iter(self._find("WHERE spec_id = ?", (spec_id,))), None)

    def by_name(self, name: str) -> Spec | None:
        """Return the spec of that name."""
        return next(iter(self._find("WHERE name = ?", (name,))), None)

    def by_directory(self, directory: str) -> Spec | None:
        """Return the spec of that (real) directory."""
        return next(iter(self._find("WHERE directory = ?", (directory,))), None)

    def recent(self) -> builtins.list[str]:
        """Return the directories of all specs, the last changed first."""
        rows = self._database.read("SELECT directory FROM specs ORDER BY changed_ms DESC, name")
        return [row["directory"] for row in rows]

    def create(self, spec_id: str, name: str, directory: str) -> Deferred[Spec]:
        """Store a new, stopped spec.

        @raise StoreError: the name or the directory is taken.
        """
        now = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> Spec:
            connection.execute(
                "INSERT INTO specs (spec_id, name, directory, desired, created_ms, changed_ms)"
                " VALUES (?, ?, ?, 'stopped', ?, ?)",
                (spec_id, name, directory, now, now),
            )
            row = connection.execute(f"{_SPEC} WHERE spec_id = ?", (spec_id,)).fetchone()
            return Spec(**dict(row))

        return self._database.write("create spec", work)

    def want(
        self, spec_id: str, desired: str, slot_id: str | None, request_id: str | None = None
    ) -> Deferred[None]:
        """Change C{desired}: an operator's start (with a new slot id) or stop (slot id None).

        @param request_id: the control command that asked for it.
        """
        now = self._database.now_ms()

        def work(connection: sqlite3.Connection) -> None:
            changed = connection.execute(
                "UPDATE specs SET desired = ?, slot_id = ?, changed_ms = ? WHERE spec_id = ?",
                (desired, slot_id, now, spec_id),
            )
            if changed.rowcount != 1:
                raise StoreError("there is no such spec")
            mark_effect(connection, request_id, now)

        return self._database.write("want spec", work)

    def set_session(
        self, spec_id: str, session_id: str | None, session_file: str | None, entries: int
    ) -> Deferred[None]:
        """Remember the current session."""
        return self._change(
            "set session",
            "UPDATE specs SET session_id = ?, session_file = ?, session_entries = ?,"
            " changed_ms = ? WHERE spec_id = ?",
            (session_id, session_file, entries, self._database.now_ms(), spec_id),
        )

    def set_record(
        self, spec_id: str, restarts: int, crashes: str, failure: str | None
    ) -> Deferred[None]:
        """Remember how often it ended, when (a JSON list of ms), and why it failed for good."""
        return self._change(
            "set record",
            "UPDATE specs SET restarts = ?, crashes = ?, failure = ? WHERE spec_id = ?",
            (restarts, crashes, failure, spec_id),
            any_=True,
        )

    def forget(self, spec_id: str) -> Deferred[None]:
        """Delete the spec with its spawns."""
        return self._change("forget", "DELETE FROM specs WHERE spec_id = ?", (spec_id,), any_=True)

    def intend(self, spawn_id: str, spec_id: str, credential: bytes) -> Deferred[None]:
        """Commit the intent to spawn, before the process is made."""
        return self._change(
            "intend",
            "INSERT INTO spawns (spawn_id, spec_id, credential, state, intended_ms)"
            " VALUES (?, ?, ?, 'intended', ?)",
            (spawn_id, spec_id, credential, self._database.now_ms()),
        )

    def made(self, spawn_id: str, pid: int, birth: str) -> Deferred[None]:
        """The process exists.  Says nothing new once the spawn registered or ended."""
        return self._change(
            "made",
            "UPDATE spawns SET state = 'made', pid = ?, birth = ?"
            " WHERE spawn_id = ? AND state = 'intended'",
            (pid, birth, spawn_id),
            any_=True,
        )

    def registered(self, spawn_id: str, pid: int, birth: str) -> Deferred[None]:
        """The process proved the spawn's credential.

        @raise StoreError: the spawn has ended.
        """
        return self._change(
            "registered",
            "UPDATE spawns SET state = 'registered', pid = ?, birth = ?, registered_ms = ?"
            " WHERE spawn_id = ? AND state <> 'ended'",
            (pid, birth, self._database.now_ms(), spawn_id),
        )

    def pi_seen(self, spawn_id: str, pi_pid: int, pi_birth: str) -> Deferred[None]:
        """The worker told which process its Pi is."""
        return self._change(
            "pi seen",
            "UPDATE spawns SET pi_pid = ?, pi_birth = ? WHERE spawn_id = ?",
            (pi_pid, pi_birth, spawn_id),
        )

    def ended(self, spawn_id: str, exit: str) -> Deferred[None]:
        """The process is proven gone; its credential is erased.  The first exit counts."""
        return self._change(
            "ended",
            "UPDATE spawns SET state = 'ended', credential = x'', exit = ?, ended_ms = ?"
            " WHERE spawn_id = ? AND state <> 'ended'",
            (exit, self._database.now_ms(), spawn_id),
            any_=True,
        )

    def live_spawn(self, spec_id: str) -> Spawn | None:
        """Return the newest spawn of this spec that is not C{ended}."""
        return next(iter(self.live_spawns(spec_id)), None)

    def live_spawns(self, spec_id: str) -> builtins.list[Spawn]:
        """Return every spawn of this spec that is not C{ended}, newest first."""
        return [Spawn(**dict(row)) for row in self._database.read(_SPAWN, (spec_id,))]

    def _find(self, condition: str, parameters: Sequence[object] = ()) -> builtins.list[Spec]:
        rows = self._database.read(f"{_SPEC} {condition}", parameters)
        return [Spec(**dict(row)) for row in rows]

    def _change(
        self, name: str, sql: str, parameters: Sequence[object], any_: bool = False
    ) -> Deferred[None]:
        def work(connection: sqlite3.Connection) -> None:
            if connection.execute(sql, parameters).rowcount != 1 and not any_:
                raise StoreError(f"there is no such spec or spawn ({name})")

        return self._database.write(f"{name} spec", work)
