"""Proving to each other who speaks, before anything else is said.

Neither side sends its secret: each sends an HMAC over both nonces.  The leader proves itself first, so
that a follower tells an impostor nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import Any

from pitelegram.errors import BusUnauthorized, IncompatibleProtocol

PROTOCOL_VERSION = 1
NONCE_BYTES = 32
TIME_LIMIT = 5.0
"""Seconds from connecting to the end of the handshake."""

REQUIRED = ("durable-follower-admission-v1",)
"""Capabilities without which the sides do not talk."""

CAPABILITIES = (
    "assistant-settings-v1",
    "durable-delivery-v1",
    "durable-follower-admission-v1",
    "follower-activity-v1",
    "thread-display-mode-v1",
    "workspace-thread-rename-v1",
)
"""What this build does, sorted."""

SETTINGS = "assistant-settings-v1"
"""The peer tells, or takes, settings, and writes one that is asked for."""

RENAME = "workspace-thread-rename-v1"
"""The peer asks for, or gives, names of Threads."""

DISPLAY_MODE = "thread-display-mode-v1"
"""The peer asks for, or makes, a change of what titles are made of."""

_CAPABILITY = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")
_BUILD_LENGTH = 128
_MOST_CAPABILITIES = 32


def leader_proof(secret: bytes, follower_nonce: bytes, leader_nonce: bytes) -> bytes:
    """Return what proves that the leader has the secret."""
    return _hmac(secret, b"leader\0" + follower_nonce + leader_nonce)


def follower_proof(secret: bytes, follower_nonce: bytes, leader_nonce: bytes) -> bytes:
    """Return what proves that the follower has the secret."""
    return _hmac(secret, b"follower\0" + leader_nonce + follower_nonce)


def check_leader(secret: bytes, follower_nonce: bytes, leader_nonce: bytes, proof: bytes) -> None:
    """Compare the leader's proof in constant time.

    @raise BusUnauthorized: it has not got the secret.
    """
    check_nonce(leader_nonce)
    if not hmac.compare_digest(leader_proof(secret, follower_nonce, leader_nonce), proof):
        raise BusUnauthorized("the leader did not prove that it knows the secret")


def which_secret(
    secrets: Sequence[tuple[str, bytes]], follower_nonce: bytes, leader_nonce: bytes, proof: bytes
) -> str:
    """Return the id of the secret that the follower has proven, looking at all of them.

    @raise BusUnauthorized: it is none of them.
    """
    found: str | None = None
    for secret_id, secret in secrets:
        if hmac.compare_digest(follower_proof(secret, follower_nonce, leader_nonce), proof):
            found = secret_id
    if found is None:
        raise BusUnauthorized("the follower did not prove that it knows the secret")
    return found


def check_nonce(nonce: bytes) -> None:
    """@raise BusUnauthorized: it is not 32 bytes."""
    if len(nonce) != NONCE_BYTES:
        raise BusUnauthorized("a nonce is exactly 32 bytes")


def check_identity(version: int, build: str, capabilities: Any) -> frozenset[str]:
    """Check the protocol block of either side; return its capabilities.

    @raise IncompatibleProtocol: another version, a malformed block, or a required capability missing.
    """
    if version != PROTOCOL_VERSION:
        raise IncompatibleProtocol(f"this side speaks protocol version {PROTOCOL_VERSION}")
    if len(build) > _BUILD_LENGTH:
        raise IncompatibleProtocol("the build name is longer than 128 characters")
    if not _is_list_of_names(capabilities):
        raise IncompatibleProtocol("capabilities are at most 32 names, sorted and unique")
    missing = [name for name in REQUIRED if name not in capabilities]
    if missing:
        raise IncompatibleProtocol(f"the peer lacks the capability {missing[0]}")
    return frozenset(capabilities)


def _is_list_of_names(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= _MOST_CAPABILITIES
        and all(isinstance(name, str) and _CAPABILITY.fullmatch(name) for name in value)
        and value == sorted(set(value))
    )


def _hmac(secret: bytes, message: bytes) -> bytes:
    return hmac.new(secret, message, hashlib.sha256).digest()
