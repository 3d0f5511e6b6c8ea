"""What a control command costs, and how the daemon bears many specs.

C{python benchmarks/control.py}: the real daemon with a real worker and the real Pi on a local Telegram.
Round trips over the control socket, one connection each, as the command line makes them: a read that
touches nothing, the status document, the metrics, and changes.  Each change is two commits of the
daemon's receipt with the bus and the worker between them: C{worker.prompt} adds the worker's inbox,
C{worker.set_thinking_level} two commits of the worker's ledger and two questions to Pi,
C{worker.abort} some more of both.  Then the same daemon with 1, 10 and 100 wanted specs that had
failed (so that none is spawned): start-up, processor time while idle, status and metrics.  Prints
ratios within the run; never fails for being slow.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import socket
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater, react
from twisted.internet.threads import deferToThread

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pitelegram.kernel.paths import Paths  # noqa: E402
from pitelegram.testing.system import System  # noqa: E402

SPECS = (1, 10, 100)
LEVEL = "worker.set_thinking_level"


class Connection(http.client.HTTPConnection):
    """HTTP over a UNIX socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        """Open the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self._path)


def ask(path: str, method: str, where: str, body: bytes | None = None) -> bytes:
    """Make one request on a connection of its own."""
    connection = Connection(path)
    connection.request(method, where, body, {"Content-Type": "application/json"} if body else {})
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    if answer.status != 200:
        raise SystemExit(f"{where}: HTTP status {answer.status}")
    return data


def command(path: str, action: str, number: int, **args: str) -> None:
    """Do one command with worker alpha, which must be accepted."""
    value = {
        "schema_version": 1,
        "action": action,
        "request_id": f"{action}{number}",
        "target": {"name": "alpha"},
        "args": args,
    }
    envelope = json.loads(ask(path, "POST", "/v1/commands", json.dumps(value).encode()))
    if not envelope["ok"]:
        raise SystemExit(f"{action}: {envelope['status']}")


def times(work: Callable[[int], Any], count: int) -> list[float]:
    """Return the milliseconds of each of so many calls, after a warm-up."""
    for number in range(count // 10):
        work(-1 - number)
    found = []
    for number in range(count):
        begun = time.perf_counter()
        work(number)
        found.append((time.perf_counter() - begun) * 1000)
    return found


def percentiles(found: list[float]) -> str:
    """Return p50 and p99."""
    ordered = sorted(found)
    high = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return f"p50 {statistics.median(ordered):6.2f} ms, p99 {high:6.2f} ms"


def socket_of(system: System) -> str:
    """Return the control socket that the daemon published."""
    owners = json.loads(Paths(system.agent_dir).owners.read_text())
    return str(owners["default"]["controlSocketPath"])


def prepare(system: System, count: int) -> None:
    """Have so many wanted specs that had failed; the daemon does not run."""
    store = sqlite3.connect(Paths(system.agent_dir).database)
    store.execute("DELETE FROM specs")
    store.executemany(
        "INSERT INTO specs (spec_id, name, directory, desired, failure, created_ms, changed_ms)"
        " VALUES (?, ?, ?, 'running', 'it was prepared so', 1, 1)",
        [(f"{n:016x}", f"w{n}", str(system.project(f"w{n}"))) for n in range(count)],
    )
    store.commit()
    store.close()


async def round_trips(system: System, count: int) -> None:
    """Measure one connection each, against a real worker."""
    path = socket_of(system)
    noop = json.dumps({"schema_version": 1, "action": "noop"}).encode()
    kinds: list[tuple[str, Callable[[int], Any]]] = [
        ("noop", lambda _: ask(path, "POST", "/v1/commands", noop)),
        ("GET /v1/status", lambda _: ask(path, "GET", "/v1/status")),
        ("GET /metrics", lambda _: ask(path, "GET", "/metrics")),
        ("set_thinking_level", lambda n: command(path, LEVEL, n, level=("low", "high")[n % 2])),
        ("worker.abort", lambda n: command(path, "worker.abort", n)),
        ("the same again", lambda n: command(path, "worker.abort", n % 50)),
        ("worker.prompt", lambda n: command(path, "worker.prompt", n, text=f"held {n}")),
    ]
    print(f"round trips, {count} each, one connection per request:")
    for name, work in kinds:
        if name == "worker.prompt":  # the first one runs and does not end: the others are queued
            command(path, name, -1000, text="[[gate never]]")
        print(f"  {name:18} {percentiles(await deferToThread(times, work, count))}")


async def with_specs(system: System, reactor: Any, count: int, seconds: float) -> dict[str, float]:
    """Measure a daemon that has so many specs."""
    prepare(system, count)
    begun = time.perf_counter()
    program = await system.start_daemon()
    started = time.perf_counter() - begun
    process = psutil.Process(program.pid)
    before = process.cpu_times()
    await deferLater(reactor, seconds)
    after = process.cpu_times()
    path = socket_of(system)
    figures = {"start-up, s": started}
    figures["idle, % of a core"] = (
        100 * (after.user + after.system - before.user - before.system) / seconds
    )
    for name, where in (("status, ms", "/v1/status"), ("metrics, ms", "/metrics")):
        found = await deferToThread(times, lambda _, w=where: ask(path, "GET", w), 200)
        figures[name] = statistics.median(found)
    await program.kill()
    return figures


async def run(reactor: Any, options: argparse.Namespace) -> None:
    """Print everything."""
    base = Path(tempfile.mkdtemp(prefix="pt-"))
    system = System(reactor, base)
    system.set_up()
    try:
        await system.start_daemon()
        await system.start_worker("alpha")
        await round_trips(system, options.count)
        await system.cli("workers", "stop", "alpha")
        assert system.daemon is not None
        await system.daemon.kill()
        rows = {count: await with_specs(system, reactor, count, options.idle) for count in SPECS}
        print("\nwith so many wanted specs (ratio to one spec):")
        for name in rows[1]:
            line = "  ".join(
                f"N={count}: {row[name]:7.2f} ({row[name] / max(rows[1][name], 1e-9):5.2f}x)"
                for count, row in rows.items()
            )
            print(f"  {name:18} {line}")
        each = (rows[100]["status, ms"] - rows[1]["status, ms"]) / 99 * 1000
        print(f"  one more spec adds {each:.1f} µs to a status document")
    finally:
        await system.tear_down()
        shutil.rmtree(base, ignore_errors=True)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=300, help="round trips of each kind")
    parser.add_argument("--idle", type=float, default=10.0, help="seconds of idling for each N")
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.2f}")
    react(lambda reactor: Deferred.fromCoroutine(run(reactor, options)))


if __name__ == "__main__":
    main()
