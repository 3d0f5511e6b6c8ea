"""The installation's key: three files that are made once, in one order, and fail closed afterwards.

What becomes of each state of the three stands in C{docs/ownership.md}.  Whatever is wrong, there is one
error with one sentence; no random bytes are drawn and nothing is written then.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Callable
from pathlib import Path

import attrs

from pitelegram.errors import InstallationUnavailable, UnsafeFile
from pitelegram.kernel.files import ensure_private_dir
from pitelegram.kernel.pinned import PinnedDir

KEY = "installation.key"
DIGEST = "installation.key.sha256"
MARKER = "installation.key.initialized"

FILES = (MARKER, DIGEST, KEY)
"""In the order of reading: the reverse of making them, so that a racing maker is never misread."""

KEY_BYTES = 32
MARKED = b"1"

_DIGEST_FORM = re.compile(rb"[0-9a-f]{64}")
_LIMIT = 128


@attrs.frozen
class Trio:
    """What stands in the three files, None for one that is missing."""

    marker: bytes | None
    digest: bytes | None
    key: bytes | None = attrs.field(repr=False)

    @property
    def empty(self) -> bool:
        """Whether nothing was ever made here, as far as the files tell."""
        return self.marker is None and self.digest is None and self.key is None

    def checked_key(self, recorded: str | None) -> bytes:
        """Return the key if all that is there agrees.

        @raise InstallationUnavailable: it does not, or the key is missing.
        """
        key, digest = self.key, self.digest
        if key is None or len(key) != KEY_BYTES or self.marker not in (None, MARKED):
            raise InstallationUnavailable
        if digest is None and self.marker is not None:
            raise InstallationUnavailable
        right = digest_of(key)
        if digest is not None and not (
            _DIGEST_FORM.fullmatch(digest) and hmac.compare_digest(digest, right.encode())
        ):
            raise InstallationUnavailable
        if recorded is not None and not hmac.compare_digest(recorded.encode(), right.encode()):
            raise InstallationUnavailable
        return key


def digest_of(key: bytes) -> str:
    """Return the digest that is kept beside a key."""
    return hashlib.sha256(key).hexdigest()


def read_trio(directory: PinnedDir) -> Trio:
    """Read the three files; nothing is changed.

    @raise UnsafeFile: one is not a regular file of ours.
    """
    for name in FILES:
        directory.look(name)
    return Trio(*(directory.read(name, _LIMIT) for name in FILES))


@attrs.frozen(kw_only=True)
class Installation:
    """The key of one data directory.

    @ivar data: the directory.
    @ivar random_bytes: where a new key comes from.
    @ivar fsync: forces a descriptor to disk.
    """

    data: Path
    random_bytes: Callable[[int], bytes] = attrs.field(default=os.urandom, repr=False)
    fsync: Callable[[int], None] = attrs.field(default=os.fsync, repr=False)

    def load(self, recorded: str | None) -> bytes:
        """Return the key; the first time of all it is made.

        What an interrupted making left is completed, what is too open is narrowed.

        @param recorded: the digest that the database keeps, None before it keeps one.
        @raise InstallationUnavailable: anything is missing, malformed, exchanged or unsafe.
        """
        try:
            if recorded is None and not os.path.lexists(self.data):
                ensure_private_dir(self.data)
            with PinnedDir.open(self.data, self.fsync) as directory:
                return self._load(directory, recorded)
        except (UnsafeFile, OSError):
            raise InstallationUnavailable from None

    def verify(self, recorded: str | None) -> bytes:
        """As L{load}, but only look: nothing is made, completed or narrowed.

        @raise InstallationUnavailable: as there, and when there is no key yet.
        """
        try:
            with PinnedDir.open(self.data) as directory:
                return read_trio(directory).checked_key(recorded)
        except (UnsafeFile, OSError):
            raise InstallationUnavailable from None

    def _load(self, directory: PinnedDir, recorded: str | None) -> bytes:
        found = read_trio(directory)
        if not (found.empty and recorded is None):
            found.checked_key(recorded)
        directory.narrow(*FILES)
        if found.key is None:
            directory.publish(KEY, self.random_bytes(KEY_BYTES))
            found = read_trio(directory)  # perhaps another maker's
            found.checked_key(recorded)
        assert found.key is not None
        if found.digest is None:
            directory.publish(DIGEST, digest_of(found.key).encode())
        if found.marker is None:
            read_trio(directory).checked_key(recorded)
            directory.publish(MARKER, MARKED)
        return read_trio(directory).checked_key(recorded)
