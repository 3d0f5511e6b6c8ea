"""Public keys of workers: the same over crash, restart and new sessions, unlinkable between installations."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import time
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger

from pitelegram.errors import InstallationUnavailable, StoreError
from pitelegram.kernel.deferring import deferred
from pitelegram.ownership.installation import Installation, digest_of

DOMAIN = "pi-telegram.worker-stable-key"
VERSION = 1

DIGEST_FACT = "installation_digest"
HOST_FACT = "host_id"

FORM = re.compile(r"wsk1_[0-9a-f]{64}")

LOOK_SECONDS = 1.0
"""The files are looked at no more often than this."""

_DEEPEST = 64


def stable_key(key: bytes, host_id: str, profile: str, slot_id: str) -> str:
    """Return the public key of a slot."""
    subject = {
        "backend": "pi",
        "domain": DOMAIN,
        "host_id": host_id,
        "profile": profile,
        "slot_id": slot_id,
        "version": VERSION,
    }
    message = json.dumps(subject, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "wsk1_" + hmac.new(key, message.encode(), hashlib.sha256).hexdigest()


def without_stable_keys(value: Any, depth: int = 0) -> Any:
    """Return JSON data without any member that looks like a key of ours, however deep and spelled.

    What is nested deeper than 64 levels is dropped: nothing of ours is.
    """
    if depth > _DEEPEST:
        return None
    if isinstance(value, dict):
        return {
            name: without_stable_keys(item, depth + 1)
            for name, item in value.items()
            if not _is_like_ours(name)
        }
    if isinstance(value, list | tuple):
        return [without_stable_keys(item, depth + 1) for item in value]
    return value


def _is_like_ours(name: object) -> bool:
    text = unicodedata.normalize("NFKC", str(name)).casefold()
    folded = "".join(letter for letter in text if letter.isalnum())
    return folded.startswith("stablekey")


class IFacts(Protocol):
    """The leader's store, as far as it is used here (L{pitelegram.store.interfaces.ILeadership})."""

    def get_meta(self, key: str) -> str | None:
        """A fact."""

    def keep_meta(self, key: str, value: str) -> Deferred[str]:
        """Store a fact unless it is there."""


class Continuity:
    """The public keys of a profile's workers.

    The key is loaded, and made the first time of all, when a worker needs one (L{prepare}); showing only
    looks.  Without a usable key nobody gets any.

    @param facts: keeps the key's digest, and the host's id.
    @param monotonic: seconds that only run forward.
    """

    _log = Logger()

    def __init__(
        self,
        installation: Installation,
        profile: str,
        facts: IFacts,
        random_bytes: Callable[[int], bytes] = os.urandom,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._installation = installation
        self._profile = profile
        self._facts = facts
        self._random_bytes = random_bytes
        self._monotonic = monotonic
        self._needed = False
        self._preparing = 0
        self._looked: tuple[float, bytes | None] | None = None

    @deferred
    async def prepare(self) -> None:
        """A worker needs its key: load or make the installation's, and keep its digest."""
        if self._needed and self._key() is not None:
            return
        self._needed = True
        self._preparing += 1
        try:
            await host_id(self._facts, self._random_bytes)
            key = self._installation.load(self._facts.get_meta(DIGEST_FACT))
            await self._facts.keep_meta(DIGEST_FACT, digest_of(key))
        except (InstallationUnavailable, StoreError) as error:
            self._log.warn("workers have no public keys: {why}", why=str(error))
        finally:
            self._preparing -= 1
            self._looked = None

    def metas(self, slots: Mapping[str, str | None]) -> dict[str, dict[str, Any]]:
        """Return the public pair of each binding, C{{}} for one that has none.

        @param slots: binding keys with the slot that each is in, None for none.
        """
        key = self._key() if self._needed and any(slots.values()) else None
        host = self._facts.get_meta(HOST_FACT)
        if key is None or host is None:
            return {binding: {} for binding in slots}
        return {
            binding: {}
            if slot is None
            else {
                "stable_key": stable_key(key, host, self._profile, slot),
                "stable_key_version": VERSION,
            }
            for binding, slot in slots.items()
        }

    @property
    def problem(self) -> str | None:
        """The sentence for the operator while the key is needed and cannot be used."""
        if not self._needed or self._preparing or self._key() is not None:
            return None
        return str(InstallationUnavailable())

    def _key(self) -> bytes | None:
        """The key as it stands on disk now, None when it may not be used."""
        now = self._monotonic()
        if self._looked is None or now - self._looked[0] >= LOOK_SECONDS:
            self._looked = now, self._look()
        return self._looked[1]

    def _look(self) -> bytes | None:
        recorded = self._facts.get_meta(DIGEST_FACT)
        if recorded is None:
            return None
        try:
            return self._installation.verify(recorded)
        except InstallationUnavailable:
            return None


def host_id(facts: IFacts, random_bytes: Callable[[int], bytes] = os.urandom) -> Deferred[str]:
    """Return the id of this host; it is made once and kept."""
    known = facts.get_meta(HOST_FACT)
    return succeed(known) if known else facts.keep_meta(HOST_FACT, random_bytes(16).hex())
