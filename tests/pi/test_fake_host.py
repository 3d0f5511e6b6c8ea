"""The fake Pi keeps the contract."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import TestCase

from pitelegram.testing.contracts_pi import PiHostContract
from pitelegram.testing.pihost import FakePiHost


class FakePiHostTests(PiHostContract, TestCase):
    """L{FakePiHost} behaves as the contract says."""

    timeout = 10

    def make_host(self) -> FakePiHost:
        """A fake."""
        from twisted.internet import reactor

        host = FakePiHost(reactor)  # type: ignore[arg-type]
        self.addCleanup(host.die)
        return host

    def open_gate(self, host: Any, name: str) -> None:
        """The fake has its own gates."""
        host.open_gate(name)

    def kill(self, host: Any) -> None:
        """The fake dies."""
        host.die()
