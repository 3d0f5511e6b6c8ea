"""What the daemon and its workers cost while nothing happens.

C{python benchmarks/footprint.py}: the real daemon, real workers and the real Pi on a local Telegram.
Start-up and memory of the daemon and of the workers, whether a worker has OpenSSL in its memory, and
the processor time of the idle daemon and of ten idle workers over a minute (the Python processes
only; Pi's own is printed beside it).  Prints; never fails for being slow.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import psutil
from twisted.internet.task import deferLater

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from parts.throwaway import on_system  # noqa: E402

from pitelegram.kernel.paths import Paths  # noqa: E402
from pitelegram.testing.system import System  # noqa: E402

MIB = 1 << 20
OPENSSL = ("libssl", "libcrypto", "_rust.abi3", "_ssl.")
"""Parts of the names of what only TLS needs."""


def memory(process: psutil.Process) -> str:
    """Return resident and unshared memory."""
    full = process.memory_full_info()
    return f"RSS {full.rss / MIB:.1f} MiB, unshared {full.uss / MIB:.1f} MiB"


def has_openssl(process: psutil.Process) -> bool:
    """Whether one of its libraries is mapped."""
    return any(word in each.path for each in process.memory_maps() for word in OPENSSL)


def cpu(processes: list[psutil.Process]) -> list[float]:
    """Return the processor seconds of each so far (to 10 ms)."""
    return [times.user + times.system for times in (each.cpu_times() for each in processes)]


def registrations(system: System) -> list[float]:
    """Return how many seconds each worker took, by the leader's store (to 1 ms)."""
    store = sqlite3.connect(f"file:{Paths(system.agent_dir).database}?mode=ro", uri=True)
    rows = store.execute("SELECT registered_ms - intended_ms FROM spawns WHERE state <> 'intended'")
    found = [milliseconds / 1000 for (milliseconds,) in rows if milliseconds is not None]
    store.close()
    return found


class Footprint:
    """One run."""

    def __init__(self, reactor: Any, system: System, options: argparse.Namespace) -> None:
        self._reactor = reactor
        self._system = system
        self._options = options

    async def run(self) -> None:
        """Measure and print."""
        await self._daemon_starts()
        await self._daemon_alone()
        await self._workers()

    async def _pause(self, seconds: float) -> None:
        await deferLater(self._reactor, seconds, lambda: None)

    async def _daemon_starts(self) -> None:
        spent = []
        for _ in range(self._options.starts):
            if self._system.daemon is not None:
                await self._system.daemon.kill(15)
            begin = time.monotonic()
            await self._system.start_daemon()
            spent.append(time.monotonic() - begin)
        print(
            f"daemon start-up, process start to readiness line: best {min(spent):.2f} s,"
            f" median {statistics.median(spent):.2f} s of {len(spent)}"
        )

    def _daemon(self) -> psutil.Process:
        assert self._system.daemon is not None
        return psutil.Process(self._system.daemon.pid)

    async def _daemon_alone(self) -> None:
        await self._pause(3.0)
        print(f"idle daemon: {memory(self._daemon())}")

    async def _workers(self) -> None:
        count = self._options.workers
        for number in range(count):
            await self._system.start_worker(f"idle{number}")
        workers, pis = self._system.workers(), self._system.pis()
        spent = registrations(self._system)
        print(
            f"worker start-up, intent to spawn it to its registration: best {min(spent):.2f} s,"
            f" median {statistics.median(spent):.2f} s of {len(spent)}"
        )
        await self._pause(self._options.settle)
        largest = max(workers, key=lambda each: each.memory_info().rss)
        print(f"idle worker, the largest of {len(workers)}: {memory(largest)}")
        print(f"workers with OpenSSL in memory: {sum(map(has_openssl, workers))}")
        print(f"daemon with {count} workers: {memory(self._daemon())}")
        everybody = [self._daemon(), *workers, *pis]
        before, begin = cpu(everybody), time.monotonic()
        await self._pause(self._options.seconds)
        seconds = time.monotonic() - begin
        used = [
            (after - old) / seconds * 100 for after, old in zip(cpu(everybody), before, strict=True)
        ]
        print(f"processor time over {seconds:.0f} s, in % of one core:")
        print(f"  {count} idle workers together: {sum(used[1 : 1 + count]):.2f}")
        print(f"  the idle daemon: {used[0]:.2f}")
        print(f"  their {len(pis)} Pis (Node), for comparison: {sum(used[1 + count :]):.2f}")


def main() -> None:
    """Run on a throw-away directory."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--workers", type=int, default=10)
    parser.add_argument("--starts", type=int, default=5, help="starts of the daemon")
    parser.add_argument("--settle", type=float, default=20.0, help="seconds before measuring")
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds of measuring")
    options = parser.parse_args()
    on_system("footprint", lambda reactor, system: Footprint(reactor, system, options).run())


if __name__ == "__main__":
    main()
