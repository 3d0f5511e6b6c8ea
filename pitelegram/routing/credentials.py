"""What a follower may prove."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from zope.interface import implementer

from pitelegram.bus.interfaces import ICredentials
from pitelegram.store.interfaces import ISpecs


@implementer(ICredentials)
@attrs.frozen(eq=False)
class Credentials:
    """The secrets that a follower may prove: the epoch's, or that of a spec's live spawn."""

    _specs: ISpecs
    _epoch: str
    _secret: bytes = attrs.field(repr=False)

    def secrets(self, credential: str) -> Sequence[tuple[str, bytes]]:
        """See L{ICredentials.secrets}."""
        if credential == "shared":
            return [(self._epoch, self._secret)]
        kind, _, spec_id = credential.partition(":")
        made = self._specs.live_spawn(spec_id) if kind == "worker" else None
        return [] if made is None else [(made.spawn_id, made.credential)]
