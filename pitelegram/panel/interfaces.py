"""What the panel asks of the daemon."""

from __future__ import annotations

from typing import Any

from zope.interface import Interface


class IStatusSource(Interface):
    """Where the Status screen gets its facts (the assembly provides it)."""

    def status() -> dict[str, Any]:
        """The public status document."""
