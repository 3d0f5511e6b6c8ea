"""Another daemon process takes the place of the one before, under running workers."""

from __future__ import annotations

import signal
from typing import Any

from pitelegram.kernel.deferring import deferred
from tests.system import SystemCase

NAMES = ("alpha", "beta")


class Upgrade(SystemCase):
    """Workers live on with their Pis and are adopted; what they were doing is answered once."""

    @deferred
    async def processes(self) -> dict[str, tuple[int, int]]:
        """Pids of each worker and its Pi as the daemon has them, checked against the system."""
        found = {}
        for name in NAMES:
            worker = await self.private(name)
            found[name] = worker["pid"], worker["pi_pid"]
        self.assertEqual({p.pid for p in self.system.workers()}, {w for w, _ in found.values()})
        self.assertEqual({p.pid for p in self.system.pis()}, {pi for _, pi in found.values()})
        return found

    @deferred
    async def all_running(self) -> bool:
        """Whether every worker is running again."""
        return all(w["state"] == "running" for w in (await self.system.status())["workers"])

    @deferred
    async def busy(self, gate: str, thread: int) -> None:
        """Let alpha stream up to a gate, with a prompt waiting behind it."""
        self.system.say(f"[[gate {gate} text='{gate}-begin {gate}-end']]", thread)
        await self.system.model.when_request(lambda r: f"gate {gate}" in r.text)
        self.system.say(f"behind {gate}", thread)
        await self.system.until(self.holds_one, "a held prompt")

    @deferred
    async def holds_one(self) -> bool:
        """Whether alpha has one prompt waiting."""
        return bool((await self.private("alpha"))["queued"] == 1)

    @deferred
    async def answered(self, gate: str, thread: int) -> None:
        """The run and what waited behind it are answered, once each and in order."""
        await self.system.answer(f"You said: behind {gate}", thread)
        for text in (f"{gate}-end", f"You said: behind {gate}"):
            self.once(text)
        for text in (f"gate {gate}", f"behind {gate}"):
            self.prompted_once(text)

    def adoptions(self) -> list[str]:
        """What was audited of alpha since its first start."""
        changes = [change for _, change, _ in self.audit("alpha") if " > " in change]
        return changes[2:]

    @deferred
    async def test_in_the_foreground(self) -> None:
        """SIGTERM, also twice, and SIGKILL; the run ends while no daemon is there, and after the
        next one came."""
        threads = await self.start(*NAMES)
        daemon = self.system.daemon
        assert daemon is not None
        before = await self.processes()
        await self.busy("one", threads[0])
        daemon.kill(signal.SIGTERM)
        daemon.kill(signal.SIGINT)
        ended = await daemon.kill(signal.SIGTERM)
        self.assertEqual(ended.code, 0)
        self.assertNotIn("[critical]", ended.out + ended.err)
        self.system.model.open_gate("one")
        daemon = await self.system.start_daemon()
        await self.answered("one", threads[0])
        await self.system.until(self.all_running, "adoption")
        self.assertEqual(await self.processes(), before)
        await self.busy("two", threads[0])
        await daemon.kill(signal.SIGKILL)
        await self.system.start_daemon()
        await self.system.until(self.all_running, "adoption")
        self.assertEqual(await self.processes(), before)
        self.system.model.open_gate("two")
        await self.answered("two", threads[0])
        self.assertEqual(self.adoptions(), ["stopped > adopting", "adopting > running"] * 2)
        await self.asked("to beta", threads[1])
        self.assertEqual(len(self.system.telegram.chat.threads), 1 + len(NAMES))

    @deferred
    async def test_in_the_background(self) -> None:
        """C{start}, C{restart} and C{stop}, then a daemon in the foreground on the same data."""
        self.assertEqual((await self.system.cli("start")).code, 0)
        threads = [await self.system.start_worker(name) for name in NAMES]
        before = await self.processes()
        first = await self.daemon_pid()
        await self.busy("one", threads[0])
        done = await self.system.cli("restart")
        self.assertEqual(done.code, 0, done.err)
        self.assertNotEqual(await self.daemon_pid(), first)
        self.system.model.open_gate("one")
        await self.answered("one", threads[0])
        await self.system.until(self.all_running, "adoption")
        self.assertEqual(await self.processes(), before)
        await self.busy("two", threads[0])
        self.assertEqual((await self.system.cli("stop")).code, 0)
        self.system.model.open_gate("two")
        await self.system.start_daemon()
        await self.answered("two", threads[0])
        await self.system.until(self.all_running, "adoption")
        self.assertEqual(await self.processes(), before)

    @deferred
    async def daemon_pid(self) -> Any:
        """The daemon's pid by the status document."""
        return (await self.system.status())["daemon"]["pid"]
