"""How fast updates get from Telegram to a worker's disk and back to a settled row.

C{python benchmarks/ingest.py}: a Bot API on the loopback, the daemon, and N simulated workers that
commit too, each of the three in a process of its own.  Two loads: I{saturated} (all updates are
there at once: updates a second, from the first one being available until the last one is settled)
and I{paced} (an open loop: the time from an update being available until its worker has committed
it, and until its journal row is settled on disk).  Each with no old rows, and with 100,000 settled
rows in the journal (and their ids in the inboxes).  Prints; never fails for being slow.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT.parent)]

WARM_UP = 2_000
RATE = 200.0

Figures = dict[str, float]


def percentile(sorted_values: list[float], share: float) -> float:
    """Return the value below which C{share} of them are."""
    return sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * share))]


class Bench:
    """One set of processes on one set of files."""

    def __init__(self, base: Path, followers: int, retained: int) -> None:
        from parts.store import prepare
        from parts.talking import Child

        agent_dir = base / "agent"
        self.api = Child("api", followers=followers)
        port = self.api.hear("port")
        prepare(agent_dir, f"http://127.0.0.1:{port}", followers, retained)
        place = {"agent_dir": str(agent_dir), "followers": followers}
        self.leader = Child("leader", retained=retained, **place)
        self.leader.hear("leading")
        self.workers = Child("followers", **place)
        self.leader.hear("registered")
        self.sent = 0

    def run(self, do: str, count: int, **options: Any) -> tuple[Figures, list[list[int]]]:
        """Send updates; returns processor seconds, and the three times of each update."""
        children = {"leader": self.leader, "workers": self.workers, "api": self.api}
        before = {name: child.cpu() for name, child in children.items()}
        for child in (self.leader, self.workers):
            child.order("watch", first=self.sent, count=count)
        self.api.order(do, count=count, **options)
        available = self.api.hear("times")
        committed, settled = self.workers.hear("times"), self.leader.hear("times")
        self.sent += count
        used = {name: child.cpu() - before[name] for name, child in children.items()}
        return used, [available, committed, settled]

    def saturated(self, count: int) -> Figures:
        """Return updates a second and the processor time of each in microseconds."""
        used, (available, _, settled) = self.run("flood", count)
        seconds = (max(settled) - min(available)) / 1e9
        per_update = {f"{name} us": used[name] / count * 1e6 for name in ("leader", "workers")}
        return {"updates/s": count / seconds, **per_update}

    def paced(self, seconds: float) -> Figures:
        """Return percentiles of the two latencies in milliseconds, and the leader's load."""
        count = int(RATE * seconds)
        used, (available, committed, settled) = self.run("pace", count, rate=RATE)
        result = {"leader % of a core": used["leader"] / seconds * 100}
        for name, times in (("committed", committed), ("settled", settled)):
            spent = sorted((t - a) / 1e6 for t, a in zip(times, available, strict=True))
            for label, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
                result[f"{name} {label}"] = percentile(spent, share)
        return result

    def end(self) -> None:
        """Let all processes go."""
        for child in (self.workers, self.leader, self.api):
            child.end()


def measure(followers: int, retained: int, options: argparse.Namespace) -> Figures:
    """Run both loads; of each figure's repetitions the best run counts."""
    base = Path(tempfile.mkdtemp(prefix="ingest-", dir=options.directory))
    try:
        bench = Bench(base, followers, retained)
        try:
            bench.saturated(WARM_UP)
            floods = [bench.saturated(options.count) for _ in range(options.repeat)]
            time.sleep(1.0)
            bench.paced(2.0)
            paces = [bench.paced(options.seconds) for _ in range(options.repeat)]
        finally:
            bench.end()
    finally:
        shutil.rmtree(base, ignore_errors=True)
    best = max(floods, key=lambda figures: figures["updates/s"])
    calm = min(paces, key=lambda figures: figures["committed p99"])
    return {**best, **calm}


def show(results: dict[tuple[int, int], Figures]) -> None:
    """Print the table, then the ratios."""
    names = list(next(iter(results.values())))
    titles = [f"N={followers}, {retained:,} old" for followers, retained in results]
    print(f"{'':24}" + "".join(f"{title:>20}" for title in titles))
    for name in names:
        unit = " ms" if name.startswith(("committed", "settled")) else ""
        cells = (f"{figures[name]:,.1f}{unit}" for figures in results.values())
        print(f"{name:24}" + "".join(f"{cell:>20}" for cell in cells))
    print()
    for (followers, retained), figures in results.items():
        plain = results.get((followers, 0))
        if retained and plain:
            for name in ("updates/s", "leader us", "workers us", "committed p50", "settled p50"):
                print(
                    f"N={followers}: {name} with {retained:,} old rows is"
                    f" {figures[name] / plain[name]:.2f} times that without"
                )


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--followers", type=int, nargs="+", default=[1, 26])
    parser.add_argument("--retained", type=int, nargs="+", default=[0, 100_000])
    parser.add_argument("--count", type=int, default=10_000, help="updates of a saturated run")
    parser.add_argument("--seconds", type=float, default=15.0, help="length of a paced run")
    parser.add_argument("--repeat", type=int, default=3, help="runs of which the best counts")
    parser.add_argument("--directory", help="where the files are made (the disk counts)")
    parser.add_argument("--part", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def part(role: str, words: str) -> None:
    """Be one of the processes."""
    if role == "followers":
        from pitelegram.kernel.lean import forbid_tls

        forbid_tls()
    import importlib

    importlib.import_module(f"parts.{role}").run(**json.loads(words))


def main() -> None:
    """Measure and print."""
    options = arguments()
    if options.part:
        part(*options.part)
        return
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load average before {load:.2f}; best of {options.repeat} runs")
    results = {}
    for followers in options.followers:
        for retained in options.retained:
            results[followers, retained] = measure(followers, retained, options)
    show(results)


if __name__ == "__main__":
    main()
