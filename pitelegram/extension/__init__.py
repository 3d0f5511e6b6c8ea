"""What runs inside Pi: C{shim.ts}, loaded by C{-e}."""

from __future__ import annotations

from pathlib import Path

SHIM = Path(__file__).with_name("shim.ts")
