"""Identities.  Each is opaque: nothing may be parsed out of one except where stated here."""

from __future__ import annotations

import hashlib
from json.encoder import encode_basestring_ascii as _quoted
from typing import NewType

import attrs

SpecId = NewType("SpecId", str)
"""The durable wish "a worker for this directory"; 16 random hex digits."""

SlotId = NewType("SlotId", str)
"""Minted when an operator starts a stopped spec; keys the public worker key."""

SpawnId = NewType("SpawnId", str)
"""One attempt to make a worker process; also the value of C{PI_TELEGRAM_WORKER_MARK}."""

WorkerId = NewType("WorkerId", str)
"""One live registration lineage of one process birth; minted by the leader, never reused."""

BindingKey = NewType("BindingKey", str)
"""C{spec-<specId>} (managed) or C{ws-<random>} (attached): whose inbox, Thread and answers."""

Generation = NewType("Generation", str)
"""One registration, minted by the leader."""

Epoch = NewType("Epoch", str)
"""One acquisition of leadership (a UUID)."""


@attrs.frozen
class ProcessBirth:
    """A process that cannot be confused with a later one of the same pid.

    @ivar pid: process id.
    @ivar birth: C{<pid>:start:<clock ticks>} on Linux (L{pitelegram.kernel.birth}).
    """

    pid: int
    birth: str


def managed_binding(spec_id: str) -> BindingKey:
    """Return the binding key of a managed spec."""
    return BindingKey(f"spec-{spec_id}")


UPDATE_KINDS = ("message", "edited_message", "callback_query", "message_reaction", "my_chat_member")
"""Kinds of updates that are polled for, in the order of the Bot API documentation."""


def delivery_id(kind: str, binding_key: str, update_id: int) -> str:
    """Return the stable id of one forwarded update (wire contract, "Leader to follower").

    It hashes canonical JSON, which is written here by hand, since this runs for each update.

    @param kind: C{message}, C{edited_message}, C{callback_query} or C{message_reaction}.
    """
    text = (
        f'{{"kind":{_quoted(kind)},"recipientBindingKey":{_quoted(binding_key)},'
        f'"sourceUpdateId":{update_id:d},"version":1}}'
    )
    return "telegram-follower-v1-" + hashlib.sha256(text.encode()).hexdigest()
