"""The stop ladder on real workers: idle, streaming, compacting, running a tool, and hanging."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import psutil
from twisted.internet.defer import Deferred, gatherResults

from pitelegram.kernel.deferring import deferred
from tests.system import SystemCase

TOTAL = 30.0
"""Seconds that all phases have together."""

SLACK = 8.0
"""Seconds for the command line and a busy machine."""

SECONDS = [f"{98760 + number}.{os.getpid()}" for number in range(3)]
"""How long a tool's grandchildren sleep; nobody else on this machine sleeps like that."""

SLEEPERS = "sleep {} & setsid sleep {} & env -i setsid sleep {} & wait".format(*SECONDS)
"""A tool's grandchildren: a plain one, one in its own session, and one without any mark."""


class StopCase(SystemCase):
    """Workers in every state that a stop can meet."""

    timeout = 300

    def setUp(self) -> None:
        """Let Pi compact even a short conversation."""
        super().setUp()
        path = self.system.agent_dir / "settings.json"
        settings = json.loads(path.read_text())
        path.write_text(json.dumps({**settings, "compaction": {"keepRecentTokens": 1}}))
        self.threads: dict[str, int] = {}

    @deferred
    async def start_all(self, *names: str) -> None:
        """Start the daemon and these workers, at the same time."""
        await self.system.start_daemon()
        found = await gatherResults([self.system.start_worker(name) for name in names])
        self.threads = dict(zip(names, found, strict=True))

    def sleepers(self) -> list[psutil.Process]:
        """The tool's grandchildren that live."""
        return [p for p in psutil.process_iter() if _is_sleeper(p)]

    @deferred
    async def run_tool(self, name: str) -> None:
        """Let a worker's Pi run a tool that has grandchildren."""
        self.system.say(f"[[tool bash '{SLEEPERS}']] {name}", self.threads[name])
        await self.system.until(lambda: len(self.sleepers()) == 3, "three grandchildren")

    @deferred
    async def stream(self, name: str) -> None:
        """Let a worker's Pi stream an answer that never ends."""
        self.system.say(f"[[gate never]] {name} streams", self.threads[name])
        await self.system.model.when_request(lambda r: f"{name} streams" in r.text)

    @deferred
    async def compact(self, name: str) -> None:
        """Let a worker's Pi compact for ever."""
        for number in range(2):
            await self.asked(f"{name} {number}", self.threads[name])
        self.system.model.summary_gate = "never"
        self.system.run("workers", "compact", name)
        await self.system.model.when_request(lambda r: not r.tools)
        await self.system.until(lambda: self.activity(name, "compacting"), "compacting")

    @deferred
    async def activity(self, name: str, wanted: str) -> bool:
        """Whether a worker says that it does this."""
        status = await self.system.status()
        return bool(next(w for w in status["workers"] if w["name"] == name)["activity"] == wanted)

    @deferred
    async def pids(self, name: str) -> tuple[int, int]:
        """The pids of a worker and its Pi."""
        worker = await self.private(name)
        return worker["pid"], worker["pi_pid"]

    @deferred
    async def timed(self, work: Deferred[Any]) -> float:
        """Seconds that something takes."""
        begin = time.monotonic()
        await work
        return time.monotonic() - begin

    def phases(self, name: str) -> list[str]:
        """The states that a worker went through from its last stop on."""
        states = [change.split(" > ")[1] for _, change, _ in self.audit(name) if " > " in change]
        return states[len(states) - states[::-1].index("running") :]

    def all_gone(self, *pids: int) -> None:
        """None of these processes lives, and no tool of theirs."""
        self.assertEqual([pid for pid in pids if _lives(pid)], [])
        self.assertEqual(self.sleepers(), [])


class Crash(StopCase):
    """A worker is killed while its Pi runs a tool."""

    @deferred
    async def test_tools_do_not_outlive_it(self) -> None:
        """What carries its mark is gone before the next life is ready."""
        await self.start_all("alpha")
        await self.run_tool("alpha")
        (worker,) = self.system.workers()
        worker.kill()
        await self.system.until(lambda: self.is_another("alpha", worker.pid), "another worker")
        left = {process.cmdline()[1]: process for process in self.sleepers()}
        for process in left.values():
            process.kill()
        # Nothing leads to the one without a mark once its parents are gone.
        self.assertLessEqual(set(left), {SECONDS[2]})

    @deferred
    async def is_another(self, name: str, before: int) -> bool:
        """Whether another process of the worker is ready."""
        worker = await self.private(name)
        return bool(worker["state"] == "running" and worker["pid"] != before)


class StopOne(StopCase):
    """C{workers stop}."""

    @deferred
    async def test_every_activity(self) -> None:
        """Idle at once; streaming, compacting and a tool after their drain, grandchildren included.

        The phases are on record, and what was held runs at the next start.
        """
        names = ("idle", "streaming", "compacting", "tool")
        await self.start_all(*names)
        pids = [pid for name in names for pid in await self.pids(name)]
        self.assertLess(await self.timed(self.worker("stop", "idle")), TOTAL / 3)
        self.assertEqual(self.phases("idle"), ["draining", "stopped"])
        await gatherResults(
            [self.stream("streaming"), self.compact("compacting"), self.run_tool("tool")]
        )
        for name in ("streaming", "tool"):
            self.system.say(f"held by {name}", self.threads[name])
        await self.system.until(self.both_hold, "held prompts")
        begin = time.monotonic()
        stops = [self.worker("stop", name) for name in names[1:]]
        for result in await gatherResults(stops):
            self.assertEqual(result["state"], "stopped")
        self.assertLess(time.monotonic() - begin, TOTAL + SLACK)
        self.all_gone(*pids)
        for name in names[1:]:
            self.assertEqual(self.phases(name), ["draining", "aborting", "stopped"], name)
        self.assertIn(("operator", "running > draining"), [a[:2] for a in self.audit("tool")])
        self.assertEqual(self.system.prompts("held by"), [])
        await self.run_again("streaming", "tool")

    @deferred
    async def both_hold(self) -> bool:
        """Whether two workers have a prompt waiting."""
        workers = (await self.system.status())["workers"]
        return [w["name"] for w in workers if w["queued"]] == ["streaming", "tool"]

    @deferred
    async def run_again(self, *names: str) -> None:
        """Start stopped workers; what they held is answered once, what was ended is not repeated."""
        for name in names:
            await self.worker("start", str(self.system.project(name)), "--no-wait")
        for name in names:
            await self.system.answer(f"You said: held by {name}", self.threads[name])
            self.once(f"You said: held by {name}")
            self.prompted_once(f"held by {name}")
        self.prompted_once("streaming streams")


class StopAll(StopCase):
    """C{stop --workers}."""

    @deferred
    async def test_hanging(self) -> None:
        """A Pi that hangs in a tool and a worker that hangs are gone within the total, and nothing
        starts again by itself."""
        names = ("idle", "pi", "worker")
        await self.start_all(*names)
        pids = {name: await self.pids(name) for name in names}
        await self.run_tool("pi")
        psutil.Process(pids["pi"][1]).suspend()
        psutil.Process(pids["worker"][0]).suspend()
        begin = time.monotonic()
        done = await self.system.cli("stop", "--workers")
        took = time.monotonic() - begin
        self.assertEqual(done.code, 0, done.out + done.err)
        self.assertLess(took, TOTAL + SLACK)
        self.all_gone(*(pid for pair in pids.values() for pid in pair))
        self.assertEqual(self.system.processes(), [])
        self.assertEqual(
            self.phases("worker"),
            ["draining", "aborting", "closing", "terminating", "killing", "stopped"],
        )
        self.assertEqual(self.phases("idle"), ["draining", "stopped"])
        await self.system.start_daemon()
        states = {w["name"]: w["state"] for w in (await self.system.status())["workers"]}
        self.assertEqual(states, dict.fromkeys(names, "stopped"))
        self.assertEqual(self.system.workers(), [])


def _is_sleeper(process: psutil.Process) -> bool:
    try:
        words = process.cmdline()
        return len(words) == 2 and words[0] == "sleep" and words[1] in SECONDS
    except psutil.Error:
        return False


def _lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
