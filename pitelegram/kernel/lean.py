"""Keeping OpenSSL out of a process that has no use for it.

Twisted imports pyOpenSSL wherever it finds it, which costs a worker some 20 MiB.  A process that
never speaks TLS calls L{forbid_tls} before its first import of C{twisted.internet}; Twisted then
behaves as if it had been installed without its C{tls} extra.

Only for managed workers: an attached worker may have to lead, and the leader speaks TLS.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

_FORBIDDEN = ("OpenSSL", "service_identity", "cryptography", "ssl", "_ssl")

_OPENSSL_HASHES = "_hashlib"
"""The standard library's own way to OpenSSL; C{hashlib} and C{hmac} do without where they can."""

_BUILT_IN_HASHES = ("_sha2", "_sha256")


class _Forbidding:
    """A finder that says these packages are not installed."""

    def __init__(self) -> None:
        built_in = any(find_spec(name) is not None for name in _BUILT_IN_HASHES)
        self._names = (*_FORBIDDEN, _OPENSSL_HASHES) if built_in else _FORBIDDEN

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuse a forbidden name, leave any other to the finders behind."""
        if name.partition(".")[0] in self._names:
            raise ModuleNotFoundError(f"{name} is not used in this process", name=name)
        return None


def forbid_tls() -> None:
    """Make pyOpenSSL unimportable from now on.  It is no error when it was imported before."""
    if not any(isinstance(finder, _Forbidding) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Forbidding())
