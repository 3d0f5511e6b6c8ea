"""Profile names."""

from __future__ import annotations

import re

RESERVED = ("main", "active")

_NAME = re.compile(r"[a-z0-9]{1,32}")


def is_profile_name(text: object) -> bool:
    """Whether C{text} may name a profile: 1 to 32 of a-z and 0-9, and not a reserved word."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None and text not in RESERVED
