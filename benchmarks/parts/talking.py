"""How the processes of a benchmark talk: one JSON object per line, down standard input, up standard
output."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from twisted.internet.stdio import StandardIO
from twisted.protocols.basic import LineOnlyReceiver

SCRIPT = Path(__file__).resolve().parent.parent / "ingest.py"
PATIENCE = 300.0


class Orders(LineOnlyReceiver):
    """The child's end.

    @param obey: called with each order; ends the process when there are no more.
    """

    delimiter = b"\n"
    MAX_LENGTH = 1 << 24

    def __init__(self, reactor: Any, obey: Callable[[dict[str, Any]], None]) -> None:
        self._reactor = reactor
        self._obey = obey

    def lineReceived(self, line: bytes) -> None:
        """Take one order."""
        order = orjson.loads(line)
        if order["do"] == "cpu":
            self.say(cpu=cpu_seconds())
        else:
            self._obey(order)

    def say(self, **words: Any) -> None:
        """Tell the parent."""
        self.sendLine(orjson.dumps(words))

    def connectionLost(self, reason: Any = None) -> None:
        """The parent is gone, or wants the end."""
        if self._reactor.running:
            self._reactor.stop()


def obey(reactor: Any, order: Callable[[dict[str, Any]], None]) -> Orders:
    """Listen to the parent; returns what answers it."""
    orders = Orders(reactor, order)
    StandardIO(orders, reactor=reactor)
    return orders


def cpu_seconds() -> float:
    """Return the processor time of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Child:
    """The parent's end."""

    def __init__(self, role: str, **options: Any) -> None:
        self.role = role
        command = [sys.executable, str(SCRIPT), "--part", role, orjson.dumps(options).decode()]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )

    def order(self, do: str, **words: Any) -> None:
        """Give an order."""
        assert self._process.stdin is not None
        self._process.stdin.write(orjson.dumps({"do": do, **words}) + b"\n")

    def hear(self, key: str) -> Any:
        """Wait for the next line; returns what it says about C{key}."""
        assert self._process.stdout is not None
        line = b""
        while not line.endswith(b"\n"):
            piece = self._process.stdout.readline()
            if not piece:
                raise RuntimeError(f"the {self.role} process ended")
            line += piece
        return orjson.loads(line)[key]

    def cpu(self) -> float:
        """Ask for its processor time so far."""
        self.order("cpu")
        return float(self.hear("cpu"))

    def end(self) -> None:
        """Let it go."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
