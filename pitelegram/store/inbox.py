"""A worker's inbox, ledger and unsubmitted answers; states in C{docs/durability.md}."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from zope.interface import implementer

from pitelegram.errors import StoreError
from pitelegram.kernel.jsonio import dumps, loads
from pitelegram.store.database import Database
from pitelegram.store.facts import Facts
from pitelegram.store.ledgers import Ledgers
from pitelegram.store.rows import SPREAD, InboxRow, Turn
from pitelegram.store.worker_interfaces import IInbox

_COLUMNS = (
    "seq, delivery_id, source, kind, update_id, chat_id, thread_id, message_id, lane, state,"
    " body, prompt, rpc_id, run_id, mark_file, mark_size, mark_entry, admitted_ms,"
    " head, place, skip, content"
)
_LIVE = ("admitted", "joined", "held", "handed", "uncertain")
_OVER = ("settled", "skipped")
_OPEN = "state IN ('admitted', 'joined', 'held', 'handed', 'uncertain')"

_WAITING = "state IN ('admitted', 'held')"
_UNDECIDED = (
    "SELECT 1 FROM inbox AS part CROSS JOIN inbox AS wish INDEXED BY inbox_message"
    " ON wish.chat_id = part.chat_id AND wish.message_id = part.message_id"
    " WHERE (part.seq = prompt.seq OR part.head = prompt.seq) AND part.kind = 'message'"
    " AND wish.message_id IS NOT NULL AND wish.state = 'admitted'"
    " AND wish.kind IN ('message_reaction', 'edited_message')"
)
_TURNS = (
    f"SELECT seq, lane, coalesce(place, seq * {SPREAD}) AS turn"
    f" FROM inbox AS prompt INDEXED BY inbox_live WHERE state = 'held' AND {_OPEN}"
    f" AND lane = coalesce(?, lane) AND NOT EXISTS ({_UNDECIDED})"
    " ORDER BY CASE lane WHEN 'control' THEN 0 WHEN 'priority' THEN 1 ELSE 2 END, turn"
)
"""Asked whenever a prompt may go, also while thousands of them and of orders about them wait."""

_HOUR_MS = 3_600_000
CONFIRMED_KEPT_MS = 48 * _HOUR_MS
LEDGER_KEPT_MS = 8 * 24 * _HOUR_MS

Answers = Sequence[dict[str, Any]]


@implementer(IInbox)
@attrs.define(eq=False)
class Inbox(Facts, Ledgers):
    """See L{IInbox}.

    @param database: the worker's store.
    """

    _database: Database

    def admit(
        self,
        delivery_id: str,
        source: str,
        kind: str,
        body: bytes,
        prompt: str | None,
        update_id: int | None = None,
        chat_id: int | None = None,
        thread_id: int | None = None,
        message_id: int | None = None,
        lane: str = "normal",
    ) -> Deferred[bool]:
        """Store a delivery; True when the row is new, False when the id was known.

        With a C{prompt} it is C{held} at once, else C{admitted}.
        """
        state = "admitted" if prompt is None else "held"
        row = (delivery_id, source, kind, update_id, chat_id, thread_id, message_id, lane, state)
        values = (*row, body, prompt, self._database.now_ms())

        def work(connection: sqlite3.Connection) -> bool:
            admitted = connection.execute(
                "INSERT INTO inbox (delivery_id, source, kind, update_id, chat_id, thread_id,"
                " message_id, lane, state, body, prompt, admitted_ms)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (delivery_id) DO NOTHING",
                values,
            )
            return admitted.rowcount == 1

        return self._database.write("admit", work)

    def row(self, delivery_id: str) -> InboxRow | None:
        """Return a row by its delivery id."""
        rows = self._database.read(
            f"SELECT {_COLUMNS} FROM inbox WHERE delivery_id = ?", (delivery_id,)
        )
        return _row(rows[0]) if rows else None

    def rows(self, *states: str) -> list[InboxRow]:
        """Return the rows in these states, oldest first."""
        if not set(states) <= {*_LIVE, *_OVER}:
            raise ValueError("no such inbox state")
        names = ", ".join(f"'{state}'" for state in states)
        live = set(states) <= set(_LIVE)
        index, narrow = ("INDEXED BY inbox_live", f" AND {_OPEN}") if live else ("", "")
        found = self._database.read(
            f"SELECT {_COLUMNS} FROM inbox {index} WHERE state IN ({names}){narrow} ORDER BY seq"
        )
        return [_row(row) for row in found]

    def held(self) -> int:
        """Return how many rows are C{held}."""
        found = self._database.read(
            f"SELECT count(*) FROM inbox INDEXED BY inbox_live WHERE state = 'held' AND {_OPEN}"
        )
        return int(found[0][0])

    def waiting(self, seq: int) -> InboxRow | None:
        """Return a row that is C{held} or C{admitted}, None when that number is none (any more)."""
        return self._first(f"seq = ? AND {_WAITING}", (seq,))

    def held_at(self, chat_id: int, message_id: int) -> InboxRow | None:
        """Return the first C{held} row of that message, of whatever kind and source it is."""
        return self._first(
            "chat_id = ? AND message_id = ? AND state = 'held'", (chat_id, message_id)
        )

    def _first(self, condition: str, parameters: Sequence[object]) -> InboxRow | None:
        rows = self._database.read(
            f"SELECT {_COLUMNS} FROM inbox WHERE {condition} ORDER BY seq LIMIT 1", parameters
        )
        return _row(rows[0]) if rows else None

    def by_message(self, chat_id: int, message_id: int) -> InboxRow | None:
        """Return the row of a message (not of its edits, presses or reactions), whatever its state."""
        rows = self._database.read(
            f"SELECT {_COLUMNS} FROM inbox WHERE chat_id = ? AND message_id = ?"
            " AND kind = 'message' ORDER BY source <> 'telegram', seq LIMIT 1",
            (chat_id, message_id),
        )
        return _row(rows[0]) if rows else None

    def turns(self, lane: str | None = None) -> list[Turn]:
        """Return what is C{held}, in one lane or in all, in the order of its turns.

        Left out is what an edit or a reaction is about that is not done yet.
        """
        return [Turn(*row) for row in self._database.read(_TURNS, (lane,))]

    def members(self, head: int) -> list[InboxRow]:
        """Return the rows that are part of another row's prompt, oldest first."""
        found = self._database.read(
            f"SELECT {_COLUMNS} FROM inbox WHERE head = ? ORDER BY seq", (head,)
        )
        return [_row(row) for row in found]

    def hold(
        self,
        seq: int,
        prompt: str,
        content: dict[str, Any] | None = None,
        lane: str | None = None,
    ) -> Deferred[None]:
        """State C{held} with its prompt text (again, with another text, while it is held)."""
        stored = None if content is None else dumps(content)
        return self._change(
            "state = 'held', prompt = ?, content = coalesce(?, content), lane = coalesce(?, lane)",
            "state IN ('admitted', 'held')",
            (prompt, stored, lane, seq),
        )

    def hold_group(
        self, seqs: Sequence[int], prompt: str, content: dict[str, Any]
    ) -> Deferred[None]:
        """The first row is C{held} with a prompt made of all; the others are C{joined} to it.

        What the operator asked for one of them, its lane or that it be skipped, holds for all.

        @raise StoreError: one of them was handed or is over; nothing is changed then.
        """
        head, *others = seqs
        held = (prompt, dumps(content), head)
        joined = [(head, seq, head) for seq in others]

        def work(connection: sqlite3.Connection) -> None:
            changed = connection.execute(
                "UPDATE inbox SET state = 'held', prompt = ?, content = ?"
                " WHERE seq = ? AND state IN ('admitted', 'held')",
                held,
            ).rowcount
            for member in joined:
                _inherit(connection, head, member[1])
                changed += connection.execute(
                    "UPDATE inbox SET state = 'joined', head = ?, prompt = NULL, content = NULL"
                    " WHERE seq = ? AND (state IN ('admitted', 'held')"
                    " OR (state = 'joined' AND head = ?))",
                    member,
                ).rowcount
            if changed != len(joined) + 1:
                raise StoreError("these inbox rows cannot become one prompt any more")

        return self._database.write("hold group", work)

    def change_body(self, seq: int, body: bytes) -> Deferred[None]:
        """A message was edited before its prompt was handed.

        @raise StoreError: it was handed, or is over.
        """
        return self._change("body = ?", "state IN ('admitted', 'joined', 'held')", (body, seq))

    def move(self, seq: int, lane: str) -> Deferred[None]:
        """A row that was not handed goes behind everything that is in that lane.

        @raise StoreError: it was handed, is over, or is part of another's prompt.
        """
        return self._change(
            f"lane = ?, place = 1 + (SELECT max(coalesce(place, seq * {SPREAD})) FROM inbox)",
            _WAITING,
            (lane, seq),
        )

    def mark(self, seq: int, skip: bool) -> Deferred[None]:
        """A row that was not handed is to be dropped, or not, at its turn; it keeps its place.

        @raise StoreError: it was handed, is over, or is part of another's prompt.
        """
        return self._change("skip = ?", _WAITING, (int(skip), seq))

    def hand(
        self,
        seq: int,
        rpc_id: str,
        run_id: str,
        mark_file: str | None,
        mark_size: int,
        mark_entry: str | None,
    ) -> Deferred[None]:
        """State C{handed}; committed before the bytes go to Pi.

        @raise StoreError: the row is not C{held}, so nothing may be handed.
        """
        values = (rpc_id, run_id, mark_file, mark_size, mark_entry, self._database.now_ms(), seq)
        return self._change(
            "state = 'handed', rpc_id = ?, run_id = ?, mark_file = ?, mark_size = ?,"
            " mark_entry = ?, handed_ms = ?",
            "state = 'held'",
            values,
        )

    def unhand(self, seq: int) -> Deferred[None]:
        """Proof that Pi did not take it: C{held} again, mark cleared."""
        return self._change(
            "state = 'held', rpc_id = NULL, run_id = NULL, mark_file = NULL, mark_size = NULL,"
            " mark_entry = NULL, handed_ms = NULL",
            "state = 'handed'",
            (seq,),
        )

    def settle(self, seqs: Iterable[int], answers: Answers = ()) -> Deferred[None]:
        """Settle rows and store C{{"delivery_id","kind","delivery"}} answers, in one commit."""
        return self._finish("settled", seqs, answers)

    def uncertain(self, seqs: Iterable[int], answers: Answers = ()) -> Deferred[None]:
        """Nobody can tell whether Pi ran these; C{answers} carry the notice."""
        wanted = [(seq,) for seq in seqs]
        rows = _answer_rows(answers, self._database.now_ms())

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(
                f"UPDATE inbox SET state = 'uncertain' WHERE seq = ? AND {_OPEN}", wanted
            )
            _add_answers(connection, rows)

        return self._database.write("uncertain", work)

    def skip(self, seqs: Iterable[int]) -> Deferred[None]:
        """State C{skipped}: these will not run."""
        return self._finish("skipped", seqs, ())

    def confirm(self, delivery_ids: Iterable[str]) -> Deferred[None]:
        """The leader settled these; kept 48 h more."""
        now = self._database.now_ms()
        wanted = [(now, delivery_id) for delivery_id in delivery_ids]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "UPDATE inbox SET confirmed_ms = ? WHERE delivery_id = ? AND confirmed_ms IS NULL",
                wanted,
            )

        return self._database.write("confirm", work)

    def add_answer(self, delivery_id: str, kind: str, delivery: dict[str, Any]) -> Deferred[None]:
        """Store one answer; a known id keeps its first content."""
        answer = {"delivery_id": delivery_id, "kind": kind, "delivery": delivery}
        rows = _answer_rows([answer], self._database.now_ms())
        return self._database.write("add answer", lambda found: _add_answers(found, rows))

    def answers(self) -> list[dict[str, Any]]:
        """Return the unsubmitted answers in order: C{delivery_id}, C{kind}, C{delivery} (parsed)."""
        rows = self._database.read(
            "SELECT delivery_id, kind, delivery FROM answers ORDER BY seq, part"
        )
        return [{**dict(row), "delivery": loads(row["delivery"])} for row in rows]

    def forget_answer(self, delivery_id: str) -> Deferred[None]:
        """The leader's durable receipt is there."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM answers WHERE delivery_id = ?", (delivery_id,))

        return self._database.write("forget answer", work)

    def forget(self, now_ms: int) -> Deferred[int]:
        """Retention; fires with how many rows went.

        Ids that are over and were confirmed go after 48 h; ledger rows, and prompts that no leader
        confirms (those of the control socket), after 8 days.
        """
        confirmed, old = now_ms - CONFIRMED_KEPT_MS, now_ms - LEDGER_KEPT_MS

        def work(connection: sqlite3.Connection) -> int:
            over = "state IN ('settled', 'skipped')"
            first = connection.execute(
                f"DELETE FROM inbox WHERE confirmed_ms IS NOT NULL AND confirmed_ms < ? AND {over}",
                (confirmed,),
            )
            second = connection.execute(
                f"DELETE FROM inbox WHERE source <> 'telegram' AND settled_ms < ? AND {over}",
                (old,),
            )
            third = connection.execute("DELETE FROM ledger WHERE at_ms < ?", (old,))
            return first.rowcount + second.rowcount + third.rowcount

        return self._database.write("forget", work)

    def _finish(self, state: str, seqs: Iterable[int], answers: Answers) -> Deferred[None]:
        now = self._database.now_ms()
        wanted = [(state, now, seq, seq) for seq in seqs]
        rows = _answer_rows(answers, now)

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "UPDATE inbox SET state = ?, settled_ms = ?, body = NULL, prompt = NULL,"
                f" content = NULL WHERE (seq = ? OR head = ?) AND {_OPEN}",
                wanted,
            )
            _add_answers(connection, rows)

        return self._database.write(state, work)

    def _change(
        self, assignments: str, condition: str, parameters: Sequence[object]
    ) -> Deferred[None]:
        def work(connection: sqlite3.Connection) -> None:
            changed = connection.execute(
                f"UPDATE inbox SET {assignments} WHERE seq = ? AND {condition}", parameters
            )
            if changed.rowcount != 1:
                raise StoreError("this inbox row is not in a state for that")

        return self._database.write("change inbox", work)


def _inherit(connection: sqlite3.Connection, head: int, member: int) -> None:
    """A member that is not joined yet gives its lane and its mark to the head, each by itself."""
    wishes = "SELECT 1 FROM inbox WHERE seq = ? AND state <> 'joined'"
    connection.execute(
        "UPDATE inbox SET lane = 'priority', place = coalesce((SELECT m.place FROM inbox AS m"
        " WHERE m.seq = ?), place) WHERE seq = ? AND lane = 'normal'"
        f" AND EXISTS ({wishes} AND lane = 'priority')",
        (member, head, member),
    )
    connection.execute(
        f"UPDATE inbox SET skip = 1 WHERE seq = ? AND EXISTS ({wishes} AND skip)", (head, member)
    )


def _row(row: sqlite3.Row) -> InboxRow:
    values = dict(row)
    content = values.pop("content")
    return InboxRow(
        **{**values, "skip": bool(values["skip"])},
        content=None if content is None else loads(content),
    )


def _answer_rows(answers: Answers, now: int) -> list[tuple[object, ...]]:
    return [(each["delivery_id"], each["kind"], dumps(each["delivery"]), now) for each in answers]


def _add_answers(connection: sqlite3.Connection, rows: Sequence[tuple[object, ...]]) -> None:
    connection.executemany(
        "INSERT INTO answers (delivery_id, kind, delivery, created_ms, seq)"
        " VALUES (?, ?, ?, ?, (SELECT coalesce(max(seq), 0) + 1 FROM answers))"
        " ON CONFLICT (delivery_id) DO NOTHING",
        rows,
    )
