"""Keys of new buttons."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from pitelegram.store.worker_interfaces import IOutgoing


def minting(random: Random, outgoing: IOutgoing) -> Callable[[], str]:
    """Return what makes keys that no button in the store has."""

    def mint() -> str:
        while outgoing.button(key := f"{random.getrandbits(32):08x}") is not None:
            pass
        return key

    return mint
