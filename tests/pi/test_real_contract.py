"""The contract of a Pi host, on the real Pi."""

from __future__ import annotations

from pitelegram.testing.contracts_pi import PiHostContract
from pitelegram.testing.realpi import RealPiCase


class RpcPiHostTests(RealPiCase, PiHostContract):
    """L{RpcPiHost<pitelegram.pi.rpc.RpcPiHost>} behaves as the contract says."""
