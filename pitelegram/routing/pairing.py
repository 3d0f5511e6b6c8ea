"""Becoming the owner: a code that only the operator's terminal has shown."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import attrs
from twisted.logger import Logger

from pitelegram.errors import UnsafeFile
from pitelegram.kernel import jsonio
from pitelegram.kernel.files import read_private, write_private

CODE_LENGTH = 20
LIFE = 15 * 60
"""Seconds that a code is good for."""

TRIES = 10
SHUT_OUT = 3600.0
"""Seconds that a sender is not listened to after ten wrong codes."""

_MOST_SENDERS = 1000


@attrs.define
class _Sender:
    wrong: int
    since: float


@attrs.define(eq=False)
class Pairing:
    """The pairing file of a profile: hash and expiry of one code.

    @param path: C{<agent>/telegram/pairing.<profile>}; its directory is private and exists.
    @param monotonic: seconds that only run forward, for shutting senders out.
    @param now: the wall clock in seconds, which the terminal's C{setup} has too.
    """

    _path: Path
    _monotonic: Callable[[], float]
    _now: Callable[[], float]
    _used: str | None = attrs.field(default=None, init=False)
    _senders: OrderedDict[int, _Sender] = attrs.field(factory=OrderedDict, init=False)
    _log = Logger()

    def create_code(self, random_bytes: Callable[[int], bytes]) -> str:
        """Make a new code, keep its hash for fifteen minutes, return the code.  An old one is void.

        @raise pitelegram.errors.UnsafeFile: the file cannot be written safely.
        """
        code = base64.b32encode(random_bytes(15)).decode("ascii")[:CODE_LENGTH]
        record = {
            "version": 1,
            "sha256": _digest(code),
            "expiresAtMs": round((self._now() + LIFE) * 1000),
        }
        write_private(self._path, jsonio.dumps(record))
        return code

    def is_open(self) -> bool:
        """Whether a code is waiting that has not expired."""
        return self._expected() is not None

    def attempt(self, sender: int, code: str) -> bool:
        """Whether C{code} is right; call L{close} once its sender is the owner.

        A sender who was wrong ten times is not listened to for an hour, right or wrong.
        """
        expected = self._expected()
        if expected is None or self._is_shut_out(sender):
            return False
        if hmac.compare_digest(expected.encode(), _digest(code.strip().upper()).encode()):
            return True
        self._count(sender)
        return False

    def close(self) -> None:
        """The code is used up, also when its file cannot be removed."""
        self._used = self._expected()
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            self._log.error("the pairing file was not removed: {why}", why=type(error).__name__)

    def _expected(self) -> str | None:
        try:
            data = read_private(self._path, 4096)
        except UnsafeFile as refusal:
            self._log.error("the pairing file is not used: {reason}", reason=str(refusal))
            return None
        if data is None:
            return None
        try:
            record = jsonio.loads(data)
            digest, expires = record["sha256"], record["expiresAtMs"]
        except (ValueError, KeyError, TypeError):
            return None
        if not isinstance(digest, str) or not isinstance(expires, int):
            return None
        fresh = self._now() * 1000 < expires and digest != self._used
        return digest if fresh else None

    def _is_shut_out(self, sender: int) -> bool:
        known = self._senders.get(sender)
        if known is None:
            return False
        if self._monotonic() - known.since >= SHUT_OUT:
            del self._senders[sender]
            return False
        return known.wrong >= TRIES

    def _count(self, sender: int) -> None:
        known = self._senders.setdefault(sender, _Sender(0, 0.0))
        known.wrong += 1
        known.since = self._monotonic()
        self._senders.move_to_end(sender)
        while len(self._senders) > _MOST_SENDERS:
            self._senders.popitem(last=False)


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
