"""What C{doctor} says of the machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pitelegram.commands.finding import Finding
from pitelegram.kernel.paths import Paths
from pitelegram.supervisor.room import EACH_BYTES, MIB, RESERVE_BYTES, available_bytes

FREE_MIB = 200
"""Free room on the disk below which nothing is safe."""

MEMORY_MIB = (EACH_BYTES + RESERVE_BYTES) // MIB
"""Memory below which the first worker would be warned of."""


def disk(paths: Paths, free_bytes: Callable[[Path], int] | None = None) -> Finding:
    """Look at the disk of the agent directory."""
    place = paths.agent_dir
    while not place.exists():
        place = place.parent
    try:
        free = (free_bytes or _free_bytes)(place) // MIB
    except OSError:
        return Finding("warn", "disk", "it does not tell how much room is left", "look at it")
    text = f"{free} MiB free"
    if free < FREE_MIB:
        return Finding("fail", "disk", text, "make room: nothing is confirmed that cannot be kept")
    return Finding("ok", "disk", text)


def memory(available: Callable[[], int] = available_bytes) -> Finding:
    """Look at the memory that is left for workers."""
    free = available() // MIB
    text = f"{free} MiB available"
    if free < MEMORY_MIB:
        cure = f"stop something: a worker and its Pi may need {EACH_BYTES // MIB} MiB"
        return Finding("warn", "memory", text, cure)
    return Finding("ok", "memory", text)


def _free_bytes(place: Path) -> int:
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize
