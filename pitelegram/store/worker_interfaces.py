"""What a worker's store promises; how writes and reads are done stands in L{pitelegram.store.interfaces}."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from twisted.internet.defer import Deferred
from zope.interface import Interface

from pitelegram.store.rows import AttachedFile, ButtonRow, InboxRow, Turn


class IInbox(Interface):
    """A worker's inbox (C{store.inbox.Inbox}); see C{docs/durability.md} for its states."""

    def admit(
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
        """True when the row is new; False when the id was known (then nothing changes).

        With a C{prompt} the row is C{held} at once, else C{admitted}.
        """

    def row(delivery_id: str) -> InboxRow | None: ...

    def rows(*states: str) -> list[InboxRow]:
        """Rows in these states, oldest first."""

    def by_message(chat_id: int, message_id: int) -> InboxRow | None:
        """The row of a message (not of its edits, presses or reactions), whatever became of it."""

    def held() -> int:
        """How many rows are C{held}."""

    def waiting(seq: int) -> InboxRow | None:
        """The row of that number while it is C{held} or C{admitted}."""

    def held_at(chat_id: int, message_id: int) -> InboxRow | None:
        """The first C{held} row of that message, of whatever kind and source it is."""

    def turns(lane: str | None = None) -> list[Turn]:
        """What is C{held}, in one lane or in all, in the order of its turns.

        Left out is what an edit or a reaction is about that is not done yet.
        """

    def members(head: int) -> list[InboxRow]:
        """The rows that are part of another row's prompt, oldest first."""

    def hold(
        seq: int, prompt: str, content: dict[str, Any] | None = None, lane: str | None = None
    ) -> Deferred[None]:
        """C{held} with its prompt text; None leaves content or lane as they are."""

    def hold_group(seqs: Sequence[int], prompt: str, content: dict[str, Any]) -> Deferred[None]:
        """The first is C{held} with a prompt made of all of them; the others are C{joined} to it.

        What the operator asked for one of them, its lane or that it be skipped, holds for all.
        """

    def change_body(seq: int, body: bytes) -> Deferred[None]:
        """A message was edited before its prompt was handed."""

    def move(seq: int, lane: str) -> Deferred[None]:
        """A C{held} or C{admitted} row goes behind everything that is in that lane."""

    def mark(seq: int, skip: bool) -> Deferred[None]:
        """A C{held} or C{admitted} row is dropped, or not, at its turn; it keeps its place."""

    def hand(
        seq: int,
        rpc_id: str,
        run_id: str,
        mark_file: str | None,
        mark_size: int,
        mark_entry: str | None,
    ) -> Deferred[None]:
        """C{handed}; committed before the bytes go to Pi."""

    def unhand(seq: int) -> Deferred[None]:
        """Proof that Pi did not take it: C{held} again, mark cleared."""

    def settle(seqs: Iterable[int], answers: Sequence[dict[str, Any]] = ()) -> Deferred[None]:
        """Settle rows and store C{{"delivery_id","kind","delivery"}} answers, in one commit."""

    def uncertain(seqs: Iterable[int], answers: Sequence[dict[str, Any]] = ()) -> Deferred[None]:
        """Nobody can tell whether Pi ran these; C{answers} carry the notice."""

    def skip(seqs: Iterable[int]) -> Deferred[None]: ...

    def confirm(delivery_ids: Iterable[str]) -> Deferred[None]:
        """The leader settled these; kept 48 h more."""

    def add_answer(delivery_id: str, kind: str, delivery: dict[str, Any]) -> Deferred[None]: ...

    def answers() -> list[dict[str, Any]]:
        """Unsubmitted answers in order: C{delivery_id}, C{kind}, C{delivery} (parsed).

        One of kind C{raw} is not rendered yet: what stands behind it must not overtake it.
        """

    def forget_answer(delivery_id: str) -> Deferred[None]:
        """The leader's durable receipt is there."""

    def ledger(request_id: str) -> dict[str, Any] | None:
        """C{fingerprint}, C{state}, C{result} (parsed or None)."""

    def ledger_start(request_id: str, fingerprint: str) -> Deferred[None]: ...

    def ledger_finish(request_id: str, result: dict[str, Any]) -> Deferred[None]: ...

    def get_meta(key: str) -> str | None: ...

    def set_meta(key: str, value: str) -> Deferred[None]: ...

    def forget(now_ms: int) -> Deferred[int]:
        """Retention: confirmed ids after 48 h, ledger rows after 8 days."""


class IOutgoing(Interface):
    """What waits to be rendered, in the same file as the inbox (C{store.outgoing.Outgoing})."""

    def raw() -> dict[str, Any] | None:
        """The oldest answer of kind C{raw}."""

    def composed(
        delivery_id: str,
        answers: Sequence[dict[str, Any]],
        buttons: Sequence[ButtonRow] = (),
        attached: Sequence[int] = (),
    ) -> Deferred[None]:
        """Deliveries take a raw answer's place, in one commit with their buttons.

        @param attached: numbers of the files that are part of them now.
        """

    def add_buttons(buttons: Sequence[ButtonRow]) -> Deferred[None]: ...

    def button(key: str) -> ButtonRow | None:
        """A button of the last 24 hours."""

    def press(key: str, seq: int, prompt: str, content: dict[str, Any]) -> Deferred[bool]:
        """Mark a button and make the C{admitted} row of its press a prompt, in one commit.

        The row is C{held} in the priority lane.  False when the button was pressed before, or is
        none; nothing changes then.
        """

    def attach(files: Sequence[AttachedFile]) -> Deferred[None]:
        """All or none of them."""

    def attached() -> list[AttachedFile]:
        """Files that no answer has taken yet, in order."""

    def forget(now_ms: int) -> Deferred[int]: ...
