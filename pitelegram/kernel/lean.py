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
from types import ModuleType

_FORBIDDEN = ("OpenSSL", "service_identity", "cryptography")


class _Forbidding:
    """A finder that says these packages are not installed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuse a forbidden name, leave any other to the finders behind."""
        if name.partition(".")[0] in _FORBIDDEN:
            raise ModuleNotFoundError(f"{name} is not used in this process", name=name)
        return None


def forbid_tls() -> None:
    """Make pyOpenSSL unimportable from now on.  It is no error when it was imported before."""
    if not any(isinstance(finder, _Forbidding) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Forbidding())
