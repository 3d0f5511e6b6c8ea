"""What a run has used, as the line below its answer."""

from __future__ import annotations

from typing import Any

import attrs

from pitelegram.bridge.menus.status import amount

_MOST = 10**12


@attrs.define
class Spent:
    """The sum over the messages of a run.

    @ivar cost: dollars, as Pi reckons them.
    """

    input: int = 0
    output: int = 0
    cost: float = 0.0

    def add(self, usage: Any) -> None:
        """Take the C{usage} of one message of the model; what makes no sense is left out."""
        if not isinstance(usage, dict):
            return
        self.input += sum(_count(usage.get(n)) for n in ("input", "cacheRead", "cacheWrite"))
        self.output += _count(usage.get("output"))
        cost = usage.get("cost")
        total = cost.get("total") if isinstance(cost, dict) else None
        if isinstance(total, int | float) and 0 <= total < 1e6:
            self.cost += total

    def words(self) -> str | None:
        """Return the line; None when nothing is known."""
        if not self.input and not self.output:
            return None
        parts = [f"{amount(self.input)} in", f"{amount(self.output)} out"]
        if self.cost:
            parts.append(f"${self.cost:.2f}" if self.cost >= 1 else f"${self.cost:.3f}")
        return " · ".join(parts)


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value < _MOST else 0
