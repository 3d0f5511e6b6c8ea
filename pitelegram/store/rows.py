"""Rows as the rest of the program sees them.  Times are milliseconds since the epoch."""

from __future__ import annotations

from typing import Any, NamedTuple

import attrs

from pitelegram.targets import TelegramTarget

SPREAD = 1 << 20
"""Places between two rows of an inbox: so often can rows be moved behind the newest one."""


@attrs.frozen(kw_only=True)
class Incoming:
    """An admitted update on its way into the journal.

    @ivar body: the update's own JSON bytes, unknown keys kept.
    @ivar recipient: a live binding that it is pinned to from the start (with its C{delivery_id}).
    """

    update_id: int
    kind: str
    chat_id: int
    thread_id: int | None
    message_id: int | None
    callback_id: str | None
    body: bytes
    recipient: str | None = None
    delivery_id: str | None = None


@attrs.frozen(kw_only=True)
class JournalRow:
    """One unsettled update."""

    seq: int
    update_id: int
    kind: str
    chat_id: int
    thread_id: int | None
    message_id: int | None
    callback_id: str | None
    state: str
    recipient: str | None
    delivery_id: str | None
    attempts: int
    wrong_receipts: int
    next_attempt_ms: int | None
    told: bool
    received_ms: int
    body: bytes

    @property
    def target(self) -> TelegramTarget:
        """Where it came from."""
        return TelegramTarget(self.chat_id, self.thread_id)


@attrs.frozen(kw_only=True)
class Spec:
    """The durable wish for a worker in a directory.

    @ivar fresh: its next start begins a new session, whatever is remembered; not stored.
    """

    spec_id: str
    name: str
    directory: str
    desired: str
    trust: str
    restart: str
    slot_id: str | None
    session_id: str | None
    session_file: str | None
    session_entries: int
    restarts: int = 0
    crashes: str = "[]"
    failure: str | None = None
    fresh: bool = False


@attrs.frozen(kw_only=True)
class Spawn:
    """One attempt to make a worker process."""

    spawn_id: str
    spec_id: str
    credential: bytes = attrs.field(repr=False)
    state: str
    pid: int | None
    birth: str | None
    pi_pid: int | None
    pi_birth: str | None
    intended_ms: int


@attrs.frozen(kw_only=True)
class Binding:
    """Whose Thread is whose.  C{kind} is C{managed}, C{attached} or C{daemon}.

    @ivar title: what its Thread is called, as far as is known.
    @ivar user_title: what the user called the Thread himself.
    @ivar manual_name: what C{/name} called it; it outlives the Thread.
    @ivar suffixed: whether its title shows the letter, since another had the same directory once.
    @ivar closed: whether the user closed the Thread.
    """

    binding_key: str
    kind: str
    directory: str | None
    chat_id: int | None
    thread_id: int | None
    slot: str | None
    thread_name: str | None
    title: str | None
    user_title: str | None = None
    manual_name: str | None = None
    suffixed: bool = False
    closed: bool = False

    @property
    def target(self) -> TelegramTarget | None:
        """Its chat and Thread, None while it has none."""
        return None if self.chat_id is None else TelegramTarget(self.chat_id, self.thread_id)


@attrs.frozen(kw_only=True)
class OutboxPart:
    """One call of a delivery, ready to be sent.

    @ivar call: C{{"method","params","files"?}}; files are spool paths by then.
    @ivar first_attempt_ms: when it was first tried (since the operator last asked), None before.
    """

    key: str
    part: int
    binding_key: str
    state: str
    attempts: int
    next_attempt_ms: int | None
    plain: bool
    call: dict[str, Any]
    first_attempt_ms: int | None = None


@attrs.frozen(kw_only=True)
class InboxRow:
    """One delivery in a worker's inbox.

    @ivar head: the C{seq} of the row whose prompt this one is part of.
    @ivar place: where it stands in its lane once it was moved; see L{order}.
    @ivar skip: it is dropped when its turn comes.
    @ivar content: what the prompt has beside its text, as the bridge wrote it.
    """

    seq: int
    delivery_id: str
    source: str
    kind: str
    update_id: int | None
    chat_id: int | None
    thread_id: int | None
    message_id: int | None
    lane: str
    state: str
    body: bytes | None
    prompt: str | None
    rpc_id: str | None
    run_id: str | None
    mark_file: str | None
    mark_size: int | None
    mark_entry: str | None
    admitted_ms: int
    head: int | None = None
    place: int | None = None
    skip: bool = False
    content: dict[str, Any] | None = None

    @property
    def order(self) -> int:
        """What rows of one lane are sorted by."""
        return self.seq * SPREAD if self.place is None else self.place


@attrs.frozen(kw_only=True)
class Claim:
    """A control command that is to be begun.

    @ivar canonical: the command as it is compared, as canonical JSON.
    @ivar selector_proof: a hash of how the caller named what it is about.
    @ivar subject: what it is about, once resolved.
    @ivar owner_hash: a hash of the token of whoever begins it.
    @ivar owner_until_ms: until when nobody else may take it over.
    """

    request_id: str
    action: str
    canonical: str
    fingerprint: str
    selector_proof: str
    subject: str
    owner_hash: str
    owner_until_ms: int


@attrs.frozen(kw_only=True)
class Receipt:
    """What is stored of a control command.

    @ivar canonical: empty for one of an older daemon, which matches nothing.
    @ivar envelope: the answer of one that has ended; None when it cannot be read.
    """

    seq: int
    request_id: str
    action: str
    canonical_version: int
    canonical: str
    fingerprint: str
    selector_proof: str
    subject: str
    state: str
    owner_hash: str
    owner_until_ms: int | None
    envelope: dict[str, Any] | None
    created_ms: int
    started_ms: int | None


class Turn(NamedTuple):
    """A held row, as far as its turn goes.

    @ivar place: where it stands in its lane.
    """

    seq: int
    lane: str
    place: int


@attrs.frozen(kw_only=True)
class ButtonRow:
    """A button under an answer.

    @ivar key: 8 hex digits; its callback data is C{tgbtn:<key>}.
    @ivar style: C{primary}, C{success} or C{danger}: what it looks like once it was pressed.
    @ivar keyboard: C{inline_keyboard} of its message, as it was sent.
    """

    key: str
    label: str
    prompt: str
    style: str | None
    keyboard: list[list[dict[str, Any]]]
    pressed: bool = False
    created_ms: int = 0


@attrs.frozen(kw_only=True)
class AttachedFile:
    """A file of the agent, waiting for the answer that it belongs to.

    @ivar path: our copy of it.
    @ivar size: bytes.
    @ivar photo: whether Telegram takes it as a photo.
    """

    path: str
    name: str
    mime: str
    size: int
    photo: bool = False
    caption: str | None = None
    seq: int = 0
