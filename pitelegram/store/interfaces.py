"""What the store promises.

Every write is one named transaction on the writer thread; its Deferred fires after the commit is on
disk.  Writes that are asked for together share a commit.  Reads run at once on a second connection
and see everything that was committed before.  In the leader's store each group of writes first
compares the leader epoch and fails with L{pitelegram.errors.Fenced} when a newer leader took over.
"""

from __future__ import annotations

import builtins
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from zope.interface import Attribute, Interface

from pitelegram.store.rows import (
    Binding,
    Incoming,
    JournalRow,
    OutboxPart,
    Spawn,
    Spec,
)

T = TypeVar("T")


class IDatabase(Interface):
    """One SQLite file (C{pitelegram.store.database.Database}, a Service)."""

    def write(name: str, work: Callable[[sqlite3.Connection], T]) -> Deferred[T]:
        """Run C{work} inside a transaction; an exception rolls back this write only."""

    def read(sql: str, parameters: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """Run one SELECT now."""

    def now_ms() -> int:
        """Milliseconds since the epoch by the injected clock."""

    def checkpoint() -> Deferred[None]:
        """Move what stands in the write-ahead log into the file."""

    def sizes() -> tuple[int, int]:
        """The bytes of the file and of its write-ahead log."""

    times = Attribute("L{pitelegram.store.timings.CommitTimes}: how long commits take, or fail.")


class ILeadership(Interface):
    """The fence (C{store.leadership.Leadership}), and small facts kept once."""

    def acquire(epoch: str) -> Deferred[None]:
        """Write C{epoch} as the only one whose transactions may commit."""

    def get_meta(key: str) -> str | None:
        """A fact: C{host_id}, C{bot_id}, C{bot_username}, C{thread_mode} …"""

    def set_meta(key: str, value: str) -> Deferred[None]:
        """Store a fact."""

    def keep_meta(key: str, value: str) -> Deferred[str]:
        """Store a fact unless it is there already; fires with the one that stands.

        For what is made once, however many ask at the same time: C{host_id},
        C{installation_digest}.
        """

    def audit(subject: str, actor: str, change: str, reason: str) -> Deferred[None]:
        """Append to the audit table (already redacted)."""

    def history(subject: str | None = None, limit: int = 100) -> list[dict[str, Any]]:
        """The newest audit lines of a subject (or all), oldest first."""

    def forget_history(before_ms: int, limit: int) -> Deferred[int]:
        """Delete audit lines and ended spawns older than that, C{limit} of each at most.

        Fires with the larger number: below C{limit} nothing is left.
        """


class IJournal(Interface):
    """Updates between Telegram and a durable receipt (C{store.journal.Journal})."""

    def cursor(bot_id: int) -> int | None:
        """The next offset to poll with, None before the first batch of this bot."""

    def accept(
        bot_id: int, updates: Sequence[Incoming], next_offset: int
    ) -> Deferred[list[JournalRow]]:
        """Store updates and cursor together; returns the new rows (known ids are left out)."""

    def unsettled() -> list[JournalRow]:
        """All rows that are neither C{settled} nor C{failed}, oldest first."""

    def pin(seq: int, recipient: str, delivery_id: str) -> Deferred[None]:
        """State C{forwarding}; from now on only C{recipient} is offered this row."""

    def hold(seq: int) -> Deferred[None]:
        """State C{held}: nobody is there.  A pin stays."""

    def retry(seq: int, next_attempt_ms: int, reason: str, release: bool) -> Deferred[None]:
        """State C{retry_wait}, one attempt more; C{release} takes the pin away."""

    def release(seq: int) -> Deferred[None]:
        """Take the pin away after proof of non-admission; state C{pending}."""

    def settle(seqs: Iterable[int]) -> Deferred[None]:
        """State C{settled}: the body goes, the bare id stays."""

    def fail(seq: int, reason: str) -> Deferred[None]:
        """State C{failed}: visible, not tried again."""

    def wrong_receipt(seq: int) -> Deferred[int]:
        """Count one; returns the new count."""

    def told(seqs: Iterable[int]) -> Deferred[None]:
        """Remember that the user was told that these are held."""

    def unconfirmed(recipient: str, limit: int) -> list[str]:
        """Settled delivery ids of a binding whose C{confirmSettled} is outstanding."""

    def confirm(delivery_ids: Iterable[str]) -> Deferred[None]:
        """The worker answered C{confirmSettled} for these."""

    def counts() -> dict[str, int]:
        """C{pending}, C{held}, C{retry_wait}, C{failed} (C{forwarding} counts as pending)."""

    def claim_callback(callback_id: str) -> Deferred[bool]:
        """True exactly once per callback id: its action may be executed."""

    def forget_settled(before_ms: int, limit: int) -> Deferred[int]:
        """Delete confirmed settled rows older than that; returns how many."""


class ISpecs(Interface):
    """Desired specs and spawn intents (C{store.specs.Specs})."""

    def list() -> list[Spec]:
        """All specs by name."""

    def get(spec_id: str) -> Spec | None: ...

    def by_name(name: str) -> Spec | None: ...

    def by_directory(directory: str) -> Spec | None: ...

    def recent() -> list[str]:
        """The directories of all specs, the last changed first."""

    def create(spec_id: str, name: str, directory: str) -> Deferred[Spec]:
        """A new, stopped spec."""

    def want(
        spec_id: str, desired: str, slot_id: str | None, request_id: str | None = None
    ) -> Deferred[None]:
        """Change only by an operator's start (with a new slot id) or stop (slot id None)."""

    set_record = Attribute("C{set_record(spec_id, restarts, crashes, failure)}: how it ended.")

    def set_session(
        spec_id: str, session_id: str | None, session_file: str | None, entries: int
    ) -> Deferred[None]:
        """Remember the current session."""

    def forget(spec_id: str) -> Deferred[None]:
        """Delete the spec with its spawns."""

    def intend(spawn_id: str, spec_id: str, credential: bytes) -> Deferred[None]:
        """Commit the intent to spawn, before the process is made."""

    def made(spawn_id: str, pid: int, birth: str) -> Deferred[None]: ...

    def registered(spawn_id: str, pid: int, birth: str) -> Deferred[None]: ...

    def pi_seen(spawn_id: str, pi_pid: int, pi_birth: str) -> Deferred[None]: ...

    def ended(spawn_id: str, exit: str) -> Deferred[None]: ...

    def live_spawn(spec_id: str) -> Spawn | None:
        """The newest spawn of this spec that is not C{ended}."""

    def live_spawns(spec_id: str) -> builtins.list[Spawn]:
        """All spawns of this spec that are not C{ended}, newest first."""


class IBindings(Interface):
    """Threads, slots and messages' owners (C{store.bindings.Bindings})."""

    def get(binding_key: str) -> Binding | None: ...

    def list() -> list[Binding]: ...

    def by_target(chat_id: int, thread_id: int | None) -> Binding | None: ...

    def ensure(binding_key: str, kind: str, directory: str | None) -> Deferred[Binding]:
        """Create the row if missing."""

    def assign_slot(binding_key: str, slot: str, thread_name: str) -> Deferred[None]: ...

    def set_target(
        binding_key: str,
        chat_id: int,
        thread_id: int | None,
        expected: tuple[int, int | None] | None,
    ) -> Deferred[bool]:
        """Compare-and-swap on the row's previous target; takes the target from another binding."""

    def set_title(
        binding_key: str, title: str, target: tuple[int, int | None] | None = None
    ) -> Deferred[None]:
        """The Thread's title, as Telegram took it; with a target: while it is the row's."""

    def set_user_title(
        binding_key: str, target: tuple[int, int | None], title: str, keep: bool
    ) -> Deferred[None]:
        """The user named a Thread; compare-and-swap on the row's target."""

    def set_manual_name(
        binding_key: str, target: tuple[int, int | None], name: str | None, title: str
    ) -> Deferred[bool]:
        """C{/name}, with the title that follows; compare-and-swap on the row's target."""

    def set_closed(
        binding_key: str, target: tuple[int, int | None], closed: bool
    ) -> Deferred[bool]:
        """The user closed the Thread, or opened it; compare-and-swap on the row's target."""

    def set_directory(binding_key: str, expected: str | None, directory: str) -> Deferred[bool]:
        """Where the binding works now; compare-and-swap on where it did."""

    def set_suffixed(binding_keys: Iterable[str]) -> Deferred[None]:
        """These titles show their letters from now on, for good."""

    def clear_target(binding_key: str, expected: tuple[int, int | None]) -> Deferred[bool]: ...

    def set_inactive(binding_key: str, since_ms: int | None) -> Deferred[None]: ...

    def inactive() -> dict[str, int]:
        """Since when (ms) bindings without a living process have none, by key."""

    def forget(binding_key: str) -> Deferred[None]: ...

    def record_worker(
        binding_key: str,
        worker_id: str,
        kind: str,
        pid: int,
        birth: str,
        generation: str,
        instance_id: str,
    ) -> Deferred[None]: ...

    def last_worker(binding_key: str) -> dict[str, Any] | None:
        """The newest registration: the columns of C{workers}."""

    def begin_provision(binding_key: str, chat_id: int, title: str) -> Deferred[None]: ...

    def provisions() -> list[dict[str, Any]]:
        """The columns of C{provisions}."""

    def mark_ambiguous(binding_key: str) -> Deferred[None]: ...

    def end_provision(binding_key: str, thread_id: int | None) -> Deferred[None]:
        """Remove the intent; with a thread id also make it the binding's target and title."""

    def remember_messages(
        chat_id: int, message_ids: Iterable[int], binding_key: str, outgoing: bool
    ) -> Deferred[None]: ...

    def message_owner(chat_id: int, message_id: int) -> tuple[str, bool] | None:
        """C{(binding_key, outgoing)}, or None."""

    def forget_messages(before_ms: int, limit: int) -> Deferred[int]:
        """Delete what is older (30 days are promised); returns how many rows went."""


class IOutbox(Interface):
    """Answers on their way into the chat (C{store.outbox.Outbox})."""

    def find(binding_key: str, delivery_id: str) -> tuple[str, str] | None:
        """C{(state, digest)} of a known delivery, tombstones included."""

    def submit(
        binding_key: str,
        delivery_id: str,
        kind: str,
        digest: str,
        calls: Sequence[dict[str, Any]],
        hold: str | None = None,
    ) -> Deferred[str]:
        """Store a delivery, or find it: returns the receipt's state.

        With C{hold}, a reason in one word, it is stored in state C{hold}: shown, never sent, and never
        sent again either.

        @raise pitelegram.errors.Refusal: C{delivery-id-collision} for other content.
        """

    def live_bindings() -> list[str]:
        """Bindings that have something to send."""

    def next_part(binding_key: str) -> OutboxPart | None:
        """The first sendable part in order; skips parked and dead ones."""

    def sending(key: str, part: int) -> Deferred[None]:
        """Committed before the request is written."""

    def delivered(key: str, part: int, message_ids: Sequence[int]) -> Deferred[None]: ...

    def retry(key: str, part: int, next_attempt_ms: int, reason: str) -> Deferred[None]: ...

    def replace_call(key: str, part: int, calls: Sequence[dict[str, Any]]) -> Deferred[None]:
        """Send other calls instead (sets C{plain}), once or as long as there is C{otherwise}.

        Several calls become several parts.
        """

    def park(key: str, part: int, reason: str) -> Deferred[None]:
        """C{uncertain}: shown, and repeated only by the operator."""

    def dead(key: str, part: int, reason: str) -> Deferred[None]:
        """C{dead_letter}: this part was refused; it ends the whole delivery."""

    def again(key: str) -> Deferred[bool]:
        """Parked and dead parts of a delivery become C{pending}; False if there were none."""

    def interrupted() -> Deferred[int]:
        """At start: parts left in C{sending} by a killed leader become C{uncertain}."""

    def items() -> list[dict[str, Any]]:
        """Undelivered deliveries: C{key, state, reason, attempts, created_at_ms, binding_key}.

        C{attempts} is the sum over the parts, so that it grows with every attempt.
        """

    def state_of(key: str) -> str | None:
        """A delivery's state by its key."""

    def counts() -> dict[str, int]:
        """C{pending} (retry_wait included), C{sending}, C{uncertain}, C{dead_letter}."""

    def forget_delivered(before_ms: int, keep: int, limit: int) -> Deferred[int]: ...
