"""What a worker has to say and has not rendered: raw answers, their buttons, the agent's files."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from zope.interface import implementer

from pitelegram.errors import StoreError
from pitelegram.kernel.jsonio import dumps, loads
from pitelegram.store.database import Database
from pitelegram.store.rows import AttachedFile, ButtonRow
from pitelegram.store.worker_interfaces import IOutgoing

BUTTONS_KEPT_MS = 24 * 3_600_000
"""A button may be pressed for a day (bridge facts, "Buttons at run time")."""


@implementer(IOutgoing)
@attrs.define(eq=False)
class Outgoing:
    """See L{IOutgoing}.

    @param database: the worker's store.
    """

    database: Database

    def raw(self) -> dict[str, Any] | None:
        """Return the oldest raw answer, as L{IInbox.answers} would."""
        rows = self.database.read(
            "SELECT delivery_id, kind, delivery FROM answers WHERE kind = 'raw' ORDER BY seq LIMIT 1"
        )
        return {**dict(rows[0]), "delivery": loads(rows[0]["delivery"])} if rows else None

    def composed(
        self,
        delivery_id: str,
        answers: Sequence[dict[str, Any]],
        buttons: Sequence[ButtonRow] = (),
        attached: Sequence[int] = (),
    ) -> Deferred[None]:
        """Put deliveries in a raw answer's place, with their buttons and without their files."""
        now = self.database.now_ms()
        rows = [
            (each["delivery_id"], each["kind"], dumps(each["delivery"]), part)
            for part, each in enumerate(answers)
        ]

        def work(connection: sqlite3.Connection) -> None:
            gone = connection.execute(
                "DELETE FROM answers WHERE delivery_id = ? AND kind = 'raw'"
                " RETURNING seq, created_ms",
                (delivery_id,),
            ).fetchone()
            if gone is None:
                raise StoreError("this answer is not raw")
            connection.executemany(
                "INSERT INTO answers (delivery_id, kind, delivery, part, seq, created_ms)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                [(*row, *gone) for row in rows],
            )
            _add_buttons(connection, buttons, now)
            connection.executemany(
                "DELETE FROM attached WHERE seq = ?", [(seq,) for seq in attached]
            )

        return self.database.write("composed", work)

    def add_buttons(self, buttons: Sequence[ButtonRow]) -> Deferred[None]:
        """Remember buttons of a message that is about to be sent."""
        now = self.database.now_ms()
        return self.database.write("add buttons", lambda found: _add_buttons(found, buttons, now))

    def button(self, key: str) -> ButtonRow | None:
        """Return a button that may still be known, pressed or not."""
        rows = self.database.read(
            "SELECT key, label, prompt, style, keyboard, pressed, created_ms FROM buttons"
            " WHERE key = ? AND created_ms > ?",
            (key, self.database.now_ms() - BUTTONS_KEPT_MS),
        )
        if not rows:
            return None
        values = dict(rows[0])
        return ButtonRow(
            **{
                **values,
                "keyboard": loads(values["keyboard"]),
                "pressed": bool(values["pressed"]),
            }
        )

    def press(self, key: str, seq: int, prompt: str, content: dict[str, Any]) -> Deferred[bool]:
        """Mark a button and hold the row of its press; fires with False when it was pressed before.

        @raise StoreError: the row is not C{admitted}; the button is not marked then.
        """
        held = (prompt, dumps(content), seq)

        def work(connection: sqlite3.Connection) -> bool:
            marked = connection.execute(
                "UPDATE buttons SET pressed = 1 WHERE key = ? AND pressed = 0", (key,)
            )
            if marked.rowcount != 1:
                return False
            changed = connection.execute(
                "UPDATE inbox SET state = 'held', lane = 'priority', prompt = ?, content = ?"
                " WHERE seq = ? AND state = 'admitted'",
                held,
            )
            if changed.rowcount != 1:
                raise StoreError("this press is not in a state for that")
            return True

        return self.database.write("press", work)

    def attach(self, files: Sequence[AttachedFile]) -> Deferred[None]:
        """Remember files for the next answer, all or none; their C{seq} is not looked at."""
        now = self.database.now_ms()
        values = [
            (file.path, file.name, file.mime, file.size, file.photo, file.caption, now)
            for file in files
        ]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "INSERT INTO attached (path, name, mime, size, photo, caption, created_ms)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                values,
            )

        return self.database.write("attach", work)

    def attached(self) -> list[AttachedFile]:
        """Return the files that wait for an answer, in the agent's order."""
        rows = self.database.read(
            "SELECT seq, path, name, mime, size, photo, caption FROM attached ORDER BY seq"
        )
        return [AttachedFile(**{**dict(row), "photo": bool(row["photo"])}) for row in rows]

    def forget(self, now_ms: int) -> Deferred[int]:
        """Retention of buttons; fires with how many went."""

        def work(connection: sqlite3.Connection) -> int:
            return connection.execute(
                "DELETE FROM buttons WHERE created_ms <= ?", (now_ms - BUTTONS_KEPT_MS,)
            ).rowcount

        return self.database.write("forget buttons", work)


def _add_buttons(connection: sqlite3.Connection, buttons: Sequence[ButtonRow], now: int) -> None:
    connection.executemany(
        "INSERT INTO buttons (key, label, prompt, style, keyboard, created_ms)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        [(b.key, b.label, b.prompt, b.style, dumps(b.keyboard), now) for b in buttons],
    )
