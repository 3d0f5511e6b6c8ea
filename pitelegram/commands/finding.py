"""What C{doctor} finds."""

from __future__ import annotations

import attrs


@attrs.frozen
class Finding:
    """One line: how something is, and the cure when it is not right.

    @ivar level: C{ok}, C{warn} or C{fail}.
    """

    level: str
    subject: str
    text: str
    cure: str = ""
