"""What Telegram adds to a turn of Pi.

C{python benchmarks/turn.py}: the same prompts go to one real Pi through the local Telegram, daemon
and worker, and to another straight into C{pi --mode rpc}, turn by turn, in the same process and
against the same scripted model.  Two ways are measured: from the message (or the C{prompt} command)
to the model's request, and from the model's request to the answer in the chat (or to
C{agent_settled}).  What is printed as added is the difference.  Between two turns there is a pause:
a chat takes one message a second, and it is not that budget which is measured.  Prints; never fails
for being slow.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from parts.throwaway import on_system  # noqa: E402

from pitelegram.kernel.observers import OneShot  # noqa: E402
from pitelegram.pi.observing import PiObserver  # noqa: E402
from pitelegram.pi.rpc import RpcPiHost  # noqa: E402
from pitelegram.testing.pienv import pi_command, pi_environment  # noqa: E402
from pitelegram.testing.system import System  # noqa: E402

PATIENCE = 60.0


@attrs.frozen
class Turn:
    """One turn, in seconds.

    @ivar inward: from the prompt to the model's request.
    @ivar outward: from the model's request to the end.
    """

    inward: float
    outward: float


class Settled(PiObserver):
    """Fires C{when} at the next C{agent_settled}."""

    def __init__(self) -> None:
        self.when: OneShot[None] = OneShot()

    def settled(self, aborted: bool) -> None:
        """Pi is done."""
        self.when.fire(None)


class Turns:
    """One run."""

    def __init__(self, reactor: Any, system: System, options: argparse.Namespace) -> None:
        self._reactor = reactor
        self._system = system
        self._options = options
        self._settled = Settled()

    async def run(self) -> None:
        """Measure and print."""
        await self._system.start_daemon()
        thread = await self._system.start_worker("turn")
        host = self._direct_host()
        await host.start()
        host.subscribe(self._settled)
        ours: list[Turn] = []
        direct: list[Turn] = []
        try:
            for number in range(-self._options.warm, self._options.turns):
                pair = (
                    await self._through_telegram(f"t{number}", thread),
                    await self._straight(host, f"d{number}"),
                )
                await deferLater(self._reactor, self._options.pause, lambda: None)
                if number >= 0:
                    ours.append(pair[0])
                    direct.append(pair[1])
        finally:
            await host.stop(10.0)
        self._print(ours, direct)

    def _direct_host(self) -> RpcPiHost:
        environment = pi_environment(self._system.agent_dir)
        directory = self._system.project("direct")
        return RpcPiHost(pi_command(), directory, environment, self._reactor, self._reactor)

    async def _through_telegram(self, name: str, thread: int) -> Turn:
        text, said = f"measure {name} [[say done-{name}]]", f"done-{name}"
        asked = self._when_asked(f"measure {name} ")
        answered = self._system.telegram.when_message(
            lambda message: said in (message.text or ""), timeout=PATIENCE, thread=thread
        )
        ended: list[float] = []
        answered.addCallback(lambda _: ended.append(self._reactor.seconds()))
        begin = self._reactor.seconds()
        self._system.say(text, thread)
        at_model = await asked
        await answered
        return Turn(at_model - begin, ended[0] - at_model)

    async def _straight(self, host: RpcPiHost, name: str) -> Turn:
        self._settled.when = settled = OneShot()
        asked = self._when_asked(f"measure {name} ")
        ended: list[float] = []
        over = settled.when().addCallback(lambda _: ended.append(self._reactor.seconds()))
        begin = self._reactor.seconds()
        await host.prompt(name, f"[telegram] measure {name} [[say done-{name}]]", "normal")
        at_model = await asked
        await over
        return Turn(at_model - begin, ended[0] - at_model)

    def _when_asked(self, words: str) -> Deferred[float]:
        asking = self._system.model.when_request(lambda request: words in request.text)
        asking.addTimeout(PATIENCE, self._reactor)
        return asking.addCallback(lambda _: self._reactor.seconds())

    def _print(self, ours: list[Turn], direct: list[Turn]) -> None:
        print(f"{len(ours)} turns each way; milliseconds")
        for way, words in (
            ("inward", "prompt to the model's request"),
            ("outward", "the model's request to the end"),
        ):
            through = [getattr(turn, way) * 1000 for turn in ours]
            straight = [getattr(turn, way) * 1000 for turn in direct]
            added = statistics.median(through) - statistics.median(straight)
            late = _percentile(through, 0.99) - _percentile(straight, 0.99)
            ratio = statistics.median(through) / statistics.median(straight)
            print(
                f"{words}: through Telegram p50 {statistics.median(through):.1f},"
                f" straight p50 {statistics.median(straight):.1f};"
                f" added p50 {added:.1f}, p99 {late:.1f} (p50 {ratio:.2f} times)"
            )


def _percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def main() -> None:
    """Run on a throw-away directory."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--warm", type=int, default=10, help="turns before measuring")
    parser.add_argument("--pause", type=float, default=1.5, help="seconds between two turns")
    options = parser.parse_args()
    on_system("turn", lambda reactor, system: Turns(reactor, system, options).run())


if __name__ == "__main__":
    main()
