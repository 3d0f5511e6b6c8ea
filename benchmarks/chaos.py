"""What is lost, doubled or left hanging when everything is killed at random.

C{python benchmarks/chaos.py [--seed S] [--prompts N] [--workers W] [--seeds COUNT]}: a sandbox
Telegram, the daemon, its workers and the real Pi.  N prompts are sent while the daemon, workers and
Pis are killed or suspended and Telegram is away, answers badly or not at all, at moments that the
seed chooses.  Then all is let settle, and every prompt is judged by what the model was asked and
what stands in the chat.  Prints one JSON line of counts per seed, and what is wrong; exit code 1 if
anything is.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import psutil
from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.task import deferLater

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pitelegram.testing.system import System  # noqa: E402

SETTLE = 240.0
"""Seconds after the storm within which every prompt must have its end."""

QUIET = 5.0
"""Seconds in which nothing more may come after that."""

DESK = 0.1
"""Share of the prompts that come over the control socket."""

SEND_FAULTS = ("html502", "cut", "reset", "drop", "hang", "delay", "429", "empty", "no-result")
POLL_FAULTS = ("html502", "cut", "reset", "drop", "delay", "429", "409", "empty", "no-result")
FORMS = (
    "MARK",
    "MARK",
    "MARK [[slow seconds=2 text='You said: MARK']]",
    "MARK [[tool bash 'sleep 0.3']] [[say text='You said: MARK']]",
)
"""The mark stands first: reports of uncertain prompts show their beginning."""


class Storm:
    """One run with one seed."""

    def __init__(self, reactor: Any, base: Path, seed: int, prompts: int, workers: int) -> None:
        self.reactor = reactor
        self.random = Random(seed)
        self.system = System(reactor, base)
        self.names = [f"worker{number}" for number in range(workers)]
        self.threads: dict[str, int] = {}
        self.sent: dict[str, str] = {}
        self.prompts = prompts
        self.desk: list[Deferred[None]] = []
        self.envelopes: dict[str, str] = {}
        self.over = False
        self.done: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.log: list[str] = []

    async def run(self) -> None:
        """Start, storm, settle, judge."""
        self.system.set_up()
        await self.system.start_daemon()
        for name in self.names:
            self.threads[name] = await self.system.start_worker(name)
        sending = Deferred.fromCoroutine(self.send())
        while not sending.called:
            await self.pause(0.1, 1.5)
            await self.strike()
        await sending
        await self.settle()

    async def pause(self, low: float, high: float) -> None:
        """Let time pass."""
        await deferLater(self.reactor, self.random.uniform(low, high), lambda: None)

    async def send(self) -> None:
        """Send the prompts, now in bursts, now with pauses."""
        choice = Random(self.random.random())
        for number in range(self.prompts):
            mark = f"m{number:03d}x"
            name = choice.choice(self.names)
            self.sent[mark] = name
            text = choice.choice(FORMS).replace("MARK", mark)
            if choice.random() < DESK:
                self.desk.append(Deferred.fromCoroutine(self.ask_at_desk(mark, name, text)))
            else:
                self.system.say(text, self.threads[name])
            if choice.random() < 0.7:
                await deferLater(self.reactor, choice.uniform(0.05, 2.0), lambda: None)

    async def ask_at_desk(self, mark: str, name: str, text: str) -> None:
        """Send a prompt over the control socket, under one request id, until its fate is known."""
        arguments = ("workers", "prompt", name, text, "--request-id", mark, "--json")
        while not self.over:
            done = await self.system.cli(*arguments)
            envelope = done.json() if done.out else {}
            disposition = envelope.get("disposition")
            if disposition in ("terminal_accepted", "terminal_rejected", "terminal_uncertain"):
                self.envelopes[mark] = disposition
                return
            await self.pause(0.5, 1.5)

    # --- what goes wrong ------------------------------------------------------------------------

    async def strike(self) -> None:
        """One thing goes wrong."""
        blows: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (3, self.kill_daemon),
            (2, self.end_daemon),
            (2, self.freeze_daemon),
            (3, self.kill_worker),
            (2, self.freeze_worker),
            (2, self.kill_pi),
            (1, self.freeze_pi),
            (2, self.go_away),
            (8, self.bad_send),
            (4, self.bad_poll),
            (1, self.bad_anything),
            (1, self.restart_worker),
        ]
        (blow,) = self.random.choices([b for _, b in blows], [w for w, _ in blows])
        name = blow.__name__
        self.done[name] += 1
        self.log.append(f"{self.reactor.seconds():.2f} {name}")
        await blow()

    async def kill_daemon(self) -> None:
        await self.new_daemon(signal.SIGKILL)

    async def end_daemon(self) -> None:
        await self.new_daemon(signal.SIGTERM)

    async def new_daemon(self, sig: int) -> None:
        """End the daemon; start another one, now or a little later."""
        assert self.system.daemon is not None
        await self.system.daemon.kill(sig)
        await self.pause(0, 3)
        self.system.daemon = self.system.run("run")
        if self.random.random() < 0.7:
            await self.system.daemon.when_says("pi-telegram ready")

    async def freeze_daemon(self) -> None:
        assert self.system.daemon is not None
        await self.freeze([psutil.Process(self.system.daemon.pid)])

    async def freeze_worker(self) -> None:
        await self.freeze(self.one(self.system.workers()))

    async def freeze_pi(self) -> None:
        await self.freeze(self.one(self.system.pis()))

    async def freeze(self, processes: list[psutil.Process]) -> None:
        for process in processes:
            signalled(process.suspend)
        await self.pause(0.5, 12 if self.random.random() < 0.3 else 3)
        for process in processes:
            signalled(process.resume)

    async def kill_worker(self) -> None:
        for process in self.one(self.system.workers()):
            signalled(process.kill)

    async def kill_pi(self) -> None:
        for process in self.one(self.system.pis()):
            signalled(process.kill)

    def one(self, processes: list[psutil.Process]) -> list[psutil.Process]:
        return [self.random.choice(processes)] if processes else []

    async def go_away(self) -> None:
        await self.system.telegram.go_offline()
        await self.pause(0.5, 5)
        self.system.telegram.go_online()

    async def bad_send(self) -> None:
        self.fault("sendMessage", self.random.choice(SEND_FAULTS))

    async def bad_poll(self) -> None:
        self.fault("getUpdates", self.random.choice(POLL_FAULTS))

    async def bad_anything(self) -> None:
        self.fault("*", self.random.choice(SEND_FAULTS))

    def fault(self, method: str, kind: str) -> None:
        times = 1 if kind == "hang" else self.random.randint(1, 3)
        applied = self.random.random() < 0.5 and kind not in ("429", "409")
        self.log.append(f"   {method} {kind} x{times} applied={applied}")
        self.system.telegram.faults.add(method, kind, times=times, applied=applied)

    async def restart_worker(self) -> None:
        await self.system.cli("workers", "restart", self.random.choice(self.names))

    # --- afterwards -----------------------------------------------------------------------------

    async def settle(self) -> None:
        """All is well again: wait until every prompt has its end, then judge."""
        self.system.telegram.faults.clear()
        daemon = self.system.daemon
        assert daemon is not None
        if daemon.finished.fired:
            self.wrong.append(f"the daemon had ended:\n{daemon.out[-2000:]}{daemon.err[-2000:]}")
            self.system.daemon = self.system.run("run")
            daemon = self.system.daemon
        await daemon.when_says("pi-telegram ready")
        end = self.reactor.seconds() + SETTLE
        while self.reactor.seconds() < end and not self.all_over():
            for worker in (await self.system.status())["workers"]:
                if worker["state"] in ("failed", "stopped"):
                    self.done["started again by hand"] += 1
                    directory = self.system.project(worker["name"])
                    await self.system.cli("workers", "start", str(directory), "--no-wait")
            await self.pause(1, 1)
        self.over = True
        await DeferredList(self.desk)
        await self.pause(QUIET, QUIET)
        self.judge(await self.system.status())

    def all_over(self) -> bool:
        evidence = Evidence(self)
        told = evidence.buttons >= evidence.uncertain
        return told and all(self.verdict(mark, evidence)[0] != "missing" for mark in self.sent)

    def verdict(self, mark: str, evidence: Evidence) -> tuple[str, str]:
        """Return one word for what became of a prompt, and the counts behind it."""
        asked = evidence.asked[mark]
        answered = evidence.answered[mark]
        strange = evidence.elsewhere[mark]
        reported = evidence.reported[mark]
        parked = evidence.parked[mark]
        facts = f"asked {asked}, answered {answered}, elsewhere {strange}, "
        facts += f"reported {reported}, parked {parked}"
        if asked > 1 or answered > 1 or strange or reported > 1:
            return "doubled", facts
        if answered and reported:
            return "contradiction", facts
        if asked == 1 and parked:
            return "parked", facts
        if asked == 1 and answered == 1:
            return "answered", facts
        if reported:
            return "uncertain", facts
        if not asked and self.envelopes.get(mark) in ("terminal_rejected", "terminal_uncertain"):
            return "refused", facts
        return "missing", facts

    def judge(self, status: dict[str, Any]) -> None:
        evidence = Evidence(self)
        for mark, name in self.sent.items():
            word, facts = self.verdict(mark, evidence)
            self.done[word] += 1
            if word in ("missing", "doubled", "contradiction"):
                self.wrong.append(f"{mark} to {name}: {word} ({facts}) {evidence.rows(mark)}")
        counts = status["outbox"]
        if counts["pending"] or counts["sending"]:
            self.wrong.append(f"the outbox is not empty: {counts}")
        if counts["uncertain"] != evidence.uncertain:
            self.wrong.append(f"status counts {counts}, the store has {evidence.uncertain}")
        journal = status["journal"]
        if any(journal.values()):
            self.wrong.append(f"the journal is not empty: {journal}")
        if evidence.buttons < counts["uncertain"]:
            self.wrong.append(f"{counts['uncertain']} uncertain, {evidence.buttons} buttons")
        token = self.system.telegram.token
        logs = [p for p in self.system.base.rglob("*") if p.is_file() and p.name != "telegram.json"]
        self.wrong += [f"token in {p.name}" for p in logs if token.encode() in p.read_bytes()]


class Evidence:
    """What the model was asked, and what the chat and the stores hold."""

    def __init__(self, storm: Storm) -> None:
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.elsewhere: Counter[str] = Counter()
        self.reported: Counter[str] = Counter()
        self.parked: Counter[str] = Counter()
        system = storm.system
        self.buttons = sum("📤 Deliver again" in labels(m) for m in system.telegram.chat.from_bot())
        for request in system.model.requests:
            if not request.results:
                self.asked.update(set(marks(request.text)))
        for message in system.telegram.chat.from_bot():
            text = message.text or ""
            for mark in set(marks(text)):
                thread = storm.threads[storm.sent[mark]]
                if "was not repeated" in text:
                    self.reported[mark] += 1
                elif (count := text.count(f"You said: {mark}")) and message.thread_id == thread:
                    self.answered[mark] += count
                elif count:
                    self.elsewhere[mark] += count
        self.inbox: list[tuple[str, str, str]] = []
        self.outbox: list[tuple[str, str, str]] = []
        self.read(system.agent_dir / "telegram")

    def read(self, data: Path) -> None:
        """Look into the stores."""
        self.uncertain = query(
            data / "default.sqlite3", "SELECT count(*) FROM outbox WHERE state = 'uncertain'"
        )[0][0]
        parts = query(
            data / "default.sqlite3",
            "SELECT o.delivery_id, p.state, p.call FROM outbox o JOIN outbox_parts p USING (key)"
            " WHERE p.call IS NOT NULL",
        )
        for delivery, state, call in parts:
            self.outbox.append((delivery, state, str(call)))
            if state in ("uncertain", "dead_letter"):
                for mark in set(marks(str(call))):
                    self.parked[mark] += 1
        for path in (data / "workers").glob("*.sqlite3"):
            self.inbox += [
                (delivery, state, str(prompt))
                for delivery, state, prompt in query(
                    path, "SELECT delivery_id, state, prompt FROM inbox"
                )
            ]

    def rows(self, mark: str) -> list[tuple[str, str]]:
        """The rows that speak of a prompt."""
        return [(d[-12:], s) for d, s, text in self.inbox + self.outbox if mark in text]


def query(path: Path, statement: str) -> list[Any]:
    """Read from a store that others write."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def marks(text: str) -> list[str]:
    """The prompts' marks in a text."""
    return re.findall(r"m\d{3}x", text)


def labels(message: Any) -> str:
    """The labels of a message's buttons."""
    return " ".join(button["text"] for row in message.keyboard for button in row)


def signalled(act: Callable[[], None]) -> None:
    """Signal a process that may be gone."""
    try:
        act()
    except psutil.Error:
        pass


async def once(reactor: Any, seed: int, options: argparse.Namespace) -> bool:
    """Run one seed; returns whether all was well."""
    base = Path(tempfile.mkdtemp(prefix="pt-chaos-"))
    storm = Storm(reactor, base, seed, options.prompts, options.workers)
    begin = reactor.seconds()
    try:
        await storm.run()
    except Exception as error:
        storm.wrong.append(f"the storm itself failed: {error!r}")
    finally:
        daemon = storm.system.daemon
        await storm.system.tear_down()
    seconds = round(reactor.seconds() - begin)
    print(json.dumps({"seed": seed, "seconds": seconds, **storm.done}), flush=True)
    for wrong in storm.wrong:
        print(f"  WRONG {wrong}", flush=True)
    if storm.wrong and options.keep:
        (base / "storm.txt").write_text("\n".join(storm.log))
        (base / "daemon.txt").write_text(daemon.out + daemon.err if daemon else "")
        print(f"  kept {base}", flush=True)
    else:
        shutil.rmtree(base, ignore_errors=True)
    return not storm.wrong


def main() -> None:
    """Read the options and run the seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, one after the other")
    parser.add_argument("--prompts", type=int, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", action="store_true", help="keep the directory of a bad run")
    options = parser.parse_args()
    from twisted.internet import reactor

    outcome = []

    async def run() -> None:
        for seed in range(options.seed, options.seed + options.seeds):
            outcome.append(await once(reactor, seed, options))

    def over(result: Any) -> None:
        if result is not None:
            print(result)
        reactor.stop()  # type: ignore[attr-defined]

    reactor.callWhenRunning(  # type: ignore[attr-defined]
        lambda: Deferred.fromCoroutine(run()).addBoth(over)
    )
    reactor.run()  # type: ignore[attr-defined]
    sys.exit(0 if len(outcome) == options.seeds and all(outcome) else 1)


if __name__ == "__main__":
    main()
