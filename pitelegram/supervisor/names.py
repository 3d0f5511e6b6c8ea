"""Names of workers, made from their directories."""

from __future__ import annotations

import re
from collections.abc import Container
from pathlib import Path

LIMIT = 32
"""Characters of a name."""

_OTHER = re.compile(r"[^a-z0-9]+")


def worker_name(directory: Path, taken: Container[str]) -> str:
    """Return a name for a worker in C{directory} that is not in C{taken}.

    The directory's own name; else with its parent's name in front; else with a number behind.
    """
    own = _clean(directory.name) or "worker"
    if own not in taken:
        return own
    parent = _clean(directory.parent.name)
    longer = _joined(parent, own) if parent else own
    if longer not in taken:
        return longer
    number = 2
    while (name := _numbered(longer, number)) in taken:
        number += 1
    return name


def _clean(text: str) -> str:
    return _OTHER.sub("-", text.lower()).strip("-")[:LIMIT].strip("-")


def _joined(parent: str, own: str) -> str:
    room = max(LIMIT - len(own) - 1, 8)
    return f"{parent[:room].strip('-')}-{own}"[:LIMIT].strip("-")


def _numbered(name: str, number: int) -> str:
    tail = f"-{number}"
    return name[: LIMIT - len(tail)].strip("-") + tail
