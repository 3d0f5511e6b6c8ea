"""How fast a Pi's output is taken in.

C{python benchmarks/rpc_intake.py [TRANSCRIPT]}: a recorded run repeated (records a second), and
20 MB tool results (MB a second), through L{RpcPiHost} as they come out of a pipe.  Each figure is
also given as a ratio to a loop that decodes every line with C{json.loads}, measured in the same run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from twisted.internet.task import Clock

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pitelegram.pi.observing import THINKING, TOOLS  # noqa: E402
from pitelegram.pi.rpc import RpcPiHost  # noqa: E402
from pitelegram.testing.pirecorder import PiRecorder  # noqa: E402
from pitelegram.testing.spawner import FakeSpawner  # noqa: E402

ALL = (TOOLS, THINKING)
PIPE = 65_536
"""What one read of a pipe gives at most."""


class Counter(PiRecorder):
    """Counts instead of remembering."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def _add(self, *event: Any) -> None:
        self.count += 1


def recorded(path: Path) -> bytes:
    """Return what Pi wrote in a recorded run, as it wrote it."""
    lines = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        entry = json.loads(line) if line else {}
        if entry.get("d") == "<" and entry["r"].get("type") != "response":
            lines.append(json.dumps(entry["r"], separators=(",", ":"), ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def tool_result(size: int) -> bytes:
    """Return the five records in which one big tool result appears."""
    text = "0123456789abcdef" * (size // 16)
    content = [{"type": "text", "text": text}]
    result = {"role": "toolResult", "toolCallId": "c", "content": content}
    records = (
        {"type": "tool_execution_end", "toolCallId": "c", "result": {"content": content}},
        {"type": "message_start", "message": result},
        {"type": "message_end", "message": result},
        {"type": "turn_end", "message": {"role": "assistant"}, "toolResults": [result]},
        {"type": "agent_end", "messages": [result]},
    )
    return b"".join(
        json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records
    )


def intake(data: bytes, wanted: Sequence[str] = ()) -> tuple[float, int]:
    """Feed a host; return the seconds and how many events its observer got."""
    spawner, clock, counter = FakeSpawner(), Clock(), Counter()
    host = RpcPiHost([sys.executable], ROOT, {}, spawner, clock)
    host.subscribe(counter)
    host.want(wanted)
    host.start().addErrback(lambda _: None)
    protocol = spawner.processes[0].protocol
    view = [data[start : start + PIPE] for start in range(0, len(data), PIPE)]
    begin = perf_counter()
    for chunk in view:
        protocol.childDataReceived(1, chunk)
    return perf_counter() - begin, counter.count


def naive(data: bytes) -> float:
    """Decode every line; return the seconds."""
    begin = perf_counter()
    for line in data.split(b"\n"):
        if line:
            json.loads(line)
    return perf_counter() - begin


def report(name: str, data: bytes, wanted: Sequence[str] = ()) -> None:
    """Measure one stream three times and print the best of each."""
    records, megabytes = data.count(b"\n"), len(data) / 1e6
    best, events = min(intake(data, wanted) for _ in range(3))
    plain = min(naive(data) for _ in range(3))
    print(
        f"{name}: {records} records, {megabytes:.0f} MB, {events} events: {best:.3f} s, "
        f"{records / best:,.0f} records/s, {megabytes / best:,.0f} MB/s, "
        f"{plain / best:.1f} times a json.loads loop ({plain:.3f} s)"
    )


def main() -> None:
    """Print the figures."""
    transcripts = ROOT / "tests" / "pi" / "transcripts"
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else transcripts / "01_tool_bash.jsonl"
    run = recorded(path)
    report(f"recorded run ({path.stem}) repeated", run * (200_000 // run.count(b"\n")))
    delta = next(line for line in run.split(b"\n") if b'"text_delta"' in line) + b"\n"
    report("the same with tools and thinking", run * (200_000 // run.count(b"\n")), ALL)
    report("text deltas", delta * 200_000)
    report("tool results of 20 MB", tool_result(20_000_000) * 2)
    report("the same with tools", tool_result(20_000_000) * 2, ALL)


if __name__ == "__main__":
    main()
