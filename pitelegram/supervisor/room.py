"""Whether there is memory for one more worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs
import psutil

from pitelegram.ids import ProcessBirth

MIB = 1024 * 1024

EACH_BYTES = 400 * MIB
"""What a worker and its Pi may come to need: some 35 MiB, and a Node with a long conversation."""

RESERVE_BYTES = 256 * MIB
"""What is to be left for everything else."""


def available_bytes() -> int:
    """Return the memory that can be had without swapping."""
    return int(psutil.virtual_memory().available)


def resident_bytes(process: ProcessBirth) -> int:
    """Return what a process holds now; 0 when it is gone."""
    try:
        return int(psutil.Process(process.pid).memory_info().rss)
    except psutil.Error:
        return 0


@attrs.frozen
class Room:
    """Estimates the memory before a spawn, what already runs included.

    @param available: bytes that are free.
    @param resident: bytes that a process holds.
    """

    available: Callable[[], int] = available_bytes
    resident: Callable[[ProcessBirth], int] = resident_bytes

    def warning(self, running: Iterable[Iterable[ProcessBirth]]) -> str | None:
        """Return a sentence when one more may be too much, else None.

        Nothing is refused for it: an estimate is no proof.

        @param running: the processes of each worker that runs; each may still grow.
        """
        workers = [sum(self.resident(each) for each in processes) for processes in running]
        growth = sum(max(0, EACH_BYTES - held) for held in workers)
        free = self.available()
        if free - growth - EACH_BYTES >= RESERVE_BYTES:
            return None
        beside = f" beside the {len(workers)} that run" if workers else ""
        return (
            f"memory is short: {free // MIB} MiB are free, and one more worker{beside} may come to"
            f" need {(growth + EACH_BYTES) // MIB} MiB"
        )
