"""Where the leader of a managed worker is."""

from __future__ import annotations

from typing import Any

import attrs
from zope.interface import implementer

from pitelegram.bus.interfaces import IEndpoint
from pitelegram.errors import UnsafeFile
from pitelegram.ids import ProcessBirth
from pitelegram.kernel.files import read_private
from pitelegram.kernel.jsonio import loads
from pitelegram.kernel.paths import Paths

_LIMIT = 1 << 20


@implementer(IEndpoint)
@attrs.frozen(kw_only=True)
class DaemonEndpoint:
    """Reads the socket from C{owners.json}; only a leader with the role C{daemon} counts.

    No lock is needed: the file is replaced atomically.  A missing or unreadable one means that there
    is no leader now.

    @ivar secret: this spawn's credential.
    """

    paths: Paths
    secret: bytes = attrs.field(repr=False)

    def locate(self) -> tuple[str, bytes] | None:
        """See L{IEndpoint.locate}."""
        owners = _read(self.paths)
        owner = owners.get(self.paths.profile)
        if not isinstance(owner, dict) or owner.get("role") != "daemon":
            return None
        path = owner.get("busSocketPath")
        return (path, self.secret) if isinstance(path, str) and path else None

    def owns(self, process: ProcessBirth) -> bool:
        """Whether that process owns the transport of any profile: we never end such a one."""
        owners = _read(self.paths).values()
        return any(isinstance(owner, dict) and owner.get("pid") == process.pid for owner in owners)


def _read(paths: Paths) -> dict[str, Any]:
    try:
        data = read_private(paths.owners, _LIMIT)
        owners: Any = None if data is None else loads(data)
    except (UnsafeFile, ValueError):
        return {}
    return owners if isinstance(owners, dict) else {}
