"""Starting small and fast: no OpenSSL where there is no use for it, no collections in between.

Twisted imports pyOpenSSL wherever it finds it, which costs a worker some 20 MiB.  A process that
never speaks TLS calls L{forbid_tls} before its first import of C{twisted.internet}; Twisted then
behaves as if it had been installed without its C{tls} extra.  Only for managed workers: an attached
worker may have to lead, and the leader speaks TLS.

The daemon speaks TLS with the OpenSSL that pyOpenSSL brings.  The standard library would load the
system's as a second one, 5 MiB for nothing; L{forbid_second_openssl} keeps it out.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

_STANDARD = ("ssl", "_ssl")
_BROUGHT = ("OpenSSL", "service_identity", "cryptography")

_OPENSSL_HASHES = "_hashlib"
"""The standard library's own way to OpenSSL; C{hashlib} and C{hmac} do without where they can."""

_BUILT_IN_HASHES = ("_sha2", "_sha256")


class _Forbidding:
    """A finder that says these packages are not installed."""

    def __init__(self, names: Sequence[str]) -> None:
        built_in = any(find_spec(name) is not None for name in _BUILT_IN_HASHES)
        self._names = (*names, _OPENSSL_HASHES) if built_in else tuple(names)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuse a forbidden name, leave any other to the finders behind."""
        if name.partition(".")[0] in self._names:
            raise ModuleNotFoundError(f"{name} is not used in this process", name=name)
        return None


def forbid_tls() -> None:
    """Make pyOpenSSL unimportable from now on.  It is no error when it was imported before."""
    _forbid((*_BROUGHT, *_STANDARD))


def forbid_second_openssl() -> None:
    """Make the standard library's C{ssl} unimportable; C{hashlib} then uses its built-in hashes.

    It is no error, and of no use, when they were imported before.
    """
    _forbid(_STANDARD)


def _forbid(names: Sequence[str]) -> None:
    if not any(isinstance(finder, _Forbidding) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Forbidding(names))


def begin_start() -> None:
    """Stop collecting garbage: imports make hundreds of thousands of objects and next to none."""
    gc.disable()


def end_start() -> None:
    """Collect again from now on, but never look again at what was made until now."""
    gc.enable()
    gc.freeze()
